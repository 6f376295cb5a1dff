#include <gtest/gtest.h>

#include "engine/write.h"
#include "support/refused_with.h"

namespace holdfast::engine {
namespace {

using support::granted;
using support::refused_with;

TEST(ApplyEdits, ReplacesEachTextWhereItStandsOnce) {
  const auto edited = apply_edits("one two three", {{"three", "3"}, {"one", "1"}});
  ASSERT_TRUE(granted(edited));
  EXPECT_EQ(*edited, "1 two 3");
}

TEST(ApplyEdits, FindsEveryTextInTheOriginalAndNotInWhatAnotherPutThere) {
  const auto edited = apply_edits("a b", {{"a", "b"}, {"b", "c"}});
  ASSERT_TRUE(granted(edited));
  EXPECT_EQ(*edited, "b c");
}

TEST(ApplyEdits, RefusesWhatIsAbsentTwiceOverlappingOrEmpty) {
  EXPECT_TRUE(refused_with(apply_edits("abc", {{"x", "y"}}), Code::edit_no_match));
  EXPECT_TRUE(refused_with(apply_edits("aXbX", {{"X", "y"}}), Code::edit_ambiguous));
  EXPECT_TRUE(refused_with(apply_edits("aaa", {{"aa", "y"}}), Code::edit_ambiguous));
  EXPECT_TRUE(refused_with(apply_edits("abcd", {{"abc", "1"}, {"cd", "2"}}), Code::edit_ambiguous));
  EXPECT_TRUE(refused_with(apply_edits("abc", {{"", "y"}}), Code::usage));
}

TEST(ApplyEdits, KeepsNulBytesAndBytesThatAreNoText) {
  const std::string bytes("\xFF\0two\0\x80", 7);
  const auto edited = apply_edits(bytes, {{"two", std::string("\0", 1)}});
  ASSERT_TRUE(granted(edited));
  EXPECT_EQ(*edited, std::string("\xFF\0\0\0\x80", 5));
}

}  // namespace
}  // namespace holdfast::engine
