// A tool: what an agent sees of it, and what it does.
//
// Its arguments are described once; the input schema and the check of what arrives are both made from that.
// Promises: a value that the schema does not allow never reaches the engine, and is a refusal that names the argument
// (`usage`, `number_invalid`); an integer that a double cannot carry is refused, not rounded (field report M32).
// Source: CONTRACT section 9; MCP "Tools".
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/result.h"
#include "surfaces/mcp/server_link.h"

namespace holdfast::mcp {

enum class ArgumentKind { text, number_text, whole_number, seconds, boolean, text_list, replacement_list };

struct ArgumentSpec {
  std::string_view name;
  ArgumentKind kind = ArgumentKind::text;
  bool required = false;
  std::string_view description;
};

// What a tool may use while it runs.
struct ToolCall {
  const Json& arguments;  // checked against the specs
  ServerLink& link;
  Cancellation& cancellation;
  const ProgressReport& progress;
  std::size_t reply_limit;  // bytes of the whole line that answers
  const std::function<Result<Json>(const std::string& root)>& doctor;
};

struct Hints {
  bool read_only = false;
  bool destructive = false;
  bool idempotent = false;
};

struct Tool {
  std::string_view name;
  std::string_view title;
  std::string_view description;
  Hints hints;
  std::vector<ArgumentSpec> arguments;
  Json success;  // the members of an answer that is no refusal, as JSON Schema properties
  Result<Json> (*run)(const ToolCall& call);
};

// In the order in which they are listed, which never changes within a release.
const std::vector<Tool>& tools();
const Tool* find_tool(std::string_view name);

Json input_schema(const Tool& tool);
Json output_schema(const Tool& tool);  // a success or a refusal
Result<void> check_arguments(const Tool& tool, const Json& arguments);

// How many bytes the line will have whose tool result is this document: it travels twice, as text and structured.
std::size_t reply_size(const Json& document);

}  // namespace holdfast::mcp
