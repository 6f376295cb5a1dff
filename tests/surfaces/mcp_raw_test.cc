// Lines that no well-behaved client sends: each is answered as the protocol says, and the service goes on (field
// reports M29, M32, M34, M35).
#include <gtest/gtest.h>

#include "base/base64.h"
#include "base/json.h"
#include "support/mcp_client.h"

namespace holdfast {
namespace {

using support::Called;
using support::kModernVersion;
using support::McpClient;
using support::Workbench;

constexpr int kNothingMs = 300;  // how long an answer that has to stay away is waited for

class RawLines : public testing::Test {
 protected:
  RawLines() {
    bench_.put("a.txt", "old");
    bench_.serve();
  }
  // The answer to one line; the next request shows that the service goes on.
  static Json answer_to(McpClient& client, const std::string& line) {
    client.send_line(line);
    Json answer = client.receive();
    EXPECT_TRUE(client.answers()) << line.substr(0, 100);
    return answer;
  }
  static int code_of(const Json& answer) { return answer.contains("error") ? answer["error"]["code"].get<int>() : 0; }
  static std::string call_line(const std::string& id, const std::string& tool, const std::string& arguments) {
    return R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":"tools/call","params":{"name":")" + tool +
           R"(","arguments":)" + arguments + "}}";
  }
  Workbench bench_;
};

TEST_F(RawLines, M34ThatAreNoJsonAreToldAndTheServiceGoesOn) {
  for (const char* version : {"2024-11-05", "2025-03-26", "2025-11-25", kModernVersion}) {
    McpClient client(bench_, version);
    for (const std::string& line :
         {std::string("not json"), std::string("{"), std::string("\xff\xfe"), std::string("{\"a\":NaN}"),
          std::string("{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":{\"n\":1e400}}"),
          std::string("{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":{\"n\":-Infinity}}"),
          std::string("{\"a\":\"\\ud800\"}"), std::string("{\"a\":\"\\udfff\\ud800\"}"),
          std::string("{\"a\":\"\xff\"}"), std::string("{}\0{}", 5), std::string("{} {}")}) {
      const Json answer = answer_to(client, line);
      EXPECT_EQ(code_of(answer), -32700) << line;
      EXPECT_FALSE(answer.contains("id")) << answer;
    }
  }
}

TEST_F(RawLines, WithADuplicateKeyAtAnyDepthAreRefusedWithTheirId) {
  McpClient client(bench_);
  std::string deep = "1";
  for (int depth = 0; depth < 50; ++depth) deep = R"({"a":)" + deep + "}";
  const std::string nested = R"({"a":)" + deep + R"(,"a":2})";
  for (const std::string& line :
       {call_line("71", "file_read", R"({"scope":"a.txt","scope":"b.txt"})"),
        call_line("71", "lease_list", R"({"x":[1,[{"b":1,"b":1}]]})"), call_line("71", "lease_list", nested),
        call_line("71", "lease_list", R"({"k":1,"\u006b":2})")}) {
    const Json answer = answer_to(client, line);
    EXPECT_EQ(code_of(answer), -32600) << line;
    EXPECT_EQ(answer["id"], 71);
  }
  // Which of two ids is meant nobody knows.
  EXPECT_FALSE(answer_to(client, R"({"jsonrpc":"2.0","id":1,"id":2,"method":"ping"})").contains("id"));
}

TEST_F(RawLines, ThatAreDepthBombsAreRefused) {
  McpClient client(bench_);
  const std::string bomb = std::string(200'000, '[') + std::string(200'000, ']');
  EXPECT_EQ(code_of(answer_to(client, call_line("72", "lease_list", bomb))), -32600);
  EXPECT_EQ(code_of(answer_to(client, bomb)), -32600);
  EXPECT_EQ(code_of(answer_to(client, std::string(1U << 20U, '['))), -32600);
  std::string objects;
  for (int depth = 0; depth < 100'000; ++depth) objects += R"({"a":)";
  EXPECT_EQ(code_of(answer_to(client, objects)), -32600);
}

// M32: refused, not rounded.
TEST_F(RawLines, M32ANumberThatNoDoubleCarriesIsRefusedAndNotRounded) {
  McpClient client(bench_);
  const Json keys = client.lease("a.txt");
  for (const char* generation :
       {"9007199254740993", "18446744073709551615", "18446744073709551616", "-1", "1.0", "1e0", "true", "null"}) {
    Json arguments = keys;
    arguments["generation"] = "GENERATION";
    std::string text = dump_ascii(arguments);
    text.replace(text.find("\"GENERATION\""), 12, generation);
    const Json answer = answer_to(client, call_line("73", "lease_heartbeat", text));
    EXPECT_TRUE(answer["result"]["isError"] == true) << generation;
  }
  EXPECT_EQ(client.call("lease_heartbeat", keys).code(), "");
}

TEST_F(RawLines, M35WithAnyLegalIdAreAnsweredWithIt) {
  McpClient client(bench_);
  for (const char* id : {"0", "-5", "9007199254740992", "9007199254740993", "18446744073709551615", R"("")", R"("0")",
                         R"("\u2028\u0000")", R"("null")"}) {
    client.send_line(R"({"jsonrpc":"2.0","method":"ping","id":)" + std::string(id) + "}");
    const Json answer = client.receive();
    EXPECT_EQ(answer["id"], *parse_json(id)) << id;
    EXPECT_EQ(answer["id"].type(), parse_json(id)->type()) << id;
  }
}

TEST_F(RawLines, M35WithANullIdOrNoneThatCountsAreRefusedWithoutAnId) {
  for (const char* version : {"2025-11-25", kModernVersion}) {
    McpClient client(bench_, version);
    for (const char* id : {"null", "1.5", "[]", "{}", "true", "1e400"}) {
      const Json answer = answer_to(client, R"({"jsonrpc":"2.0","method":"ping","id":)" + std::string(id) + "}");
      EXPECT_TRUE(code_of(answer) == -32600 || std::string(id) == "1e400") << answer;
      EXPECT_FALSE(answer.contains("id")) << answer;
    }
  }
}

TEST_F(RawLines, M35NotificationsAreNeverAnswered) {
  for (const char* version : {"2025-11-25", kModernVersion}) {
    McpClient client(bench_, version);
    client.send_line(R"({"jsonrpc":"2.0","method":"notifications/no-such"})");
    client.send_line(R"({"jsonrpc":"2.0","method":"tools/list"})");
    client.send_line(R"({"jsonrpc":"2.0","method":"tools/call","params":{"name":"lease_list"}})");
    client.send_line(R"({"jsonrpc":"2.0","method":"tools/call","params":[1,2]})");
    client.send_line(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":null}})");
    client.send_line(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":12345}})");
    client.send_line(R"({"jsonrpc":"2.0","id":99,"result":{}})");
    client.send_line("");
    client.send_line(" \t\r");
    EXPECT_TRUE(client.receive(kNothingMs).is_null());
    EXPECT_TRUE(client.answers());
    EXPECT_TRUE(client.heard().empty());
  }
}

TEST_F(RawLines, BatchesAreAnsweredAsOneArrayUnderTheOneRevisionThatHasThem) {
  const std::string batch = R"([{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/x"},)"
                            R"({"jsonrpc":"2.0","id":"two","method":"tools/call","params":{"name":"lease_list"}},7,)"
                            R"({"jsonrpc":"2.0","id":3,"method":"no/such"}])";
  McpClient client(bench_, "2025-03-26");
  client.send_line(batch);
  const Json answers = client.receive();
  ASSERT_TRUE(answers.is_array()) << answers;
  ASSERT_EQ(answers.size(), 4U);
  int found = 0;
  for (const Json& one : answers) {
    if (one.value("id", Json()) == Json(1)) found += one.contains("result") ? 1 : 0;
    if (one.value("id", Json()) == Json("two")) found += one.contains("result") ? 1 : 0;
    if (one.value("id", Json()) == Json(3)) found += code_of(one) == -32601 ? 1 : 0;
    if (!one.contains("id")) found += code_of(one) == -32600 ? 1 : 0;
  }
  EXPECT_EQ(found, 4) << answers;
  client.send_line(R"([{"jsonrpc":"2.0","method":"notifications/x"}])");
  EXPECT_TRUE(client.receive(kNothingMs).is_null());
  EXPECT_EQ(code_of(answer_to(client, "[]")), -32600);
  std::string many = "[7";
  for (int number = 1; number < 1000; ++number) many += ",7";
  EXPECT_EQ(code_of(answer_to(client, many + "]")), -32600);
  for (const char* version : {"", "2024-11-05", "2025-06-18", "2025-11-25", kModernVersion}) {
    McpClient other(bench_, version);
    other.send_line(batch);
    const Json answer = other.receive();
    EXPECT_TRUE(answer.is_object()) << version;
    EXPECT_EQ(code_of(answer), -32600) << version;
  }
}

TEST_F(RawLines, OfEightMebibytesAreTakenAndLongerOnesAreRefused) {
  McpClient client(bench_);
  const std::string front = R"({"jsonrpc":"2.0","id":"long","method":"ping","params":{"x":")";
  const std::string back = R"("}})";
  const std::size_t most = std::size_t{8} << 20U;
  EXPECT_EQ(answer_to(client, front + std::string(most - front.size() - back.size(), 'y') + back)["id"], "long");
  const Json refused = answer_to(client, front + std::string(most - front.size() - back.size() + 1, 'y') + back);
  EXPECT_EQ(code_of(refused), -32600);
  EXPECT_EQ(code_of(answer_to(client, std::string(20U << 20U, 'z'))), -32600);
}

// What a client sends is never reflected as a whole: receive() holds each reply to 1 MiB.
TEST_F(RawLines, ThatAreLongHaveShortAnswersWhereverTheLengthIs) {
  const std::string text(3U << 20U, 'x');
  const std::string controls(1U << 20U, '\x7f');
  for (const char* version : {"2025-11-25", kModernVersion}) {
    McpClient client(bench_, version);
    const auto code = [&](const std::string& method, const Json& params) {
      return code_of(client.request(method, params));
    };
    EXPECT_EQ(code(text, Json::object()), -32601);
    EXPECT_EQ(code("tools/call", {{"name", text}}), -32602);
    EXPECT_EQ(code("resources/read", {{"uri", "holdfast://evidence/" + text}}),
              version == kModernVersion ? -32602 : -32002);
    EXPECT_EQ(code("resources/read", {{"uri", controls}}), version == kModernVersion ? -32602 : -32002);
    for (const Json& arguments : {Json{{text, 1}}, Json{{controls, 1}}}) {
      EXPECT_EQ(client.call("lease_list", arguments).code(), "usage");
    }
    for (const char* argument : {"scope", "owner", "task", "reason", "require"}) {
      Json arguments = {{"scope", "b.txt"}, {"owner", "o"}, {"task", "t"}};
      arguments[argument] = text;
      EXPECT_TRUE(client.call("lease_acquire", arguments).is_error()) << argument;
    }
    answer_to(client, "{\"" + controls + "\":1,\"" + controls + "\":2}");
    answer_to(client, "{\"a\":\"" + text);
    EXPECT_EQ(code_of(answer_to(client, R"({"jsonrpc":"2.0","method":"ping","id":")" + text + "\"}")), -32600);
    client.send({{"jsonrpc", "2.0"},
                 {"id", "v"},
                 {"method", "tools/list"},
                 {"params", {{"_meta", {{"io.modelcontextprotocol/protocolVersion", text}}}}}});
    EXPECT_EQ(code_of(client.receive()), -32022);
    client.response_to(client.start_call("file_read", {{"scope", "a.txt"}}, {{"progressToken", text}}));
  }
  EXPECT_EQ(bench_.run({"leases"}).at("leases").size(), 0U);
}

TEST_F(RawLines, TwoRequestsOfOneIdAtOnceAreToldApart) {
  McpClient client(bench_);
  client.lease("a.txt", "bob");
  const Json waiting = {{"scope", "a.txt"}, {"owner", "alice"}, {"task", "t"}, {"wait_seconds", 60}};
  client.send_line(call_line("\"same\"", "lease_acquire", dump_ascii(waiting)));
  client.send_line(call_line("\"same\"", "lease_list", "{}"));
  const Json answer = client.receive();
  EXPECT_EQ(answer["id"], "same");
  EXPECT_EQ(code_of(answer), -32600);
  client.send({{"jsonrpc", "2.0"}, {"method", "notifications/cancelled"}, {"params", {{"requestId", "same"}}}});
  EXPECT_TRUE(client.answers());
}

// Clients exist that use one id for everything, one request after another.
TEST_F(RawLines, M35AnIdMayBeUsedAgainAsSoonAsItsAnswerIsThere) {
  McpClient client(bench_);
  for (int round = 0; round < 300; ++round) {
    client.send_line(call_line("1", round % 2 == 0 ? "lease_list" : "no_such_tool", "{}"));
    const Json answer = client.receive();
    ASSERT_EQ(code_of(answer), round % 2 == 0 ? 0 : -32602) << answer;
  }
}

// M29: bytes that are no UTF-8 in names and contents come out as valid JSON.
TEST_F(RawLines, M29NamesAndContentsThatAreNoUtf8AreAnsweredAsValidJson) {
  const std::string korean = "\xc7\xd1\xb1\xdb.txt";  // code page 949
  bench_.put(korean, "\xff\x00 bytes");
  bench_.put("content.bin", std::string("\xb0\xa1\xff", 3));
  bench_.put("separators.txt", "a\u2028b\u2029\u0085c\ufeff");
  for (const char* version : {"2025-11-25", kModernVersion}) {
    McpClient client(bench_, version);
    const Called bytes = client.call("file_read", {{"scope", "content.bin"}});
    EXPECT_EQ(base64_decode(text_member(bytes.document, "content_base64")), std::string("\xb0\xa1\xff", 3));
    EXPECT_EQ(client.call("file_read", {{"scope", "separators.txt"}}).document["content"],
              "a\u2028b\u2029\u0085c\ufeff");
    client.lease(".", "folder-owner", {{"ttl_seconds", 30}});
    EXPECT_EQ(client.call("lease_list").code(), "");
    EXPECT_TRUE(client.request("resources/read", {{"uri", "holdfast://leases"}}).contains("result"));
    EXPECT_EQ(client.call("file_read", {{"scope", std::string("a\0b", 3)}}).code(), "scope_control_character");
    for (const Json& lease : client.call("lease_list").document["leases"]) {
      client.call("lease_release", support::keys_of_lease(lease));
    }
  }
}

TEST_F(RawLines, SeparatorsAndEveryOtherTextMakeTheRoundTripUnchanged) {
  McpClient client(bench_);
  const Json keys = client.lease("a.txt");
  for (const std::string& text : {std::string("a\u2028b\u2029"), std::string("\u0000\u0001\u001f\"\\/", 7),
                                  std::string("\U0001F600\ufeff\r\n\r"), std::string()}) {
    ASSERT_EQ(client.call("file_write", keys, {{"content", text}}).code(), "");
    EXPECT_EQ(bench_.get("a.txt"), text);
    EXPECT_EQ(client.call("file_read", {{"scope", "a.txt"}}).document["content"], text);
  }
}

TEST_F(RawLines, WrongShapesOfParametersAreToldWithTheirId) {
  for (const char* params : {"null", "[]", "\"x\"", "3", R"({"name":3})", R"({"name":"lease_list","arguments":[]})",
                             R"({"name":"lease_list","arguments":null})", R"({"name":"lease_list","_meta":7})"}) {
    McpClient client(bench_);
    const Json answer =
        answer_to(client, R"({"jsonrpc":"2.0","id":"p","method":"tools/call","params":)" + std::string(params) + "}");
    EXPECT_EQ(answer["id"], "p") << params;
    EXPECT_EQ(code_of(answer), -32602) << params;
  }
}

}  // namespace
}  // namespace holdfast
