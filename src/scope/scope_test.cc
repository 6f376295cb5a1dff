#include "holdfast/scope.h"

#include <gtest/gtest.h>

#include <random>

#include "base/json.h"
#include "scope/lexical.h"

namespace holdfast {
namespace {

constexpr std::string_view kPairOne = "session://5333cdwg04qjm";
constexpr std::string_view kPairTwo = "session://pwdggxrazyohi";

std::string answer(std::string_view text) {
  const Result<Scope> scope = parse_canonical_scope(text);
  return scope ? scope->full() : std::string(scope.refusal().code_name());
}

std::string typed_answer(std::string_view text) {
  const Result<lexical::Typed> typed = lexical::read_typed(text);
  return typed ? "ok" : std::string(typed.refusal().code_name());
}

Scope parsed(std::string_view text) {
  Result<Scope> scope = parse_canonical_scope(text);
  EXPECT_TRUE(scope.ok()) << text;
  return scope ? *scope : Scope{};
}

struct Row {
  std::string_view text;
  std::string_view code;
};

TEST(Scope, IsRefusedByTheRuleThatItBreaks) {
  const Row rows[] = {
      {"", "scope_empty"},
      {"file://", "scope_empty"},
      {"session://", "scope_empty"},
      {"session:///", "scope_empty"},
      {"bad-\xff\xfe", "scope_not_utf8"},
      {"cut-\xe2\x82", "scope_not_utf8"},
      {"over-\xc0\xaf", "scope_not_utf8"},
      {"half-\xed\xa0\x80", "scope_not_utf8"},
      {"printer://x", "scope_namespace_unknown"},
      {"https://x/y", "scope_namespace_unknown"},
      {"svn+ssh://x", "scope_namespace_unknown"},
      {"a\x01b", "scope_control_character"},
      {"a\nb", "scope_control_character"},
      {"a\tb/c", "scope_control_character"},
      {std::string_view("a\0b", 3), "scope_control_character"},
      {"a\x7f", "scope_control_character"},
      {"a\xc2\x85", "scope_control_character"},
      {"session://a\x1f"
       "b",
       "scope_control_character"},
      {"a*b", "scope_wildcard"},
      {"dir/?.txt", "scope_wildcard"},
      {"file://project:/a*", "scope_wildcard"},
      {"session://a*", "scope_wildcard"},
      {"..", "scope_parent_traversal"},
      {"../x", "scope_parent_traversal"},
      {"a/../b", "scope_parent_traversal"},
      {"a/..", "scope_parent_traversal"},
      {"/w/foo/../foobar", "scope_parent_traversal"},
      {"file://project:/../x", "scope_parent_traversal"},
      {"window://a/../b", "scope_parent_traversal"},
      {"browser://..", "scope_parent_traversal"},
      {"a:b", "scope_colon"},
      {"dir/f.txt:stream", "scope_colon"},
      {"file://project:/c:/x", "scope_colon"},
      {"project:", "scope_colon"},
      {"A://x", "scope_colon"},
      {"a/b://x", "scope_colon"},
      {"name.", "scope_trailing_dot_or_space"},
      {"name ", "scope_trailing_dot_or_space"},
      {"dir./x", "scope_trailing_dot_or_space"},
      {"dir /x", "scope_trailing_dot_or_space"},
      {"a/b.", "scope_trailing_dot_or_space"},
      {"...", "scope_trailing_dot_or_space"},
      {" ", "scope_trailing_dot_or_space"},
      {"session://a//b", "scope_segment_invalid"},
      {"session:///a", "scope_segment_invalid"},
      {"session://a//", "scope_segment_invalid"},
      {"account://./x", "scope_segment_invalid"},
      {"focus://.", "scope_segment_invalid"},
  };
  for (const Row& row : rows) EXPECT_EQ(typed_answer(row.text), row.code) << printable(row.text);
}

TEST(Scope, BreaksTheFirstOfSeveralRulesInTheirOrder) {
  const Row rows[] = {
      {"printer://\xff", "scope_not_utf8"},
      {"printer://\x01", "scope_namespace_unknown"},
      {"\x01*", "scope_control_character"},
      {"*/..", "scope_wildcard"},
      {"../a:b", "scope_parent_traversal"},
      {"a./b:c", "scope_colon"},
      {"session://../a//b", "scope_parent_traversal"},
  };
  for (const Row& row : rows) EXPECT_EQ(typed_answer(row.text), row.code) << printable(row.text);
}

TEST(Scope, KeepsWhatIsNoRule) {
  for (const std::string_view text :
       {"a.b", ".hidden", "a b", "a\\b", "100%", "%2e%2e/x", "./x", "a/./b", "a//b", "a/", "session://a:b/c. ",
        "r\u00e9sum\u00e9-\u6587.txt", "window://A/b", "/mnt/a:b/dir./x"}) {
    EXPECT_EQ(typed_answer(text), "ok") << text;
  }
}

TEST(CanonicalScope, IsWhatItSays) {
  for (const std::string_view text :
       {"file://project:/", "file://project:/a", "file://project:/a/B c/d.txt", "session://sqlite.records/t1",
        "window://app/main", "account://service/x", "focus://screen", "browser://ctx/page"}) {
    EXPECT_EQ(answer(text), text);
  }
}

TEST(CanonicalScope, IsNeverAnotherSpelling) {
  const Row rows[] = {
      {"project:/a", "scope_segment_invalid"},           {"file://project:/a/", "scope_segment_invalid"},
      {"file://project:/a//b", "scope_segment_invalid"}, {"file://project:/./a", "scope_segment_invalid"},
      {"file://project://", "scope_segment_invalid"},    {"session://a/", "scope_segment_invalid"},
      {"file:///a", "scope_outside_workspace"},          {"a", "scope_outside_workspace"},
      {"file://project:/.squad", "scope_reserved"},      {"file://project:/.squad/x", "scope_reserved"},
  };
  for (const Row& row : rows) EXPECT_EQ(answer(row.text), row.code) << row.text;
}

TEST(CanonicalScope, KeepsAFolderThatOnlyBeginsLikeTheReservedOne) {
  EXPECT_EQ(answer("file://project:/.squad2"), "file://project:/.squad2");
  EXPECT_EQ(answer("file://project:/a/.squad"), "file://project:/a/.squad");
}

TEST(Scope, NamesItsPartsAsRecordsAndClientsSeeThem) {
  const Scope file = parsed("file://project:/src/a.txt");
  EXPECT_EQ(file.display(), "project:/src/a.txt");
  EXPECT_EQ(file.relative(), "src/a.txt");
  EXPECT_EQ(parsed("file://project:/").relative(), "");
  const Scope session = parsed("session://a/b");
  EXPECT_EQ(session.display(), "session://a/b");
  EXPECT_EQ(session.to_json(), Json({{"scope", "session://a/b"},
                                     {"namespace", "session"},
                                     {"resource_id", "a/b"},
                                     {"routing_key", session.routing_key()}}));
}

TEST(RoutingKey, IsSharedByTheDocumentedPairWhichStaysTwoResources) {
  const Scope one = parsed(kPairOne);
  const Scope two = parsed(kPairTwo);
  EXPECT_EQ(one.routing_key(), "319767235ce9c844");
  EXPECT_EQ(two.routing_key(), "319767235ce9c844");
  EXPECT_NE(one, two);
  EXPECT_NE(one.digest(), two.digest());
  EXPECT_FALSE(overlaps(one, two));
}

TEST(Overlap, IsAPrefixOnASegmentBoundary) {
  for (const std::string stem : {"file://project:/a", "session://a", "window://a", "account://a", "browser://a"}) {
    const Scope held = parsed(stem + "/b");
    for (const char* other : {"", "/b", "/b/c", "/b/c/d"}) {
      EXPECT_TRUE(overlaps(held, parsed(stem + other))) << stem << other;
      EXPECT_TRUE(overlaps(parsed(stem + other), held)) << stem << other;
    }
    for (const char* other : {"/bc", "/c", "b", "/B", "/b.txt"}) {
      EXPECT_FALSE(overlaps(held, parsed(stem + other))) << stem << other;
      EXPECT_FALSE(overlaps(parsed(stem + other), held)) << stem << other;
    }
  }
}

TEST(Overlap, OfTheWholeWorkspaceIsWithEveryFileAndWithNothingElse) {
  const Scope whole = parsed("file://project:/");
  EXPECT_TRUE(overlaps(whole, parsed("file://project:/deep/down/x")));
  EXPECT_TRUE(overlaps(whole, whole));
  EXPECT_TRUE(is_below(parsed("file://project:/x"), whole));
  EXPECT_FALSE(is_below(whole, whole));
  EXPECT_FALSE(overlaps(whole, parsed("session://x")));
}

TEST(Overlap, OfAnyTwoFocusScopesIsGiven) {
  EXPECT_TRUE(overlaps(parsed("focus://left"), parsed("focus://right")));
  EXPECT_TRUE(overlaps(parsed("focus://left"), parsed("focus://left/inner")));
  EXPECT_FALSE(is_below(parsed("focus://left"), parsed("focus://right")));
}

TEST(Overlap, NeverCrossesNamespaces) {
  const Scope scopes[] = {parsed("file://project:/a"), parsed("session://a"), parsed("window://a"),
                          parsed("account://a"),       parsed("focus://a"),   parsed("browser://a")};
  for (const Scope& one : scopes) {
    for (const Scope& other : scopes) EXPECT_EQ(overlaps(one, other), one.ns == other.ns);
  }
}

TEST(Overlap, TakesComposedAndDecomposedNamesForTwo) {  // M19: on Linux they are two files
  const Scope composed = parsed("file://project:/r\u00e9sum\u00e9");
  const Scope decomposed = parsed("file://project:/re\u0301sume\u0301");
  EXPECT_NE(composed, decomposed);
  EXPECT_FALSE(overlaps(composed, decomposed));
}

// 20,000 texts from a seeded generator, of bytes that make trouble: none crashes, and what is canonical stays itself.
TEST(Scope, OfRandomBytesIsRefusedOrParsesToItself) {
  const std::vector<std::string> pieces = {"file://",
                                           "session://",
                                           "focus://",
                                           "project:/",
                                           "/",
                                           "//",
                                           ".",
                                           "..",
                                           "a",
                                           ".squad",
                                           "*",
                                           ":",
                                           " ",
                                           "\xff",
                                           "\xc3\xa9",
                                           "\xc2\x85",
                                           std::string(1, '\0'),
                                           "\n",
                                           "b.txt",
                                           "%2e",
                                           "\\",
                                           "\xed\xa0\x80",
                                           "\xf0\x9f\x98\x80"};
  std::mt19937 random(20'260'114);
  int canonical = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    for (auto count = random() % 9; count > 0; --count) {
      text += random() % 4 == 0 ? std::string(1, static_cast<char>(random() % 256)) : pieces[random() % pieces.size()];
    }
    (void)lexical::read_typed(text);
    const Result<Scope> scope = parse_canonical_scope(text);
    if (!scope) {
      EXPECT_TRUE(scope.refusal().code_name().starts_with("scope_")) << printable(text);
      EXPECT_TRUE(is_valid_utf8(scope.refusal().message())) << printable(text);
      continue;
    }
    ++canonical;
    ASSERT_EQ(scope->full(), text);
    const Result<Scope> again = parse_canonical_scope(scope->full());
    ASSERT_TRUE(again.ok());
    ASSERT_EQ(*again, *scope);
  }
  EXPECT_GT(canonical, 100);
}

TEST(Scope, ThatIsVeryLongIsAnsweredShortly) {
  std::string text = "session://";
  for (int count = 0; count < 30'000; ++count) text += "\u6587/";
  EXPECT_EQ(typed_answer(text), "ok");
  const Result<lexical::Typed> refused = lexical::read_typed(text + "*");
  ASSERT_FALSE(refused.ok());
  EXPECT_LT(refused.refusal().message().size(), 400U);
  EXPECT_TRUE(is_valid_utf8(refused.refusal().message()));
}

}  // namespace
}  // namespace holdfast
