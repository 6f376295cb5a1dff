#include "base/json.h"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

bool parses(std::string_view text) { return parse_json(text).has_value(); }

JsonProblem::Kind problem_of(std::string_view text) {
  JsonProblem problem{JsonProblem::Kind::malformed, ""};
  EXPECT_FALSE(parse_json(text, &problem).has_value()) << text;
  EXPECT_FALSE(problem.text.empty());
  return problem.kind;
}

std::string nested(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST(ParseJson, GivesTheDocument) {
  const auto document = parse_json(R"({"a":[1,-2,true,null,"x"]})");
  ASSERT_TRUE(document.has_value());
  EXPECT_EQ((*document)["a"][1], -2);
}

TEST(ParseJson, RefusesDuplicateKeysAtAnyDepth) {
  EXPECT_EQ(problem_of(R"({"a":1,"a":1})"), JsonProblem::Kind::duplicate_key);
  EXPECT_EQ(problem_of(R"({"x":[{"y":{"a":1,"b":2,"a":3}}]})"), JsonProblem::Kind::duplicate_key);
  EXPECT_EQ(problem_of(R"({"a":1,"\u0061":2})"), JsonProblem::Kind::duplicate_key);
  EXPECT_TRUE(parses(R"({"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}]})"));
}

TEST(ParseJson, RefusesADepthBombWithoutFollowingIt) {
  EXPECT_TRUE(parses(nested(64)));
  EXPECT_EQ(problem_of(nested(65)), JsonProblem::Kind::too_deep);
  EXPECT_EQ(problem_of(std::string(5'000'000, '[')), JsonProblem::Kind::too_deep);
  std::string objects;
  for (int level = 0; level < 100'000; ++level) objects += "{\"a\":";
  EXPECT_EQ(problem_of(objects), JsonProblem::Kind::too_deep);
}

TEST(ParseJson, RefusesWhatIsNoOneDocument) {
  for (const char* text : {"", " ", "{", "[1,]", "{\"a\"}", "nul", "1 2", "{} x", "{}{}", "'a'", "{a:1}", "[01]", "+1",
                           "// a\n1", "\"a\nb\"", "\"\\x41\""}) {
    EXPECT_EQ(problem_of(text), JsonProblem::Kind::malformed) << text;
  }
  EXPECT_EQ(problem_of(std::string_view("{}\0", 3)), JsonProblem::Kind::malformed);
}

TEST(ParseJson, RefusesNumbersThatAreNone) {
  for (const char* text : {"NaN", "Infinity", "-Infinity", "1e400", "-1e400", "[1e999999]", "0x10", ".5", "1."}) {
    EXPECT_EQ(problem_of(text), JsonProblem::Kind::malformed) << text;
  }
}

TEST(ParseJson, RefusesLoneSurrogates) {
  EXPECT_EQ(problem_of(R"("\ud800")"), JsonProblem::Kind::malformed);
  EXPECT_EQ(problem_of(R"("\udc00")"), JsonProblem::Kind::malformed);
  EXPECT_EQ(problem_of(R"("\ud800\ud800")"), JsonProblem::Kind::malformed);
  EXPECT_EQ(parse_json(R"("\ud83d\ude00")")->get<std::string>(), "\xF0\x9F\x98\x80");
}

TEST(ParseJson, RefusesBytesThatAreNoUtf8) {
  for (const char* text : {"\"\xFF\"", "\"\xC0\x80\"", "\"\xED\xA0\x80\"", "\"\xF4\x90\x80\x80\"", "\"\xE2\x82\"",
                           "\x80", "{\"\xC3\":1}"}) {
    EXPECT_EQ(problem_of(text), JsonProblem::Kind::not_utf8);
  }
}

TEST(Numbers, KeepTheirValueAboveWhatADoubleCarries) {
  EXPECT_EQ(exact_u64(*parse_json("9007199254740993")), 9007199254740993ULL);
  EXPECT_EQ(exact_u64(*parse_json("\"9007199254740993\"")), 9007199254740993ULL);
  EXPECT_EQ(exact_u64(*parse_json("18446744073709551615")), UINT64_MAX);
  EXPECT_EQ(dump_canonical(*parse_json("[9007199254740993,18446744073709551615]")),
            "[9007199254740993,18446744073709551615]");
}

TEST(Numbers, AreRefusedWhereTheyAreNotExact) {
  for (const char* text : {"18446744073709551616", "1.0", "1e3", "-1", "true", "null", "\"\"", "\"01\"", "\"+1\"",
                           "\"1 \"", "\" 1\"", "\"-1\"", "\"1.0\"", "\"18446744073709551616\"", "[1]"}) {
    const auto value = parse_json(text);
    ASSERT_TRUE(value.has_value()) << text;
    EXPECT_FALSE(exact_u64(*value).has_value()) << text;
  }
  EXPECT_FALSE(parse_u64(std::string_view("1\0", 2)).has_value());
  EXPECT_EQ(parse_u64("0"), 0U);
}

TEST(Numbers, OfThisProcessCountLikeParsedOnes) {
  EXPECT_EQ(exact_u64(Json(7)), 7U);
  EXPECT_EQ(exact_u64(Json(7U)), 7U);
  EXPECT_FALSE(exact_u64(Json(-7)).has_value());
}

TEST(DumpCanonical, SortsKeysBytewiseAndLeavesNoWhiteSpace) {
  EXPECT_EQ(dump_canonical(*parse_json("{ \"b\" : 1, \"B\":[ 2 , {} ], \"a\\u00e9\":3, \"a\":4 }")),
            "{\"B\":[2,{}],\"a\":4,\"a\\u00e9\":3,\"b\":1}");
}

TEST(DumpAscii, EscapesEverythingElse) {
  EXPECT_EQ(dump_ascii(Json("a\xE2\x80\xA8\x7F\n\x01\"\\/")), R"("a\u2028\u007f\n\u0001\"\\/")");
  EXPECT_EQ(dump_ascii(Json("\xF0\x9F\x98\x80")), R"("\ud83d\ude00")");
}

TEST(DumpAscii, NeverThrowsOnBytesThatAreNoUtf8) {
  const std::string text = dump_ascii(Json{{"name", "a\xFFz"}});
  EXPECT_EQ(text, "{\"name\":\"a\\ufffdz\"}");
  EXPECT_TRUE(parses(text));
}

TEST(DumpCanonical, IsWhatItGivesWhenReadAgain) {
  for (const char* text : {R"({"a":[1,2.5,-0.0,1e+300,"\u2028\ud83d\ude00",{"b":null}]})", "[]", "\"\""}) {
    const std::string once = dump_canonical(*parse_json(text));
    EXPECT_EQ(dump_canonical(*parse_json(once)), once);
  }
}

TEST(Printable, ShowsControlCharactersAndForeignBytes) {
  EXPECT_EQ(printable("a\x1b[0m\n\x7F"), "a\\x1b[0m\\x0a\\x7f");
  EXPECT_EQ(printable("\xC3\xA9"), "\xC3\xA9");
  EXPECT_EQ(printable("\xC3(\xFF"), "\\xc3(\\xff");
}

TEST(TextMember, IsEmptyForAnythingThatIsNoText) {
  const Json object = {{"text", "x"}, {"number", 1}};
  EXPECT_EQ(text_member(object, "text"), "x");
  EXPECT_EQ(text_member(object, "number"), "");
  EXPECT_EQ(text_member(object, "absent"), "");
  EXPECT_EQ(text_member(Json::array({"text"}), "text"), "");
  EXPECT_EQ(text_member(Json(), "text"), "");
}

}  // namespace
}  // namespace holdfast
