// JSON-RPC 2.0 as MCP uses it: one line in, its messages out; and the lines that answer.
//
// parse_line looks at form only: jsonrpc, id, method, params, one result or error. What a method means comes later.
// Promises: a line that is none is a Problem with the code that JSON-RPC names, and with the id where one can be read
// without doubt, so that whoever sent it is not left waiting; ids come back as they were, a string as a string; what a
// Problem quotes of the line is cut, so that the line which tells it is short however long that one was.
// Does not promise: that a batch is legal; that depends on what was negotiated.
// Threads: pure functions. Source: JSON-RPC 2.0; MCP 2025-11-25 and 2026-07-28, "Messages".
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "holdfast/refusal.h"

namespace holdfast::mcp {

constexpr std::size_t kIdMax = 256;  // bytes of an id that is a string: each answer carries it
constexpr std::size_t kProblemTextMax = 1000;
constexpr std::size_t kProblemDataMax = 16U << 10U;

constexpr int kParseError = -32700;
constexpr int kInvalidRequest = -32600;
constexpr int kMethodNotFound = -32601;
constexpr int kInvalidParams = -32602;
constexpr int kInternalError = -32603;
constexpr int kUnsupportedVersion = -32022;
constexpr int kResourceNotFound = -32002;  // 2025-11-25 and earlier only

// What goes wrong with a request as a whole. `id` is null where it cannot be known.
struct Problem {
  int code = kInternalError;
  std::string message;
  Json data;
  Json id;
};

struct Message {
  enum class Kind { request, notification, response } kind = Kind::notification;
  Json id;
  std::string method;
  Json params = Json::object();
  Json answer;  // of a response: {"result"} or {"error"}
};

using Item = std::variant<Message, Problem>;

struct ParsedLine {
  bool is_batch = false;
  std::vector<Item> items;
};

ParsedLine parse_line(std::string_view line);

Json result_message(const Json& id, Json result);
Json problem_message(const Problem& problem);  // without an id where that is null: MCP has no null ids
Json notification_message(std::string_view method, Json params);

}  // namespace holdfast::mcp
