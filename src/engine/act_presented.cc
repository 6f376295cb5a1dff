#include "engine/act_presented.h"

#include <set>

#include "base/base64.h"
#include "base/digest.h"
#include "base/json.h"
#include "engine/arguments.h"

namespace holdfast::engine {
namespace {

// Members that an act has in some states only, and the bytes, which it names by their digest.
const std::set<std::string, std::less<>> kOfAState = {"consumed_at", "attempt", "payload_base64"};

void compare(const Json& prepared, const Json& presented, Json& differing) {
  for (const auto& [name, value] : presented.items()) {
    if (!prepared.contains(name) || prepared[name] != value) differing.push_back(name);
  }
}

// Of a whole act, as it was shown: what binds it beside the command, and nothing that it does not have. How far it is
// may have changed since.
void compare_binding(const Json& act, const Json& presented, Json& differing) {
  for (const char* name : {"typed_key", "prepared_version", "payload_sha256", "byte_count"}) {
    if (!presented.contains(name) || presented[name] != act[name]) differing.push_back(name);
  }
  for (const auto& [name, value] : presented.items()) {
    if (!act.contains(name) && !kOfAState.contains(name)) differing.push_back(name);
  }
  if (!presented.contains("payload_base64")) return;
  const Json& shown = presented["payload_base64"];
  const auto payload = shown.is_string() ? base64_decode(shown.get_ref<const std::string&>()) : std::nullopt;
  if (!payload || sha256_hex(*payload) != text_member(act, "payload_sha256")) differing.push_back("payload_base64");
}

}  // namespace

Result<void> check_presented(const Json& act, const Json& arguments) {
  if (!arguments.contains("act")) return {};
  Json presented = arguments["act"];
  if (presented.is_object() && presented.value("act", Json()).is_object()) presented = Json(presented["act"]);
  if (!presented.is_object()) return usage("act is no object");
  const Json command = presented.contains("command") ? presented["command"] : presented;
  if (!command.is_object()) return usage("the act's command is no object");
  Json differing = Json::array();
  compare(act["command"], command, differing);
  for (const auto& [name, value] : act["command"].items()) {
    if (!command.contains(name)) differing.push_back(name);
  }
  if (presented.contains("command")) compare_binding(act, presented, differing);
  if (differing.empty()) return {};
  return Refusal(Code::act_mismatch, "act_mismatch: the act that was shown is not the one that was prepared",
                 Json{{"operation_id", act["command"]["operation_id"]}, {"differing", std::move(differing)}});
}

}  // namespace holdfast::engine
