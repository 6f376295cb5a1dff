// JSON-RPC in its strict form: which line is which, and what cannot be read (field reports M32, M34, M35).
#include "surfaces/mcp/message.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace holdfast::mcp {
namespace {

Item only_item(std::string_view line) {
  ParsedLine parsed = parse_line(line);
  EXPECT_FALSE(parsed.is_batch) << line;
  EXPECT_EQ(parsed.items.size(), 1U) << line;
  return parsed.items.at(0);
}
Problem problem_in(std::string_view line) {
  Item item = only_item(line);
  EXPECT_TRUE(std::holds_alternative<Problem>(item)) << line;
  return std::holds_alternative<Problem>(item) ? std::get<Problem>(item) : Problem{0, "", Json(), Json()};
}
Message message_in(std::string_view line) {
  Item item = only_item(line);
  EXPECT_TRUE(std::holds_alternative<Message>(item)) << line;
  return std::holds_alternative<Message>(item) ? std::get<Message>(item) : Message{};
}
std::string request_with_id(const std::string& id) { return R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":"ping"})"; }

// M35: an id comes back as it was sent, type and all.
TEST(Line, M35KeepsTheIdOfARequestExactly) {
  for (const char* id : {"0", "-1", "9007199254740993", "18446744073709551615", "-9223372036854775808", R"("")",
                         R"("0")", R"("9007199254740993")", R"("\u2028\ud83d\ude00")"}) {
    const Message message = message_in(request_with_id(id));
    EXPECT_EQ(message.kind, Message::Kind::request) << id;
    EXPECT_EQ(message.id, *parse_json(id)) << id;
    EXPECT_EQ(parse_json(dump_ascii(result_message(message.id, Json::object())))->at("id"), *parse_json(id)) << id;
  }
}

TEST(Line, M35RefusesAnIdThatIsNeitherTextNorInteger) {
  for (const char* id : {"null", "1.5", "1e3", "true", "[]", "{}", "[1]", "18446744073709551616"}) {
    const Problem problem = problem_in(request_with_id(id));
    EXPECT_EQ(problem.code, kInvalidRequest) << id;
    EXPECT_TRUE(problem.id.is_null()) << id;
    EXPECT_FALSE(problem_message(problem).contains("id")) << "MCP has no null ids";
  }
}

TEST(Line, RefusesAnIdThatWouldMakeEachAnswerLong) {
  EXPECT_EQ(message_in(request_with_id('"' + std::string(kIdMax, 'i') + '"')).id, std::string(kIdMax, 'i'));
  EXPECT_EQ(problem_in(request_with_id('"' + std::string(kIdMax + 1, 'i') + '"')).code, kInvalidRequest);
}

TEST(Line, TellsNotificationsAndResponsesFromRequests) {
  EXPECT_EQ(message_in(R"({"jsonrpc":"2.0","method":"x"})").kind, Message::Kind::notification);
  EXPECT_EQ(message_in(R"({"jsonrpc":"2.0","method":"x","params":[1]})").kind, Message::Kind::notification);
  EXPECT_EQ(message_in(R"({"jsonrpc":"2.0","id":1,"result":{}})").kind, Message::Kind::response);
  EXPECT_EQ(message_in(R"({"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}})").kind, Message::Kind::response);
}

TEST(Line, RefusesFormsThatAreNone) {
  const auto code = [](const char* line) { return problem_in(line).code; };
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":1,"result":{},"error":{}})"), kInvalidRequest);
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","result":{}})"), kInvalidRequest);
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":1,"method":"x","result":{}})"), kInvalidRequest);
  EXPECT_EQ(code(R"({"jsonrpc":"1.0","id":1,"method":"x"})"), kInvalidRequest);
  EXPECT_EQ(code(R"({"id":1,"method":"x"})"), kInvalidRequest);
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":1})"), kInvalidRequest);
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":1,"method":""})"), kInvalidRequest);
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":1,"method":7})"), kInvalidRequest);
  // M34: params null
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":1,"method":"x","params":null})"), kInvalidParams);
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":1,"method":"x","params":[]})"), kInvalidParams);
  for (const char* line : {"1", "\"x\"", "null", "true", "{}"}) EXPECT_EQ(code(line), kInvalidRequest) << line;
  EXPECT_EQ(problem_in(R"({"jsonrpc":"1.0","id":"a","method":"x"})").id, "a");
}

TEST(Line, IsNoJsonWhereTwoReadersCouldDiffer) {
  const auto code = [](const std::string& line) { return problem_in(line).code; };
  for (const std::string& line :
       {std::string("{"), std::string("x"), std::string("{\"a\":NaN}"), std::string("{\"a\":1e400}"),
        std::string("{\"a\":Infinity}"), std::string("{\"a\":\"\\ud800\"}"), std::string("{\"a\":\"\\udc00\\ud800\"}"),
        std::string("{\"a\":\"\xff\"}"), std::string("{\"a\":\"\xed\xa0\x80\"}"), std::string("{} {}"),
        std::string("{}\0x", 4), std::string("\"\x01\""), std::string("'a'"), std::string("{\"a\":01}")}) {
    EXPECT_EQ(code(line), kParseError) << line;
  }
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":1,"method":"x","params":{"a":[{"b":1,"b":2}]}})"), kInvalidRequest);
  EXPECT_EQ(code(std::string(100'000, '[')), kInvalidRequest);
  EXPECT_EQ(code(R"({"a":)" + std::string(100'000, '{')), kParseError);
}

// Whoever sent it is not left waiting, and nobody is given the id of another message.
TEST(Line, GivesTheIdOfATextThatIsRefusedAsAWholeOnlyWhereThereIsNoDoubt) {
  const auto id = [](const std::string& line) { return problem_in(line).id; };
  EXPECT_EQ(id(R"({"jsonrpc":"2.0","id":7,"method":"x","params":{"a":1,"a":2}})"), 7);
  EXPECT_EQ(id(R"({"params":{"id":9,"a":1,"a":2},"id":"x"})"), "x");
  EXPECT_TRUE(id(R"({"id":1,"id":2,"method":"x"})").is_null());
  EXPECT_TRUE(id(R"({"params":{"id":9,"a":1,"a":2}})").is_null());
  EXPECT_TRUE(id(R"({"id":null,"a":1,"a":2})").is_null());
  EXPECT_TRUE(id(R"({"id":[3],"a":1,"a":2})").is_null());
  EXPECT_TRUE(id("{\"id\":3,\"a\":\"\xff\"}").is_null());
  EXPECT_TRUE(id(R"([{"id":3,"a":1,"a":2}])").is_null());
}

TEST(Line, OfABatchHoldsEachOfItsMessages) {
  const ParsedLine parsed = parse_line(R"([{"jsonrpc":"2.0","id":1,"method":"a"},3,{"jsonrpc":"2.0","method":"b"}])");
  ASSERT_TRUE(parsed.is_batch);
  ASSERT_EQ(parsed.items.size(), 3U);
  EXPECT_TRUE(std::holds_alternative<Message>(parsed.items[0]));
  EXPECT_TRUE(std::holds_alternative<Problem>(parsed.items[1]));
  EXPECT_TRUE(parse_line("[]").is_batch);
  EXPECT_TRUE(parse_line("[]").items.empty());
}

// What a client sends is quoted, never reflected as a whole: replies stay short.
TEST(ProblemMessage, StaysShortHoweverLongTheLineWas) {
  const std::string name(3U << 20U, '\x7f');
  for (const std::string& line : {"{\"" + name + "\":1,\"" + name + "\":2}", "{\"a\":\"" + name, name}) {
    EXPECT_LT(dump_ascii(problem_message(problem_in(line))).size(), 20'000U);
  }
  const Problem large{kInternalError, std::string(1U << 20U, 'm'), Json{{"x", std::string(1U << 20U, 'd')}}, Json(1)};
  EXPECT_LT(dump_ascii(problem_message(large)).size(), 20'000U);
  EXPECT_EQ(problem_message(large)["id"], 1);
}

}  // namespace
}  // namespace holdfast::mcp
