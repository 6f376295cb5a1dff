#include "support/schema.h"

#include <algorithm>
#include <regex>

namespace holdfast::support {
namespace {

bool is_of_type(const Json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  if (type == "boolean") return value.is_boolean();
  return type == "null" && value.is_null();
}

std::string members_problem(const Json& schema, const Json& value, const std::string& at) {
  const Json properties = schema.value("properties", Json::object());
  for (const Json& name : schema.value("required", Json::array())) {
    if (!value.contains(name.get<std::string>())) return at + " lacks " + name.get<std::string>();
  }
  for (const auto& [name, member] : value.items()) {
    if (!properties.contains(name)) {
      if (schema.value("additionalProperties", true)) continue;
      return at + " has " + name;
    }
    if (auto wrong = schema_problem(properties[name], member, at + "." + name); !wrong.empty()) return wrong;
  }
  return "";
}

std::string elements_problem(const Json& schema, const Json& value, const std::string& at) {
  if (value.size() < schema.value("minItems", std::size_t{0})) return at + " has too few elements";
  if (schema.contains("maxItems") && value.size() > schema["maxItems"].get<std::size_t>()) return at + " has too many";
  for (std::size_t index = 0; schema.contains("items") && index < value.size(); ++index) {
    const std::string here = at + "[" + std::to_string(index) + "]";
    if (auto wrong = schema_problem(schema["items"], value[index], here); !wrong.empty()) return wrong;
  }
  return "";
}

std::string scalar_problem(const Json& schema, const Json& value, const std::string& at) {
  if (schema.contains("enum")) {
    const Json& all = schema["enum"];
    if (std::find(all.begin(), all.end(), value) == all.end()) return at + " is none of the enumeration";
  }
  if (value.is_number() && schema.contains("minimum") && value < schema["minimum"]) return at + " is too small";
  if (value.is_number() && schema.contains("maximum") && value > schema["maximum"]) return at + " is too large";
  if (value.is_string() && schema.contains("pattern") &&
      !std::regex_search(value.get<std::string>(), std::regex(schema["pattern"].get<std::string>()))) {
    return at + " does not match";
  }
  return "";
}

}  // namespace

std::string schema_problem(const Json& schema, const Json& value, const std::string& at) {
  for (const auto& [keyword, of] : schema.items()) {
    static constexpr const char* kKnown[] = {"type",    "description", "properties", "required", "additionalProperties",
                                             "items",   "minItems",    "maxItems",   "enum",     "minimum",
                                             "maximum", "pattern",     "anyOf"};
    const bool is_known = std::any_of(std::begin(kKnown), std::end(kKnown),
                                      [&, &word = keyword](const char* one) { return word == one; });
    if (!is_known) return at + ": this check does not know the keyword " + keyword;
  }
  if (schema.contains("type")) {
    const Json types = schema["type"].is_array() ? schema["type"] : Json::array({schema["type"]});
    const bool fits =
        std::any_of(types.begin(), types.end(), [&](const Json& type) { return is_of_type(value, type); });
    if (!fits) return at + " is no " + types.dump();
  }
  if (schema.contains("anyOf")) {
    std::string all;
    for (const Json& one : schema["anyOf"]) {
      const std::string wrong = schema_problem(one, value, at);
      if (wrong.empty())
        return value.is_object() ? members_problem(schema, value, at) : scalar_problem(schema, value, at);
      all += (all.empty() ? "" : "; ") + wrong;
    }
    return at + " is nothing of anyOf: " + all;
  }
  if (auto wrong = scalar_problem(schema, value, at); !wrong.empty()) return wrong;
  if (value.is_object()) return members_problem(schema, value, at);
  return value.is_array() ? elements_problem(schema, value, at) : "";
}

}  // namespace holdfast::support
