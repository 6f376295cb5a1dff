// The documents say what is there: links, paths, test names, fault points and refusal codes.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "holdfast/refusal.h"
#include "tidy/tree.h"

namespace holdfast::tidy {
namespace {

bool is_document(const std::string& path) { return path.ends_with(".md"); }

// Codes that no test names yet, each with the reason. A code leaves this list with the issue that brings its cause.
const std::map<std::string, std::string>& codes_without_a_test() {
  static const std::map<std::string, std::string> codes = {
      {"contract_unresolved", "nothing raises it yet: an empty option is `usage`, and acquire fills every other part"},
      {"challenge_failed",
       "a step fails only where the program is broken: every test of the challenge wants it to pass"},
  };
  return codes;
}

TEST(Documents, HaveNoDeadLink) {
  for (const std::string& path : files()) {
    if (!is_document(path)) continue;
    const std::string text = text_of(path);
    for (std::size_t at = text.find("]("); at != std::string::npos; at = text.find("](", at + 1)) {
      std::string target = text.substr(at + 2, text.find(')', at) - at - 2);
      if (target.find("://") != std::string::npos || target.starts_with("mailto:") || target.starts_with("#")) continue;
      target = target.substr(0, target.find('#'));
      const auto place = std::filesystem::path(folder_of(path)) / target;
      EXPECT_TRUE(exists(place.lexically_normal().generic_string())) << path << " leads to " << target;
    }
  }
}

TEST(Documents, NameOnlyPathsThatExist) {
  for (const std::string& path : files()) {
    if (!is_document(path)) continue;
    for (const std::string& quoted : quoted_in(text_of(path))) {
      bool ours = false;
      for (const char* folder : {"src/", "include/", "tests/", "docs/", "tools/", "cmake/", "fuzz/", "bench/"}) {
        ours = ours || quoted.starts_with(folder);
      }
      if (!ours || quoted.find_first_of("*<>{} …") != std::string::npos || quoted.ends_with("NAME")) continue;
      EXPECT_TRUE(exists(quoted)) << path << " names " << quoted;
    }
  }
}

std::set<std::string> test_names() {
  std::set<std::string> names;
  for (const std::string& path : files()) {
    if (!path.ends_with("_test.cc")) continue;
    for (const std::string& line : lines_of(text_of(path))) {
      if (!line.starts_with("TEST")) continue;
      const std::size_t open = line.find('(');
      const std::size_t comma = line.find(", ", open);
      const std::size_t close = line.find(')', comma);
      if (open == std::string::npos || comma == std::string::npos || close == std::string::npos) continue;
      names.insert(line.substr(open + 1, comma - open - 1) + "." + line.substr(comma + 2, close - comma - 2));
    }
  }
  return names;
}

bool looks_like_a_test(const std::string& text) {
  const std::size_t dot = text.find('.');
  if (dot == std::string::npos || dot == 0 || dot + 1 == text.size()) return false;
  for (const char byte : text) {
    if (byte != '.' && !is_word_byte(byte)) return false;
  }
  const auto is_upper = [](char byte) { return byte >= 'A' && byte <= 'Z'; };
  return is_upper(text[0]) && is_upper(text[dot + 1]) && text.find('.', dot + 1) == std::string::npos &&
         text.find_first_of("abcdefghijklmnopqrstuvwxyz", dot) != std::string::npos && !text.ends_with(".MD");
}

TEST(Documents, NameOnlyTestsThatExist) {
  const auto names = test_names();
  ASSERT_GT(names.size(), 100U);
  for (const std::string& path : files()) {
    if (!is_document(path)) continue;
    for (const std::string& quoted : quoted_in(text_of(path))) {
      EXPECT_TRUE(!looks_like_a_test(quoted) || names.contains(quoted)) << path << " names " << quoted;
    }
  }
}

TEST(FaultPoints, AreListedInTheTestingDocument) {
  const std::string document = text_of("docs/testing.md");
  int found = 0;
  for (const std::string& path : files()) {
    if (!is_product(path) || path.starts_with("src/base/fault_point")) continue;
    const std::string text = text_of(path);
    constexpr std::string_view kMark = "HF_FAULT_POINT(\"";
    for (std::size_t at = text.find(kMark); at != std::string::npos; at = text.find(kMark, at + 1)) {
      const std::size_t start = at + kMark.size();
      const std::string name = text.substr(start, text.find('"', start) - start);
      EXPECT_NE(document.find("`" + name + "`"), std::string::npos) << name << " of " << path;
      ++found;
    }
  }
  EXPECT_GT(found, 10);
}

TEST(RefusalCodes, EachHaveATestOrAReasonWhyNot) {
  std::string tests;
  for (const std::string& path : files()) {
    const bool ours = path == "tests/tidy/documents_test.cc";
    if (!ours && is_cpp(path) && (path.starts_with("tests/") || path.ends_with("_test.cc"))) tests += text_of(path);
  }
  for (std::size_t index = 0; index < code_count(); ++index) {
    const std::string name(facts_at(index).name);
    const bool excused = codes_without_a_test().contains(name);
    EXPECT_NE(has_word(tests, name), excused)
        << name << (excused ? " has a test: take it off the list" : " has no test");
  }
  for (const auto& [name, reason] : codes_without_a_test()) EXPECT_NE(facts_named(name), nullptr) << name;
}

TEST(Decisions, AreNumberedWithoutAGap) {
  std::set<std::string> numbers;
  for (const std::string& path : files()) {
    if (path.starts_with("docs/adr/") && path != "docs/adr/README.md") {
      EXPECT_TRUE(numbers.insert(path.substr(9, 4)).second) << path << " repeats a number";
    }
  }
  int expected = 1;
  for (const std::string& number : numbers) EXPECT_EQ(std::stoi(number), expected++) << "docs/adr/" << number;
  EXPECT_GE(numbers.size(), 10U);
}

}  // namespace
}  // namespace holdfast::tidy
