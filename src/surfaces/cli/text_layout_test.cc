#include "surfaces/cli/text_layout.h"

#include <gtest/gtest.h>

namespace holdfast::cli {
namespace {

TEST(HumanDuration, SaysTwoUnitsAtMost) {
  EXPECT_EQ(human_duration(0), "0s");
  EXPECT_EQ(human_duration(59), "59s");
  EXPECT_EQ(human_duration(890), "14m 50s");
  EXPECT_EQ(human_duration(3'600), "1h 0m");
  EXPECT_EQ(human_duration(187'200), "2d 4h");
  EXPECT_EQ(human_duration(-5), "0s");
}

TEST(HumanDistance, SaysWhichWay) {
  EXPECT_EQ(human_distance(890), "in 14m 50s");
  EXPECT_EQ(human_distance(0), "now");
  EXPECT_EQ(human_distance(-123), "2m 3s ago");
  EXPECT_EQ(human_distance(INT64_MIN), human_duration(INT64_MAX) + " ago");
}

TEST(HumanBytes, KeepsSmallNumbersExact) {
  EXPECT_EQ(human_bytes(1), "1 byte");
  EXPECT_EQ(human_bytes(1'023), "1023 bytes");
  EXPECT_EQ(human_bytes(1'536), "1.5 KiB");
  EXPECT_EQ(human_bytes(UINT64_MAX), "16.0 EiB");
}

TEST(PlainText, TakesAwayWhatATerminalWouldObey) {
  EXPECT_EQ(plain("a\x1b[31mb\nc"), "a\\x1b[31mb\\x0ac");
  EXPECT_EQ(plain("safe \u202e evil"), "safe \\u{202e} evil");
  EXPECT_EQ(plain("\u009b31m"), "\\u{9b}31m");
  EXPECT_EQ(plain("bad \xff"), "bad \\xff");
  EXPECT_EQ(plain("\u6587-\u2014.txt"), "\u6587-\u2014.txt");
}

TEST(Width, CountsWideCharactersTwiceAndMarksNotAtAll) {
  EXPECT_EQ(width_of("abc"), 3U);
  EXPECT_EQ(width_of("\u6587\u5b57"), 4U);
  EXPECT_EQ(width_of("e\u0301"), 1U);
  EXPECT_EQ(shortened("\u6587\u5b57\u6587\u5b57", 7), "\u6587\u5b57...");
}

TEST(Wrapping, BreaksAtSpacesAndCutsWhatHasNone) {
  EXPECT_EQ(wrapped("one two three", 7), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(wrapped("abcdefghij", 4), (std::vector<std::string>{"abcd", "efgh", "ij"}));
  EXPECT_EQ(wrapped("", 4), (std::vector<std::string>{""}));
}

TEST(ShellQuoting, ComesBackAsTheSameWord) {
  EXPECT_EQ(shell_quoted("plain-1.txt"), "plain-1.txt");
  EXPECT_EQ(shell_quoted(""), "''");
  EXPECT_EQ(shell_quoted("it's $HOME"), "'it'\\''s $HOME'");
}

TEST(AlignedTable, PutsAFirstCellThatDoesNotFitOnALineOfItsOwn) {
  Table table({"SCOPE", "OWNER"});
  table.add({std::string(100, 's'), "me"});
  table.add({"short", "you"});
  const std::string text = table.text();
  EXPECT_EQ(text.find("SCOPE"), 0U);
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = text.find('\n', start);
    EXPECT_LE(width_of(std::string_view(text).substr(start, end - start)), kColumns);
    start = end + 1;
  }
  EXPECT_NE(text.find(std::string(80, 's') + "\n" + std::string(20, 's') + "\n"), std::string::npos);
}

}  // namespace
}  // namespace holdfast::cli
