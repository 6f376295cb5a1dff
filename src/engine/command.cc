#include "engine/command.h"

#include "base/base64.h"
#include "base/digest.h"
#include "base/json.h"
#include "engine/arguments.h"
#include "engine/deliveries.h"
#include "engine/due.h"
#include "engine/ending.h"
#include "engine/observing.h"
#include "scope/resolve.h"

namespace holdfast::engine {
namespace {

constexpr std::size_t kProgramWordsMax = 64U * 1024U;  // of the program's words in the evidence

Result<Json> record_one(Context& context, Transition& transition, evidence::Event event) {
  HF_TRY(const auto ids, record(context, transition, {std::move(event)}));
  return Json(ids.front());
}

// Looked up where a caller names the operation: a made-up id is nobody else's.
Result<void> check_unused(Context& context, const std::string& operation_id) {
  Json first;
  HF_CHECK(context.chain->each([&](const Json& event) {
    const std::string kind = text_member(event, "kind");
    const bool names_one = kind == "command_issued" || kind == "command_accepted";
    if (!names_one) return true;
    const Json command = event.value("facts", Json::object()).value("command", Json());
    if (text_member(command, "operation_id") == operation_id) first = event["id"];
    return first.is_null();
  }));
  if (first.is_null()) return {};
  return Refusal(Code::operation_id_reused,
                 "operation_id_reused: " + operation_id + " was issued before; a program is not run again for it",
                 Json{{"operation_id", operation_id}, {"first", first}});
}

}  // namespace

Json command_envelope(const Context& context, const Tenancy& tenancy, const std::string& operation_id,
                      const std::string& family, const std::string& precondition, const std::string& payload_sha256) {
  return Json{{"operation_id", operation_id},
              {"resource", tenancy.scope.full()},
              {"operation_family", family},
              {"consequence_class", tenancy.contract.value("consequence_class", "reversible_by_vault")},
              {"owner", tenancy.owner},
              {"task_id", tenancy.task_id},
              {"generation", tenancy.generation.text()},
              {"control_epoch", tenancy.control_epoch.text()},
              {"issuer", {{"workspace_id", context.workspace_id()}, {"authority", "local"}}},
              {"precondition", precondition.empty() ? Json(nullptr) : Json(precondition)},
              {"payload_sha256", payload_sha256}};
}

Result<Json> command_begin(Context& context, const Json& json, const Caller& caller) {
  const Arguments arguments(json);
  HF_TRY(const auto operation_id, arguments.optional_text("operation_id"));
  const Json program = json.value("program", Json());
  if (!program.is_array() || program.empty()) return usage("program is missing");
  const std::string words = dump_ascii(program);
  HF_TRY(Transition transition, begin_transition_on(context, arguments));
  HF_CHECK(record_observations(context, transition));
  HF_TRY(const Tenancy tenancy, current_tenancy(context, transition, arguments));
  if (operation_id) HF_CHECK(check_unused(context, *operation_id));
  Json command =
      command_envelope(context, tenancy, operation_id.value_or("op-" + random_hex(16)), "exec", "", sha256_hex(words));
  evidence::Event event;
  event.kind = "command_issued";
  event.scope = tenancy.scope.full();
  event.generation = tenancy.generation;
  if (!tenancy.event.empty()) event.parents.push_back(tenancy.event);
  event.facts = {{"command", command}, {"caller_pid", caller.process.pid}};
  if (words.size() <= kProgramWordsMax) event.facts["program"] = program;
  HF_TRY(const Json id, record_one(context, transition, std::move(event)));
  return Json{{"command", std::move(command)}, {"evidence", id}};
}

Result<Json> command_end(Context& context, const Json& json, const Caller&) {
  const Arguments arguments(json);
  HF_TRY(const std::string operation_id, arguments.text("operation_id"));
  HF_TRY(const auto issued, arguments.optional_text("issued"));
  HF_TRY(Transition transition, begin_transition_on(context, arguments));
  HF_CHECK(record_observations(context, transition));
  const auto still = current_tenancy(context, transition, arguments);
  HF_TRY(const std::string text, arguments.scope());
  HF_TRY(const std::string cwd, arguments.current_folder());
  evidence::Event event;
  event.kind = "command_finished";
  if (issued && !issued->empty()) event.parents.push_back(*issued);
  event.facts = {{"operation_id", operation_id}, {"exit_status", json.value("exit_status", Json())}};
  event.facts["tenancy_was_current"] = still.ok();
  // Of a program that outlived its tenancy as well: a handoff of the scope waits for this event.
  if (const auto scope = resolve_scope(context.folder, text, cwd); scope.ok()) event.scope = scope->full();
  if (still.ok()) event.scope = still->scope.full();
  if (!still.ok()) event.facts["reason"] = still.refusal().message();
  HF_TRY(const Json id, record_one(context, transition, std::move(event)));
  Json answer = {{"current", still.ok()}, {"evidence", id}};
  if (!still.ok()) answer["reason"] = still.refusal().message();
  return answer;
}

Result<Json> command_issue(Context& context, const Json& json) {
  const Arguments arguments(json);
  HF_TRY(const auto operation_id, arguments.optional_text("operation_id"));
  HF_TRY(const auto family, arguments.optional_text("family"));
  HF_TRY(const auto precondition, arguments.optional_text("precondition"));
  const std::string encoded = text_member(json, "payload_base64");
  const auto payload = base64_decode(encoded);
  if (!payload || payload->size() > kPayloadMax) return usage("payload_base64 is no base64, or over 16 MiB");
  HF_TRY(Transition transition, begin_transition_on(context, arguments));
  HF_CHECK(record_observations(context, transition));
  HF_TRY(const Tenancy tenancy, current_tenancy(context, transition, arguments));
  Json command = command_envelope(context, tenancy, operation_id.value_or("op-" + random_hex(16)),
                                  tenancy.scope.is_file() ? "write" : family.value_or("act"), precondition.value_or(""),
                                  sha256_hex(*payload));
  evidence::Event event;
  event.kind = "command_issued";
  event.scope = tenancy.scope.full();
  event.generation = tenancy.generation;
  if (!tenancy.event.empty()) event.parents.push_back(tenancy.event);
  event.facts = {{"command", command}, {"travels", true}};
  HF_TRY(const Json id, record_one(context, transition, std::move(event)));
  return Json{{"command", std::move(command)}, {"payload_base64", encoded}, {"evidence", id}};
}

}  // namespace holdfast::engine
