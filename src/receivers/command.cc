#include "holdfast/command.h"

#include <array>

#include "base/base64.h"
#include "base/json.h"
#include "holdfast/scope.h"

namespace holdfast {
namespace {

constexpr std::size_t kTextMax = 64U << 10U;

Refusal malformed(const std::string& member, const std::string& why) {
  return Refusal(Code::request_malformed, "request_malformed: the command's " + member + " " + why,
                 Json{{"member", member}});
}

Result<std::string> text_of(const Json& value, const std::string& member) {
  if (!value.contains(member) || !value[member].is_string()) return malformed(member, "is no text");
  std::string text = value[member].get<std::string>();
  if (text.empty()) return malformed(member, "is empty");
  if (text.size() > kTextMax) return malformed(member, "is longer than a command carries");
  return text;
}

Result<std::optional<std::string>> optional_text_of(const Json& value, const std::string& member) {
  if (!value.contains(member) || value[member].is_null()) return std::optional<std::string>();
  HF_TRY(std::string text, text_of(value, member));
  return std::optional(std::move(text));
}

Result<std::uint64_t> number_of(const Json& value, const std::string& member) {
  const auto number = value.contains(member) ? exact_u64(value[member]) : std::nullopt;
  if (number && *number > 0) return *number;
  return Refusal(Code::generation_incomparable,
                 "generation_incomparable: the command's " + member + " is missing or malformed",
                 Json{{"member", member}, {"presented", value.contains(member) ? value[member] : Json()}});
}

}  // namespace

Json Command::to_json() const {
  Json value = {{"operation_id", operation_id},
                {"resource", resource},
                {"operation_family", operation_family},
                {"consequence_class", consequence_class},
                {"owner", owner},
                {"task_id", task_id},
                {"generation", std::to_string(generation)},
                {"control_epoch", std::to_string(control_epoch)},
                {"issuer", {{"workspace_id", issuer.workspace_id}, {"authority", issuer.authority}}},
                {"precondition", precondition ? Json(*precondition) : Json()},
                {"payload_sha256", payload_sha256}};
  if (parent_operation_id) value["parent_operation_id"] = *parent_operation_id;
  return value;
}

std::string Command::canonical() const { return dump_canonical(to_json()); }

std::map<std::string, std::string> Command::environment() const {
  return {{"HOLDFAST_COMMAND", canonical()},
          {"HOLDFAST_SCOPE", resource},
          {"HOLDFAST_OWNER", owner},
          {"HOLDFAST_TASK", task_id},
          {"HOLDFAST_GENERATION", std::to_string(generation)},
          {"HOLDFAST_OPERATION_ID", operation_id}};
}

std::string Command::header() const { return base64_encode(canonical()); }

Result<Command> Command::delegated(const Child& child) const {
  HF_TRY(const Scope own, parse_canonical_scope(resource));
  HF_TRY(const Scope asked, parse_canonical_scope(child.resource));
  if (!(asked == own) && !is_below(asked, own)) {
    return malformed("resource", "is not the parent's and not below it: a child carries no more than its parent");
  }
  if (child.operation_id.empty() || child.operation_id == operation_id) {
    return malformed("operation_id", "has to be the child's own");
  }
  Command made = *this;
  made.operation_id = child.operation_id;
  made.resource = child.resource;
  made.precondition = child.precondition;
  made.payload_sha256 = child.payload_sha256;
  made.parent_operation_id = operation_id;
  return made;
}

Result<Command> command_from_json(const Json& value) {
  if (!value.is_object()) return malformed("form", "is no JSON object");
  static constexpr std::array kMembers = {"operation_id", "resource",     "operation_family", "consequence_class",
                                          "owner",        "task_id",      "generation",       "control_epoch",
                                          "issuer",       "precondition", "payload_sha256",   "parent_operation_id"};
  for (const auto& [name, member] : value.items()) {
    bool known = false;
    for (const char* one : kMembers) known = known || name == one;
    if (!known) return malformed(printable(name), "is no member of a command");
  }
  Command command;
  // First of all: without an order nothing else matters (CONTRACT section 5).
  HF_TRY(command.generation, number_of(value, "generation"));
  HF_TRY(command.control_epoch, number_of(value, "control_epoch"));
  HF_TRY(command.operation_id, text_of(value, "operation_id"));
  HF_TRY(command.resource, text_of(value, "resource"));
  HF_TRY(const Scope scope, parse_canonical_scope(command.resource));
  if (scope.full() != command.resource) return malformed("resource", "is not in its canonical form");
  HF_TRY(command.operation_family, text_of(value, "operation_family"));
  HF_TRY(command.consequence_class, text_of(value, "consequence_class"));
  HF_TRY(command.owner, text_of(value, "owner"));
  HF_TRY(command.task_id, text_of(value, "task_id"));
  const Json issuer = value.value("issuer", Json());
  if (!issuer.is_object()) return malformed("issuer", "is no object");
  if (issuer.size() > 2) return malformed("issuer", "has a member that no issuer has");
  HF_TRY(command.issuer.workspace_id, text_of(issuer, "workspace_id"));
  HF_TRY(command.issuer.authority, text_of(issuer, "authority"));
  HF_TRY(command.precondition, optional_text_of(value, "precondition"));
  HF_TRY(command.parent_operation_id, optional_text_of(value, "parent_operation_id"));
  HF_TRY(command.payload_sha256, text_of(value, "payload_sha256"));
  return command;
}

Result<Command> command_from_header(std::string_view value) {
  const auto decoded = base64_decode(value);
  const auto parsed = decoded ? parse_json(*decoded) : std::nullopt;
  if (!parsed) return malformed("header", "is no base64 of a JSON object");
  return command_from_json(*parsed);
}

Result<Command> command_from_environment(const std::map<std::string, std::string>& environment) {
  const auto found = environment.find("HOLDFAST_COMMAND");
  if (found == environment.end()) return malformed("environment form", "is not there: HOLDFAST_COMMAND is not set");
  const auto parsed = parse_json(found->second);
  if (!parsed) return malformed("environment form", "is no JSON");
  HF_TRY(Command command, command_from_json(*parsed));
  // The single variables are for programs that read no JSON; two that disagree are no command.
  for (const auto& [name, text] : command.environment()) {
    const auto beside = environment.find(name);
    if (name != "HOLDFAST_COMMAND" && beside != environment.end() && beside->second != text) {
      return malformed(name, "is not what HOLDFAST_COMMAND says");
    }
  }
  return command;
}

}  // namespace holdfast
