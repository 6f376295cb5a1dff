// Our own rules about sources, as tests. ARCHITECTURE.md and CONTRIBUTING.md say why each exists.
#include <gtest/gtest.h>

#include <array>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tidy/tree.h"

namespace holdfast::tidy {
namespace {

constexpr std::size_t kFileLinesMax = 600;
constexpr std::size_t kFunctionLinesMax = 100;
constexpr std::size_t kFunctionLinesAim = 70;

// The folder table of ARCHITECTURE.md: `src/NAME/` and, in its last column, the folders that it may use.
std::map<std::string, std::set<std::string>> folder_table() {
  std::map<std::string, std::set<std::string>> table;
  for (const std::string& line : lines_of(text_of("ARCHITECTURE.md"))) {
    if (!line.starts_with("| `src/")) continue;
    const std::size_t end = line.find("/`", 7);
    if (end == std::string::npos) continue;
    const std::size_t last = line.rfind('|');
    const std::size_t before = line.rfind('|', last - 1);
    std::set<std::string> uses;
    std::string word;
    for (const char byte : line.substr(before + 1, last - before - 1) + " ") {
      if (is_word_byte(byte)) {
        word += byte;
      } else if (!word.empty()) {
        uses.insert(word);
        word.clear();
      }
    }
    table[line.substr(7, end - 7)] = uses;
  }
  return table;
}

std::string first_segment(const std::string& path) { return path.substr(0, path.find('/')); }

std::vector<std::string> own_includes(const std::string& path) {
  std::vector<std::string> found;
  for (const std::string& line : lines_of(text_of(path))) {
    if (!line.starts_with("#include \"")) continue;
    found.push_back(line.substr(10, line.find('"', 10) - 10));
  }
  return found;
}

// "os/linux" of "os/linux/x.h" where that is a platform's folder, else "".
std::string platform_of(const std::string& path) {
  for (const char* platform : {"linux", "posix", "win32", "fake"}) {
    if (path.find("/" + std::string(platform) + "/") != std::string::npos) return platform;
  }
  return "";
}

TEST(FolderTable, NamesEveryFolderOfTheSources) {
  const auto table = folder_table();
  ASSERT_GT(table.size(), 8U) << "ARCHITECTURE.md has no folder table that can be read";
  std::set<std::string> folders;
  for (const std::string& path : files()) {
    if (path.starts_with("src/") && is_cpp(path)) folders.insert(first_segment(path.substr(4)));
  }
  for (const std::string& folder : folders) EXPECT_TRUE(table.contains(folder)) << "src/" << folder;
  for (const auto& [folder, uses] : table) EXPECT_TRUE(folders.contains(folder)) << "src/" << folder << " is gone";
}

TEST(FolderTable, IsRespectedByEveryInclude) {
  const auto table = folder_table();
  for (const std::string& path : files()) {
    if (!path.starts_with("src/") || !is_cpp(path) || is_test(path)) continue;
    const std::string folder = first_segment(path.substr(4));
    const auto row = table.find(folder);
    if (row == table.end()) continue;  // the test above says so
    for (const std::string& include : own_includes(path)) {
      const std::string used = first_segment(include);
      if (used == folder || used == "holdfast" || include.find('/') == std::string::npos) continue;
      EXPECT_TRUE(row->second.contains(used))
          << path << " includes " << include << ": " << folder << " may not use " << used;
    }
  }
}

TEST(FolderTable, KeepsPlatformHeadersBelowTheirPlatform) {
  for (const std::string& path : files()) {
    if (!is_product(path) || is_test(path)) continue;
    for (const std::string& include : own_includes(path)) {
      const std::string platform = platform_of("/" + include);
      if (platform.empty() || platform == "posix") continue;
      EXPECT_EQ(platform_of(path), platform) << path << " includes " << include;
    }
  }
}

TEST(Sources, AskForNoPlatformOutsideThePlatformFolders) {
  for (const std::string& path : files()) {
    if (!is_cpp(path) || path.starts_with("src/os/") || path == "src/base/fault_point.cc") continue;
    if (path.starts_with("src/guard/") && !platform_of(path).empty()) continue;
    for (const std::string& line : lines_of(text_of(path))) {
      if (!line.starts_with("#if") && !line.starts_with("#elif")) continue;
      for (const char* macro : {"_WIN32", "__linux__", "__unix__", "__APPLE__", "_MSC_VER", "WIN32"}) {
        EXPECT_FALSE(has_word(line, macro)) << path << ": " << line;
      }
    }
  }
}

TEST(Sources, StayShort) {
  for (const std::string& path : files()) {
    if (!is_cpp(path)) continue;
    EXPECT_LE(lines_of(text_of(path)).size(), kFileLinesMax) << path;
  }
}

// A function as clang-format leaves it: from a line at the margin that opens a brace to a brace at the margin.
TEST(Functions, StayShort) {
  for (const std::string& path : files()) {
    if (!is_cpp(path)) continue;
    const auto lines = lines_of(text_of(path));
    std::size_t opened = 0;
    for (std::size_t at = 0; at < lines.size(); ++at) {
      const std::string& line = lines[at];
      if (line.empty()) continue;
      const bool at_margin = line.front() != ' ' && line.front() != '#' && line.front() != '}';
      const bool groups = line.starts_with("namespace") || line.starts_with("class") || line.starts_with("struct") ||
                          line.starts_with("enum") || line.starts_with("extern");
      if (at_margin && !groups && line.back() == '{') opened = at + 1;
      if (line != "}" || opened == 0) continue;
      const std::size_t length = at + 2 - opened;
      EXPECT_LE(length, kFunctionLinesMax) << path << ":" << opened;
      if (length > kFunctionLinesAim) std::cout << "long: " << path << ":" << opened << " has " << length << " lines\n";
      opened = 0;
    }
  }
}

TEST(Headers, BeginWithTheirContractAndAreReadOnce) {
  for (const std::string& path : files()) {
    if (!path.ends_with(".h")) continue;
    const std::string text = text_of(path);
    EXPECT_TRUE(text.starts_with("//")) << path << " begins without saying what it is for";
    EXPECT_NE(text.find("#pragma once\n"), std::string::npos) << path;
  }
}

TEST(Sources, HaveAnIssueForEachThingLeftToDo) {
  const std::array<std::string, 3> marks = {std::string("TO") + "DO", std::string("FIX") + "ME",
                                            std::string("XX") + "X"};
  for (const std::string& path : files()) {
    if (!is_cpp(path)) continue;
    for (const std::string& line : lines_of(text_of(path))) {
      for (const std::string& mark : marks) {
        if (!has_word(line, mark)) continue;
        EXPECT_NE(line.find('#', line.find(mark)), std::string::npos) << path << ": " << line;
      }
    }
  }
}

// Only surfaces read arguments, environment and standard input, write to the console, or end the process.
TEST(Sources, LeaveConsoleEnvironmentAndExitToTheSurfaces) {
  for (const std::string& path : files()) {
    if (!is_product(path) || is_test(path)) continue;
    if (path.starts_with("src/surfaces/") || path == "src/base/fault_point.cc") continue;
    for (const std::string& line : lines_of(text_of(path))) {
      const std::string_view code = code_of(line);
      for (const char* name : {"exit", "_exit", "_Exit", "quick_exit", "getenv", "secure_getenv"}) {
        EXPECT_FALSE(has_word(code, name) && code.find(std::string(name) + "(") != std::string_view::npos)
            << path << ": " << line;
      }
      for (const char* name : {"cout", "cerr", "cin", "printf", "puts"}) {
        EXPECT_FALSE(has_word(code, name)) << path << ": " << line;
      }
    }
  }
}

TEST(Names, SayWhatAThingIs) {
  const std::array<std::string, 3> forbidden = {std::string("man") + "ager", std::string("hel") + "per",
                                                std::string("ut") + "il"};
  const auto lower = [](std::string text) {
    for (char& byte : text) byte = static_cast<char>(std::tolower(static_cast<unsigned char>(byte)));
    return text;
  };
  for (const std::string& path : files()) {
    for (const std::string& word : forbidden) EXPECT_EQ(lower(path).find(word), std::string::npos) << path;
    if (!is_cpp(path)) continue;
    for (const std::string& line : lines_of(text_of(path))) {
      const std::string code(code_of(line));
      for (const char* kind : {"class ", "struct ", "enum ", "namespace ", "using "}) {
        if (!code.starts_with(kind)) continue;
        for (const std::string& word : forbidden)
          EXPECT_EQ(lower(code).find(word), std::string::npos) << path << ": " << line;
      }
    }
  }
}

// No place of the machine on which something was built, and no host from which packages come.
TEST(Tree, NamesNoMachineAndNoPackageHost) {
  const std::array<std::string, 7> forbidden = {std::string("/wo") + "rk/",      std::string("/ro") + "ot/",
                                                std::string("deb.deb") + "ian",  std::string("pypi.") + "org",
                                                std::string("crates.") + "io",   std::string("npmjs.") + "org",
                                                std::string("proxy.gol") + "ang"};
  for (const std::string& path : files()) {
    const std::string text = text_of(path);
    for (const std::string& word : forbidden) EXPECT_EQ(text.find(word), std::string::npos) << path << ": " << word;
  }
}

TEST(Folders, WithManyFilesHaveAReadme) {
  std::map<std::string, int> count;
  for (const std::string& path : files()) {
    if (path.starts_with("src/") && is_cpp(path)) ++count[folder_of(path)];
  }
  for (const auto& [folder, number] : count) { EXPECT_TRUE(number <= 5 || exists(folder + "/README.md")) << folder; }
}

}  // namespace
}  // namespace holdfast::tidy
