#include "engine/exclusions.h"

#include "base/json.h"
#include "engine/session_binding.h"

namespace holdfast::engine {
namespace {
constexpr const char* kPath = "control/exclusions.json";

Refusal invalid(const std::string& why) {
  return Refusal(Code::exclusions_invalid, std::string("exclusions_invalid: ") + kPath + ": " + why,
                 Json{{"path", kPath}});
}

// "project:/x" and "x" are accepted beside the full form: a person writes this file.
Result<Scope> scope_in_file(const std::string& text) {
  if (text.find("://") != std::string::npos) return parse_canonical_scope(text);
  if (text.starts_with("project:/")) return parse_canonical_scope("file://" + text);
  return parse_canonical_scope("file://project:/" + text);
}
}  // namespace

Result<void> check_exclusions(Context& context, const Scope& scope) {
  HF_TRY(const auto bytes, context.files->read(kPath));
  if (!bytes) return {};
  JsonProblem problem;
  const auto document = parse_json(*bytes, &problem);
  if (!document || !document->is_object()) return invalid(document ? "no object" : problem.text);
  SessionBindings bindings(context);
  for (const auto& [list, code] : {std::pair{"packages", Code::package_excluded}, {"sources", Code::source_excluded}}) {
    const Json entries = document->value(list, Json::array());
    if (!entries.is_array()) return invalid(std::string(list) + " is no list");
    for (const Json& entry : entries) {
      if (!entry.is_string()) return invalid(std::string(list) + " has an entry that is no string");
      const auto excluded = scope_in_file(entry.get<std::string>());
      if (!excluded.ok()) return invalid(excluded.refusal().message());
      HF_TRY(const bool bound, bindings.bound(scope, *excluded));
      if (!bound && !overlaps(scope, *excluded)) continue;
      return Refusal(code,
                     std::string(facts_of(code).name) + ": " + scope.display() + " is never leased for writing (" +
                         excluded->display() + ")",
                     Json{{"scope", scope.full()}, {"excluded", excluded->full()}, {"path", kPath}});
    }
  }
  return {};
}

}  // namespace holdfast::engine
