// A command for a file: the built-in receiver is the guarded replacement, its mark the tenancy's record, and the
// operations that it applied are the intents.
#include "base/digest.h"
#include "base/fault_point.h"
#include "base/json.h"
#include "engine/deliveries.h"
#include "engine/write.h"
#include "replace/intent.h"

namespace holdfast::engine {
namespace {

Refusal incomparable(const Json& command, const std::string& why) {
  return Refusal(Code::generation_incomparable, "generation_incomparable: " + why,
                 Json{{"presented", command.value("generation", Json())}});
}

// What the decision is made from. A command names its tenancy by the generation, which no two tenancies share, so there
// is no started_at to be compared.
Result<Json> inputs_of(const Context& context, const Transition& transition, const Scope& scope,
                       const Command& command) {
  const Tenancy* held = transition.state.find(scope);
  HF_TRY(const auto last, context.store->last_ended(scope));
  // Until somebody succeeds, who held it is told that time or the epoch ended it.
  const std::string ended_by = held == nullptr && last ? last->ended_by : "";
  if (ended_by == "expiry" || ended_by == "epoch") held = &last->tenancy;
  return Json{{"presented_generation", std::to_string(command.generation)},
              {"current_generation", held == nullptr ? Json() : Json(held->generation.text())},
              {"presented_owner", command.owner},
              {"current_owner", held == nullptr ? Json() : Json(held->owner)},
              {"presented_task", command.task_id},
              {"current_task", held == nullptr ? Json() : Json(held->task_id)},
              {"presented_started_at", nullptr},
              {"current_started_at", nullptr},
              {"presented_issuer", command.to_json()["issuer"]},
              {"expected_issuer", {{"workspace_id", context.workspace_id()}, {"authority", "local"}}},
              {"revoked", ended_by == "epoch" || command.control_epoch != transition.state.epoch.epoch.value},
              {"expired", ended_by == "expiry" || (held != nullptr && held->expired_at(transition.now))}};
}

Result<void> judge(const Context& context, const Command& command, const std::string& payload) {
  if (command.issuer != Issuer{context.workspace_id(), "local"}) {
    return incomparable(command.to_json(), "the command is of another issuer");
  }
  if (command.operation_family != "write") {
    return Refusal(Code::request_malformed, "request_malformed: a file takes commands of the family write, not " +
                                                printable(command.operation_family));
  }
  if (sha256_hex(payload) == command.payload_sha256) return {};
  return Refusal(Code::content_corrupted_in_transit,
                 "content_corrupted_in_transit: the payload is not the one that the command names");
}

// The lease's own epoch is the publish's to check; this is the one that the command carries.
Result<void> check_epoch(const Command& command, const Json& inputs) {
  const bool is_current = inputs["presented_generation"] == inputs["current_generation"] &&
                          inputs["presented_owner"] == inputs["current_owner"] &&
                          inputs["presented_task"] == inputs["current_task"];
  if (!is_current || inputs["revoked"] == Json(false)) return {};
  return Refusal(Code::control_epoch_revoked,
                 "control_epoch_revoked: the command is of epoch " + std::to_string(command.control_epoch),
                 Json{{"resource", command.resource}});
}

// The tenancy that the command names: the one that is held or, for whom it ended under, the last.
Result<std::string> started_at_of(Context& context, const Transition& transition, const Scope& scope,
                                  const Command& command) {
  const Tenancy* held = transition.state.find(scope);
  if (held != nullptr) return held->generation.value == command.generation ? held->started_at : std::string();
  HF_TRY(const auto last, context.store->last_ended(scope));
  const bool same = last && last->tenancy.generation.value == command.generation;
  return same ? last->tenancy.started_at : std::string();
}

Replacement replacement_of(const Command& command, const Scope& scope, const std::string& payload,
                           const std::string& started_at) {
  Replacement replacement;
  replacement.keys.owner = command.owner;
  replacement.keys.task_id = command.task_id;
  replacement.keys.generation = Generation{command.generation};
  replacement.keys.started_at = started_at;
  replacement.scope_text = scope.full();
  replacement.current_folder = "/";
  replacement.operation_id = command.operation_id;
  replacement.precondition = command.precondition.value_or("");
  replacement.expected_payload_sha256 = command.payload_sha256;
  replacement.produce = [&payload, &command](guard::StagedFile& staged, const os::Handle*) -> Result<std::string> {
    HF_CHECK(staged.write(payload));
    return command.payload_sha256;
  };
  return replacement;
}

Json operation_of(const Json& command) {
  Json operation = Json::object();
  for (const char* member : {"resource", "operation_family", "precondition", "payload_sha256"}) {
    operation[member] = command.value(member, Json());
  }
  return operation;
}

Result<std::string> record_decision(Context& context, const Scope& scope, const Command& command, Json inputs,
                                    const Result<Json>& outcome, bool repeated) {
  HF_TRY(Transition transition, begin_transition(context));
  // Judged between two looks: where they differ, what the judgement saw is not known, and the inputs say so.
  HF_TRY(const Json after, inputs_of(context, transition, scope, command));
  for (const auto& [name, value] : after.items()) {
    if (inputs[name] != value) inputs.erase("current_started_at");
  }
  evidence::Event event;
  event.kind = !outcome.ok() ? "command_refused" : repeated ? "command_repeated" : "command_accepted";
  event.scope = scope.full();
  const Tenancy* held = transition.state.find(scope);
  if (held != nullptr && !held->event.empty()) event.parents.push_back(held->event);
  const std::string decision =
      !outcome.ok() ? std::string(outcome.refusal().code_name()) : std::string(repeated ? "repeated" : "accepted");
  event.facts = {{"receiver", "file"},
                 {"kind", "file"},
                 {"command", command.to_json()},
                 {"decision", decision},
                 {"inputs", std::move(inputs)}};
  if (outcome.ok()) event.facts["outcome"] = *outcome;
  if (!outcome.ok()) event.facts["message"] = outcome.refusal().message();
  HF_TRY(const auto ids, record(context, transition, {std::move(event)}));
  return ids.front();
}

}  // namespace

Result<Json> deliver_to_file(Context& context, const Json& presented, const std::string& payload,
                             const DeliveryTerms& terms) {
  HF_TRY(const Command command, command_from_json(presented));
  HF_TRY(const Scope scope, parse_canonical_scope(command.resource));
  Json inputs;
  Replacement replacement;
  {
    HF_TRY(const Transition transition, begin_transition(context));
    HF_TRY(inputs, inputs_of(context, transition, scope, command));
    HF_TRY(const std::string started_at, started_at_of(context, transition, scope, command));
    replacement = replacement_of(command, scope, payload, started_at);
    replacement.revalidate = terms.revalidate;
  }
  HF_TRY(const auto before, replace::IntentJournal(*context.files).find(command.operation_id));
  const Json presented_operation = operation_of(command.to_json());
  const bool is_applied = before && before->state == "settled";
  // One that was not published may run again as it was, and as no other.
  if (before && (is_applied || operation_of(before->command) != presented_operation)) {
    inputs["presented_operation"] = presented_operation;
    inputs["applied_operation"] = operation_of(before->command);
  }
  const auto outcome = [&]() -> Result<Json> {
    HF_CHECK(judge(context, command, payload));
    if (!is_applied) HF_CHECK(check_epoch(command, inputs));
    return replace_guarded(context, replacement);
  }();
  HF_FAULT_POINT("deliver_after_receiver");
  const bool repeated = outcome.ok() && outcome->value("repeated", Json()) == Json(true);
  if (repeated && !is_applied) inputs.erase("current_started_at");  // another delivery came first: not what was judged
  const auto evidence = record_decision(context, scope, command, std::move(inputs), outcome, repeated);
  if (!outcome.ok()) {
    Refusal refusal = outcome.refusal();
    if (evidence.ok() && refusal.evidence().empty()) refusal.set_evidence(*evidence);
    return refusal;
  }
  return Json{{"decision", repeated ? "repeated" : "accepted"},
              {"operation_id", command.operation_id},
              {"receiver", "file"},
              {"generation", std::to_string(command.generation)},
              {"repeated", repeated},
              {"outcome", *outcome},
              {"evidence", evidence.ok() ? Json(*evidence) : Json()}};
}

}  // namespace holdfast::engine
