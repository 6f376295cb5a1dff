#include "support/mcp_client.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "base/json.h"
#include "support/schema.h"
#include "surfaces/mcp/tool.h"

namespace holdfast::support {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

std::string Called::code() const {
  if (response.is_null()) return "no answer";
  if (response.contains("error")) return "protocol error " + response["error"]["code"].dump();
  return is_error() ? text_member(document.value("error", Json::object()), "code") : "";
}

std::string Called::message() const { return text_member(document.value("error", Json::object()), "message"); }

McpClient::McpClient(const Workbench& bench, std::string version, const Environment& environment)
    : bridge_(bench.start({"mcp"}, environment)), version_(std::move(version)) {
  open();
}

McpClient::McpClient(std::unique_ptr<Child> bridge, std::string version)
    : bridge_(std::move(bridge)), version_(std::move(version)) {
  open();
}

void McpClient::open() {
  if (version_.empty() || version_ == kModernVersion) return;
  const Json answer = request("initialize", {{"protocolVersion", version_},
                                             {"capabilities", Json::object()},
                                             {"clientInfo", {{"name", "test"}, {"version", "1"}}}});
  EXPECT_TRUE(answer.contains("result")) << answer.dump();
  send({{"jsonrpc", "2.0"}, {"method", "notifications/initialized"}});
}

void McpClient::send(const Json& message) { send_line(dump_ascii(message)); }

Json McpClient::receive(int limit_ms) {
  const std::string line = bridge_->read_line(limit_ms);
  if (line.empty()) return {};
  EXPECT_LT(line.size(), std::size_t{1} << 20U) << line.substr(0, 300);
  EXPECT_TRUE(std::all_of(line.begin(), line.end(), [](char one) { return one >= 0x20 && one < 0x7F; }))
      << line.substr(0, 300);
  const auto message = parse_json(line);
  if (!message) {
    ADD_FAILURE() << "no JSON on stdout: " << line.substr(0, 300);
    return Json::object();
  }
  const Json all = message->is_array() ? *message : Json::array({*message});
  for (const Json& one : all) EXPECT_EQ(text_member(one, "jsonrpc"), "2.0") << line.substr(0, 300);
  return *message;
}

Json McpClient::receive_notification(const std::string& method, int limit_ms) {
  const auto end = steady_clock::now() + milliseconds(limit_ms);
  for (auto left = milliseconds(limit_ms); left.count() > 0;) {
    const Json message = receive(static_cast<int>(left.count()));
    if (message.is_null() || text_member(message, "method") == method) return message;
    heard_.push_back(message);
    left = std::chrono::duration_cast<milliseconds>(end - steady_clock::now());
  }
  return {};
}

Json McpClient::start(const std::string& method, Json params) {
  if (version_ == kModernVersion) {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = kModernVersion;
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = Json::object();
  }
  const Json id = ++last_id_;
  send({{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", std::move(params)}});
  return id;
}

Json McpClient::start_call(const std::string& tool, const Json& arguments, const Json& meta) {
  Json params = {{"name", tool}, {"arguments", arguments}};
  if (!meta.empty()) params["_meta"] = meta;
  return start("tools/call", std::move(params));
}

Json McpClient::response_to(const Json& id, int limit_ms) {
  const auto is_it = [&](const Json& message) {
    return message.is_object() && message.contains("id") && message["id"] == id && !message.contains("method");
  };
  if (const auto found = std::find_if(heard_.begin(), heard_.end(), is_it); found != heard_.end()) {
    Json message = *found;
    heard_.erase(found);
    return message;
  }
  for (;;) {
    Json message = receive(limit_ms);
    if (message.is_null()) return message;
    if (is_it(message)) {
      EXPECT_NE(message.contains("result"), message.contains("error")) << message.dump().substr(0, 300);
      return message;
    }
    heard_.push_back(std::move(message));
  }
}

Called McpClient::called(const std::string& tool, const Json& response) const {
  Called called{response, Json::object()};
  if (!response.is_object() || !response.contains("result")) return called;
  const Json& result = response["result"];
  called.document = result.value("structuredContent", Json::object());
  const auto text = parse_json(text_member(result["content"].at(0), "text"));
  EXPECT_TRUE(text && *text == called.document) << "the text is not the same JSON";
  EXPECT_EQ(schema_problem(mcp::output_schema(*mcp::find_tool(tool)), called.document), "") << tool;
  EXPECT_EQ(result.value("isError", false), called.document.contains("error")) << tool;
  EXPECT_EQ(result.contains("resultType"), version_ == kModernVersion);
  return called;
}

Called McpClient::call(const std::string& tool, Json arguments, const Json& more) {
  arguments.update(more);
  return called(tool, response_to(start_call(tool, arguments)));
}

Json McpClient::lease(const std::string& scope, const std::string& owner, const Json& more) {
  const Called got = call("lease_acquire", {{"scope", scope}, {"owner", owner}, {"task", "task-1"}}, more);
  EXPECT_EQ(got.code(), "") << got.response.dump();
  return got.is_error() ? Json::object() : keys_of_lease(got.document["leases"][0]);
}

std::vector<Json> McpClient::heard(const std::string& method) const {
  std::vector<Json> found;
  for (const Json& one : heard_) {
    if (text_member(one, "method") == method) found.push_back(one);
  }
  return found;
}

long McpClient::end(int limit_ms) {
  const auto began = steady_clock::now();
  bridge_->close_input();
  if (bridge_->wait(limit_ms) == -1000) return -1;
  return std::chrono::duration_cast<milliseconds>(steady_clock::now() - began).count();
}

Json keys_of_lease(const Json& record) {
  return Json{{"scope", text_member(record, "namespace") + "://" + text_member(record, "resource_id")},
              {"owner", record["owner"]},
              {"task", record["task_id"]},
              {"generation", record["generation"]},
              {"started_at", record["started_at"]}};
}

}  // namespace holdfast::support
