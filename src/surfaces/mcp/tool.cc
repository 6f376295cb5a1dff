#include "surfaces/mcp/tool.h"

#include <algorithm>

#include "base/json.h"

namespace holdfast::mcp {
namespace {

constexpr std::uint64_t kDoubleMax = 1ULL << 53U;

Json schema_of(const ArgumentSpec& spec) {
  Json schema;
  switch (spec.kind) {
    case ArgumentKind::text: schema = {{"type", "string"}}; break;
    case ArgumentKind::number_text:
      schema = {{"anyOf",
                 {{{"type", "string"}, {"pattern", "^(0|[1-9][0-9]*)$"}},
                  {{"type", "integer"}, {"minimum", 0}, {"maximum", kDoubleMax}}}}};
      break;
    case ArgumentKind::whole_number: schema = {{"type", "integer"}, {"minimum", 0}, {"maximum", kDoubleMax}}; break;
    case ArgumentKind::seconds: schema = {{"type", "integer"}, {"minimum", 1}}; break;
    case ArgumentKind::boolean: schema = {{"type", "boolean"}}; break;
    case ArgumentKind::text_list:
      schema = {{"type", "array"}, {"items", {{"type", "string"}}}, {"minItems", 1}, {"maxItems", 1000}};
      break;
    case ArgumentKind::replacement_list: {
      const Json text = {{"type", "string"}};
      schema = {{"type", "array"},
                {"minItems", 1},
                {"items",
                 {{"type", "object"},
                  {"properties", {{"old", text}, {"new", text}, {"old_base64", text}, {"new_base64", text}}},
                  {"additionalProperties", false}}}};
      break;
    }
  }
  schema["description"] = spec.description;
  return schema;
}

Refusal wrong(const ArgumentSpec& spec, const std::string& why, Code code = Code::usage) {
  return Refusal(code, std::string(spec.name) + " " + why, Json{{"argument", spec.name}})
      .with_hint("see the tool's input schema");
}

Result<void> check_number(const ArgumentSpec& spec, const Json& value) {
  if (!value.is_number()) return wrong(spec, "is no number");
  if (!value.is_number_integer()) return wrong(spec, "is no integer", Code::number_invalid);
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > kDoubleMax) {
    return wrong(spec, "is more than a double can carry: send it as a string", Code::number_invalid);
  }
  if (value < 0) return wrong(spec, "is negative", Code::number_invalid);
  return {};
}

Result<void> check_list(const ArgumentSpec& spec, const Json& value) {
  if (!value.is_array() || value.empty()) return wrong(spec, "is no list, or an empty one");
  if (spec.kind == ArgumentKind::replacement_list) {
    const bool objects = std::all_of(value.begin(), value.end(), [](const Json& one) { return one.is_object(); });
    return objects ? Result<void>() : wrong(spec, "has an element that is no object");
  }
  if (value.size() > 1000) return wrong(spec, "has more than 1000 elements");
  const bool texts = std::all_of(value.begin(), value.end(), [](const Json& one) { return one.is_string(); });
  return texts ? Result<void>() : wrong(spec, "has an element that is no text");
}

Result<void> check_value(const ArgumentSpec& spec, const Json& value) {
  switch (spec.kind) {
    case ArgumentKind::text: return value.is_string() ? Result<void>() : wrong(spec, "is no text");
    case ArgumentKind::boolean: return value.is_boolean() ? Result<void>() : wrong(spec, "is neither true nor false");
    case ArgumentKind::number_text: return value.is_string() ? Result<void>() : check_number(spec, value);
    case ArgumentKind::whole_number: return check_number(spec, value);
    case ArgumentKind::seconds:
      // How long a lease may be is the engine's to say, fractions and nonsense included: lease_ttl_invalid.
      return value.is_number() ? Result<void>() : wrong(spec, "is no number of seconds");
    case ArgumentKind::text_list:
    case ArgumentKind::replacement_list: return check_list(spec, value);
  }
  return wrong(spec, "cannot be checked");
}

}  // namespace

const Tool* find_tool(std::string_view name) {
  const auto found = std::find_if(tools().begin(), tools().end(), [&](const Tool& one) { return one.name == name; });
  return found == tools().end() ? nullptr : &*found;
}

Json input_schema(const Tool& tool) {
  Json properties = Json::object();
  Json required = Json::array();
  for (const ArgumentSpec& spec : tool.arguments) {
    properties[std::string(spec.name)] = schema_of(spec);
    if (spec.required) required.push_back(spec.name);
  }
  Json schema = {{"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
  if (!required.empty()) schema["required"] = std::move(required);
  return schema;
}

Json output_schema(const Tool& tool) {
  Json required = Json::array();
  for (const auto& [name, schema] : tool.success.items()) required.push_back(name);
  const Json error = {
      {"type", "object"},
      {"description", "A refusal: the code is stable, the message names holder and reason, next says what to do."},
      {"properties",
       {{"code", {{"type", "string"}}},
        {"message", {{"type", "string"}}},
        {"effect", {{"enum", {"none", "applied", "unknown"}}}},
        {"next", {{"type", "object"}}},
        {"details", {{"type", "object"}}},
        {"evidence", {{"anyOf", {{{"type", "string"}}, {{"type", "null"}}}}}}}},
      {"required", {"code", "message", "effect", "next", "details"}}};
  Json properties = tool.success;
  properties["error"] = error;
  return Json{{"type", "object"},
              {"properties", std::move(properties)},
              {"anyOf", {{{"required", std::move(required)}}, {{"required", {"error"}}}}}};
}

Result<void> check_arguments(const Tool& tool, const Json& arguments) {
  for (const auto& [name, value] : arguments.items()) {
    const auto spec = std::find_if(tool.arguments.begin(), tool.arguments.end(),
                                   [&, &named = name](const ArgumentSpec& one) { return one.name == named; });
    if (spec == tool.arguments.end()) {
      const std::string shown = printable(name.substr(0, 200));
      return Refusal(Code::usage, shown + " is no argument of " + std::string(tool.name), Json{{"argument", shown}})
          .with_hint("see the tool's input schema");
    }
    HF_CHECK(check_value(*spec, value));
  }
  for (const ArgumentSpec& spec : tool.arguments) {
    if (spec.required && !arguments.contains(spec.name)) return wrong(spec, "is missing");
  }
  return {};
}

std::size_t reply_size(const Json& document) {
  constexpr std::size_t kAround = 2048;  // the frame of JSON-RPC and of the tool result; an id, escaped
  const std::string text = dump_ascii(document);
  const auto escaped = std::count_if(text.begin(), text.end(), [](char one) { return one == '"' || one == '\\'; });
  return 2 * text.size() + static_cast<std::size_t>(escaped) + kAround;
}

}  // namespace holdfast::mcp
