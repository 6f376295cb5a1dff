#include "surfaces/cli/delegate.h"

#include "base/base64.h"
#include "base/digest.h"
#include "base/ids.h"
#include "base/json.h"
#include "holdfast/command.h"
#include "surfaces/cli/request_acts.h"

namespace holdfast::cli {
namespace {

using Sent = holdfast::Command;  // the command table's rows bear that name here

Result<Sent> parent_of(const Invocation& invocation, const Surroundings& surroundings) {
  if (const auto file = invocation.value("--parent")) {
    HF_TRY(const std::string bytes, surroundings.read_file(*file));
    const auto document = parse_json(bytes);
    if (!document || !document->is_object()) return usage_refusal("--parent is no JSON object", invocation.command);
    return command_from_json(document->value("command", *document));
  }
  std::map<std::string, std::string> variables;
  for (const char* name : {"HOLDFAST_COMMAND", "HOLDFAST_SCOPE", "HOLDFAST_OWNER", "HOLDFAST_TASK",
                           "HOLDFAST_GENERATION", "HOLDFAST_OPERATION_ID"}) {
    if (const auto value = surroundings.environment(name)) variables[name] = *value;
  }
  if (variables.contains("HOLDFAST_COMMAND")) return command_from_environment(variables);
  return usage_refusal("there is no parent: HOLDFAST_COMMAND is not set, and no --parent was named",
                       invocation.command);
}

Result<Json> child_of(const Invocation& invocation, const Surroundings& surroundings) {
  HF_TRY(const Sent parent, parent_of(invocation, surroundings));
  HF_TRY(const std::string payload, payload_in_words(invocation));
  for (const char* option : {"--resource", "--precondition", "--operation-id"}) {
    if (const auto value = invocation.value(option); value && !is_valid_utf8(*value)) {
      return usage_refusal(std::string(option) + " is not UTF-8", invocation.command);
    }
  }
  Sent::Child child;
  child.operation_id = invocation.value("--operation-id").value_or("op-" + random_hex(16));
  child.resource = invocation.value("--resource").value_or(parent.resource);
  child.precondition = invocation.value("--precondition");
  child.payload_sha256 = sha256_hex(payload);
  HF_TRY(const Sent made, parent.delegated(child));
  return Json{{"command", made.to_json()}, {"payload_base64", base64_encode(payload)}};
}

}  // namespace

int run_delegate(const Invocation& invocation, const Surroundings& surroundings, Output& output) {
  const auto child = child_of(invocation, surroundings);
  if (!child.ok()) return output.refuse(child.refusal());
  return output.json() ? output.document(*child) : output.text(dump_ascii(*child) + "\n");
}

}  // namespace holdfast::cli
