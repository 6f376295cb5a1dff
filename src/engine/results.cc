// result grant and result get: a task receives what another's act led to, under its own current tenancy only.
#include "base/digest.h"
#include "base/json.h"
#include "engine/acts.h"
#include "engine/arguments.h"
#include "engine/ending.h"
#include "replace/intent.h"

namespace holdfast::engine {
namespace {

constexpr std::string_view kProtocol = "holdfast.result.1";

std::string grants_path(const std::string& operation_id) {
  return "acts/results/" + sha256_hex(operation_id) + ".json";
}

// What the operation led to: an act's, or a file write's.
Result<Json> outcome_of(Context& context, const std::string& operation_id) {
  HF_TRY(const auto act, find_act(context, operation_id));
  if (act && text_member(*act, "state") == "consumed") return (*act)["outcome"];
  HF_TRY(const auto intent, replace::IntentJournal(*context.files).find(operation_id));
  if (intent && intent->state == "settled") return intent->outcome;
  // Of a command that was delivered, and of a program that was run, the evidence has it.
  Json delivered;
  HF_CHECK(context.chain->each([&](const Json& event) {
    const std::string kind = text_member(event, "kind");
    const Json facts = event.value("facts", Json::object());
    const std::string id = text_member(facts.value("command", Json()), "operation_id");
    const bool is_accepted = kind == "command_accepted" && id == operation_id;
    const bool is_finished = kind == "command_finished" && text_member(facts, "operation_id") == operation_id;
    if (is_accepted && text_member(facts.value("outcome", Json()), "state") != "started") delivered = facts["outcome"];
    if (is_finished) delivered = facts.value("outcome", Json{{"exit_status", facts.value("exit_status", Json())}});
    return true;
  }));
  if (!delivered.is_null()) return delivered;
  return Refusal(Code::not_found, "not_found: " + operation_id + " has no result yet",
                 Json{{"operation_id", operation_id}});
}

Result<Json> grants_of(Context& context, const std::string& operation_id) {
  HF_TRY(const auto bytes, context.files->read(grants_path(operation_id)));
  if (!bytes) return Json{{"protocol", kProtocol}, {"operation_id", operation_id}, {"grants", Json::array()}};
  auto document = parse_json(*bytes);
  const bool is_whole = document && text_member(*document, "operation_id") == operation_id &&
                        document->value("grants", Json()).is_array();
  if (is_whole) return std::move(*document);
  return Refusal(Code::state_unreadable, "state_unreadable: " + grants_path(operation_id) + " is no list of grants");
}

}  // namespace

Result<Json> result_grant(Context& context, const Json& json) {
  const Arguments arguments(json);
  HF_TRY(const std::string operation_id, arguments.text("operation_id"));
  HF_TRY(const std::string task, arguments.text("to_task"));
  HF_TRY(const std::string reason, arguments.text("reason"));
  HF_TRY(Transition transition, begin_transition(context));
  HF_CHECK(outcome_of(context, operation_id));
  HF_TRY(Json document, grants_of(context, operation_id));
  evidence::Event event;
  event.kind = "result_granted";
  event.facts = {{"operation_id", operation_id}, {"to_task", task}, {"reason", reason}};
  HF_TRY(const auto ids, record(context, transition, {std::move(event)}));
  const Json grant = {{"to_task", task},
                      {"reason", reason},
                      {"at", format_wall(transition.now.wall_us)},
                      {"control_epoch", transition.state.epoch.epoch.text()},
                      {"evidence", ids.front()}};
  document["grants"].push_back(grant);
  HF_CHECK(context.files->publish(grants_path(operation_id), dump_pretty(document) + "\n"));
  return Json{{"operation_id", operation_id}, {"grant", grant}};
}

Result<Json> result_get(Context& context, const Json& json) {
  const Arguments arguments(json);
  HF_TRY(const std::string operation_id, arguments.text("operation_id"));
  HF_TRY(Transition transition, begin_transition(context));
  auto tenancy = current_tenancy(context, transition, arguments);
  if (!tenancy.ok()) {
    if (tenancy.refusal().code() == Code::usage) return std::move(tenancy).refusal();
    return Refusal(Code::result_grant_tenancy_required, "result_grant_tenancy_required: " + tenancy.refusal().message(),
                   Json{{"operation_id", operation_id}, {"cause", tenancy.refusal().to_json()["error"]}});
  }
  HF_TRY(const Json document, grants_of(context, operation_id));
  const Json* granted = nullptr;
  for (const Json& grant : document["grants"]) {
    if (text_member(grant, "to_task") == tenancy->task_id) granted = &grant;
  }
  if (granted == nullptr) {
    return Refusal(Code::approval_required,
                   "approval_required: the result of " + operation_id + " was not granted to task " + tenancy->task_id,
                   Json{{"operation_id", operation_id}, {"task_id", tenancy->task_id}})
        .with_hint("`holdfast result grant ID --to-task TASK --reason TEXT`");
  }
  // A grant of an epoch that was revoked since is none: whoever granted it decides again.
  if (text_member(*granted, "control_epoch") != transition.state.epoch.epoch.text()) {
    return Refusal(Code::result_grant_tenancy_required,
                   "result_grant_tenancy_required: the grant is of control epoch " +
                       text_member(*granted, "control_epoch") + ", current " + transition.state.epoch.epoch.text(),
                   Json{{"operation_id", operation_id}});
  }
  HF_TRY(Json outcome, outcome_of(context, operation_id));
  evidence::Event event;
  event.kind = "result_received";
  event.scope = tenancy->scope.full();
  event.generation = tenancy->generation;
  event.parents.push_back(text_member(*granted, "evidence"));
  event.facts = {{"operation_id", operation_id},
                 {"task_id", tenancy->task_id},
                 {"outcome_sha256", sha256_hex(dump_canonical(outcome))}};
  HF_TRY(const auto ids, record(context, transition, {std::move(event)}));
  return Json{{"operation_id", operation_id},
              {"outcome", std::move(outcome)},
              {"grant", *granted},
              {"received_under",
               {{"task_id", tenancy->task_id},
                {"generation", tenancy->generation.text()},
                {"control_epoch", tenancy->control_epoch.text()}}},
              {"evidence", ids.front()}};
}

}  // namespace holdfast::engine
