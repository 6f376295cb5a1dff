// The source tree as the tidy tests read it: every file of the project, its text and its lines.
//
// Promises: paths are relative to the top, forward slashes, sorted; nothing below build/ or .git/ is seen.
#pragma once
#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::tidy {

inline std::string top() { return HOLDFAST_SOURCE_DIR; }

inline std::string text_of(const std::string& path) {
  std::ifstream in(top() + "/" + path, std::ios::binary);
  std::ostringstream all;
  all << in.rdbuf();
  return all.str();
}

inline bool exists(const std::string& path) { return std::filesystem::exists(top() + "/" + path); }

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

inline std::vector<std::string> walk() {
  namespace fs = std::filesystem;
  std::set<std::string> found;
  for (auto entry = fs::recursive_directory_iterator(top()); entry != fs::recursive_directory_iterator(); ++entry) {
    const std::string name = entry->path().filename().string();
    if (entry->is_directory() &&
        (name == ".git" || name == "build" || name == "corpus" || name.starts_with("build-"))) {
      entry.disable_recursion_pending();
      continue;
    }
    if (entry->is_regular_file()) found.insert(fs::relative(entry->path(), top()).generic_string());
  }
  return {found.begin(), found.end()};
}

inline const std::vector<std::string>& files() {
  static const std::vector<std::string> all = walk();
  return all;
}

inline bool is_cpp(std::string_view path) { return path.ends_with(".cc") || path.ends_with(".h"); }
inline bool is_product(std::string_view path) {
  return is_cpp(path) && (path.starts_with("src/") || path.starts_with("include/"));
}
// Tests, and headers that only tests use.
inline bool is_test(const std::string& path) {
  return path.starts_with("tests/") || path.ends_with("_test.cc") ||
         (path.ends_with(".h") && text_of(path).find("#include <gtest/") != std::string::npos);
}

inline std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

inline bool is_word_byte(char byte) { return std::isalnum(static_cast<unsigned char>(byte)) != 0 || byte == '_'; }

// Whether `word` stands in `text` with no letter, digit or underscore on either side.
inline bool has_word(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const bool open = at == 0 || !is_word_byte(text[at - 1]);
    if (open && (end == text.size() || !is_word_byte(text[end]))) return true;
  }
  return false;
}

// The line up to a comment; strings are not understood, so a `//` in one cuts too early, which is harmless here.
inline std::string_view code_of(std::string_view line) { return line.substr(0, line.find("//")); }

// What stands between pairs of backticks.
inline std::vector<std::string> quoted_in(const std::string& text) {
  std::vector<std::string> found;
  bool in_block = false;
  for (const std::string& line : lines_of(text)) {
    if (line.starts_with("```")) in_block = !in_block;
    if (in_block || line.starts_with("    ")) continue;
    for (std::size_t open = line.find('`'); open != std::string::npos;) {
      const std::size_t close = line.find('`', open + 1);
      if (close == std::string::npos) break;
      found.push_back(line.substr(open + 1, close - open - 1));
      open = line.find('`', close + 1);
    }
  }
  return found;
}

}  // namespace holdfast::tidy
