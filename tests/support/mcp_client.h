// A client of `holdfast mcp` that takes nothing on trust: it speaks raw lines, and each line of the bridge's stdout is
// checked (strict JSON, ASCII, one JSON-RPC message, under 1 MiB; a tool's answer against its output schema).
//
//   McpClient client(bench);                                      // initialized, 2025-11-25
//   const Json keys = client.lease("a.txt");                      // the arguments that later calls need
//   EXPECT_EQ(client.call("file_write", keys, {{"content", "new"}}).code(), "");
//
// In the modern era request() adds _meta. What comes beside an awaited answer is kept in heard().
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "support/workbench.h"

namespace holdfast::support {

constexpr const char* kModernVersion = "2026-07-28";
constexpr const char* kSubscriptionKey = "io.modelcontextprotocol/subscriptionId";

struct Called {
  Json response;  // the whole message
  Json document;  // structuredContent

  bool is_error() const { return response.contains("error") || response["result"].value("isError", false); }
  std::string code() const;     // of the refusal; "protocol error N" where there is no result; "" where all is well
  std::string message() const;  // of the refusal
};

class McpClient {
 public:
  // `version`: a legacy revision to initialize with, kModernVersion, or "" to say nothing at first.
  explicit McpClient(const Workbench& bench, std::string version = "2025-11-25", const Environment& environment = {});
  McpClient(std::unique_ptr<Child> bridge, std::string version);

  Child& bridge() { return *bridge_; }
  void send_line(const std::string& raw) { bridge_->write(raw + "\n"); }
  void send(const Json& message);
  // The next message; null at the end of the bridge's output or after the limit.
  Json receive(int limit_ms = 20'000);
  // The next of this method; others are kept in heard().
  Json receive_notification(const std::string& method, int limit_ms = 20'000);

  Json start(const std::string& method, Json params = Json::object());  // sends it; its id
  Json start_call(const std::string& tool, const Json& arguments, const Json& meta = Json::object());
  Json response_to(const Json& id, int limit_ms = 20'000);
  Json request(const std::string& method, Json params = Json::object()) { return response_to(start(method, params)); }
  Called call(const std::string& tool, Json arguments = Json::object(), const Json& more = Json::object());
  Called called(const std::string& tool, const Json& response) const;
  // Acquires; {scope, owner, task, generation, started_at}.
  Json lease(const std::string& scope, const std::string& owner = "alice", const Json& more = Json::object());

  const std::vector<Json>& heard() const { return heard_; }
  std::vector<Json> heard(const std::string& method) const;
  bool answers() { return request("tools/list").contains("result"); }  // the service goes on
  // Closes its input and waits for its end; milliseconds, or -1 where it had to be killed.
  long end(int limit_ms = 10'000);

 private:
  void open();
  std::unique_ptr<Child> bridge_;
  std::string version_;
  std::int64_t last_id_ = 0;
  std::vector<Json> heard_;
};

Json keys_of_lease(const Json& record);

}  // namespace holdfast::support
