#include "receivers/receiver.h"

#include <algorithm>

#include "base/digest.h"
#include "base/fault_point.h"
#include "base/json.h"

namespace holdfast::receivers {
namespace {

constexpr const char* kStarted = "started";

Json number(const std::optional<Generation>& generation) { return generation ? Json(generation->text()) : Json(); }

// What a delivery was judged by. The inputs are those of docs/formats/evidence.md.
Json inputs_of(const Json& presented, const std::optional<Generation>& mark, const Current& current) {
  Json inputs = {
      {"presented_generation", presented.value("generation", Json())},
      {"presented_epoch", presented.value("control_epoch", Json())},
      {"receiver_mark", number(mark)},
      {"workspace_mark", number(current.workspace_mark)},
      {"presented_issuer", presented.value("issuer", Json())},
      {"expected_issuer", {{"workspace_id", current.issuer.workspace_id}, {"authority", current.issuer.authority}}}};
  if (!current.knows_tenancy) return inputs;
  inputs["current_generation"] = number(current.generation);
  inputs["presented_owner"] = presented.value("owner", Json());
  inputs["current_owner"] = current.generation ? Json(current.owner) : Json();
  inputs["presented_task"] = presented.value("task_id", Json());
  inputs["current_task"] = current.generation ? Json(current.task_id) : Json();
  const auto epoch = exact_u64(presented.value("control_epoch", Json()));
  inputs["revoked"] = epoch && *epoch != current.epoch.value;
  inputs["expired"] = current.expired;
  return inputs;
}

// What tells two operations apart: an id is used for one of them.
Json operation_of(const Command& command) {
  return Json{{"resource", command.resource},
              {"operation_family", command.operation_family},
              {"precondition", command.precondition ? Json(*command.precondition) : Json()},
              {"payload_sha256", command.payload_sha256}};
}

Refusal incomparable(const Json& presented, const std::string& why) {
  return Refusal(Code::generation_incomparable, "generation_incomparable: " + why,
                 Json{{"presented", presented.value("generation", Json())}});
}

Refusal closed(const Command& command, const std::optional<Generation>& mark, const Current& current) {
  return Refusal(Code::receiver_high_water_missing,
                 "receiver_high_water_missing: the receiver's mark for " + command.resource + " is " +
                     (mark ? mark->text() : "missing") + ", the workspace's copy " +
                     (current.workspace_mark ? current.workspace_mark->text() : "missing") +
                     "; it stays closed until it is reseeded",
                 Json{{"resource", command.resource},
                      {"receiver_mark", number(mark)},
                      {"workspace_mark", number(current.workspace_mark)}});
}

Refusal stale(const Command& command, const std::optional<Generation>& mark, const Current& current) {
  const auto& known = current.generation ? current.generation : current.ended;
  // A mark above what this authority knows is of a takeover that it has not heard of.
  const bool mark_is_newer = mark && (!current.knows_tenancy || (known && *known < *mark));
  const std::optional<Generation> newest = mark_is_newer ? mark : known;
  return Refusal(Code::stale_lease_generation,
                 "stale_lease_generation: expected " + std::to_string(command.generation) + ", current " +
                     (newest ? newest->text() : "none"),
                 Json{{"resource", command.resource},
                      {"expected", std::to_string(command.generation)},
                      {"current", newest ? Json(newest->text()) : Json("none")},
                      {"receiver_mark", number(mark)}});
}

std::optional<Refusal> against_the_tenancy(const Command& command, const std::optional<Generation>& mark,
                                           const Current& current) {
  if (mark && command.generation < mark->value) return stale(command, mark, current);
  if (!current.knows_tenancy) return std::nullopt;
  const bool is_current = current.generation && current.generation->value == command.generation &&
                          current.owner == command.owner && current.task_id == command.task_id;
  if (!is_current) return stale(command, mark, current);
  // One that is ahead was never issued here.
  if (command.control_epoch != current.epoch.value) {
    return Refusal(Code::control_epoch_revoked,
                   "control_epoch_revoked: the command is of epoch " + std::to_string(command.control_epoch) +
                       ", current " + current.epoch.text(),
                   Json{{"resource", command.resource}});
  }
  if (!current.expired) return std::nullopt;
  return Refusal(Code::lease_expired, "lease_expired: the tenancy of " + command.resource + " has run out",
                 Json{{"resource", command.resource}});
}

Delivery refused(Delivery delivery, Refusal refusal) {
  delivery.decision.decision = refusal.code_name();
  delivery.refusal = std::move(refusal);
  return delivery;
}

// Of an operation whose id was used before: its outcome again, or why not.
Delivery asked_again(Delivery delivery, const Command& command, const Applied& before, Generation mark) {
  if (operation_of(before.command) != operation_of(command)) {
    return refused(std::move(delivery),
                   Refusal(Code::operation_id_reused,
                           "operation_id_reused: " + command.operation_id + " was used for another command",
                           Json{{"operation_id", command.operation_id}}));
  }
  if (is_started(before.outcome)) {
    delivery.decision.inputs["applied_state"] = kStarted;
    return refused(std::move(delivery),
                   Refusal(Code::receiver_outcome_unknown,
                           "receiver_outcome_unknown: " + command.operation_id +
                               " was started and has not come back: it runs, or its end was never reported",
                           Json{{"operation_id", command.operation_id},
                                {"resource", command.resource},
                                {"generation", std::to_string(before.command.generation)}})
                       .with_hint("wait for its end; where there will be none, find out what it did, then "
                                  "`holdfast receiver settle NAME --operation ID --ran|--not-run --reason TEXT`"));
  }
  delivery.decision.decision = "repeated";
  delivery.repeated = true;
  delivery.outcome = before.outcome;
  if (before.command.generation < mark.value) delivery.outcome["superseded_by"] = mark.text();
  return delivery;
}

// What the receiver knows is asked, compared in the order of the contract, and where nothing is against it applied.
Result<Delivery> judged_in(Transaction& transaction, const Command& command, const std::string& payload,
                           const Current& current, const Transaction::Capture& capture, Delivery delivery) {
  HF_TRY(const auto mark, transaction.mark(command.resource));
  delivery.mark = mark;
  delivery.decision.inputs["receiver_mark"] = number(mark);
  const bool is_closed = !mark || (current.workspace_mark && *mark < *current.workspace_mark);
  if (is_closed) return refused(std::move(delivery), closed(command, mark, current));
  HF_TRY(const auto before, transaction.applied(command.operation_id));
  delivery.decision.inputs["presented_operation"] = operation_of(command);
  delivery.decision.inputs["applied_operation"] = before ? operation_of(before->command) : Json();
  if (before) return asked_again(std::move(delivery), command, *before, *mark);
  if (auto refusal = against_the_tenancy(command, mark, current)) return refused(std::move(delivery), *refusal);
  const auto not_effected = [&](const Refusal& why) {
    delivery.decision.inputs["effect"] = why.details();
    return refused(std::move(delivery), why);
  };
  auto outcome = transaction.apply(command, payload, capture);
  // A receiver that cannot work has judged nothing.
  if (!outcome.ok() && outcome.refusal().code() == Code::receiver_unreachable) return outcome.refusal();
  if (!outcome.ok()) return not_effected(outcome.refusal());
  HF_CHECK(transaction.remember({command, *outcome}));
  const Generation raised{std::max(mark->value, command.generation)};
  if (*mark < raised) HF_CHECK(transaction.set_mark(command.resource, raised));
  HF_FAULT_POINT("receiver_before_commit");
  const auto committed = transaction.commit();
  if (!committed.ok() && transaction.is_effect_refused()) return not_effected(committed.refusal());
  HF_CHECK(committed);
  HF_FAULT_POINT("receiver_after_commit");
  delivery.mark = raised;
  delivery.decision.decision = "accepted";
  delivery.outcome = std::move(*outcome);
  return delivery;
}

}  // namespace

Json Decision::to_json(const Command& command) const {
  return Json{{"decision", decision},
              {"operation_id", command.operation_id},
              {"resource", command.resource},
              {"precondition", command.precondition ? Json(*command.precondition) : Json()},
              {"incoming_generation", inputs.value("presented_generation", Json())},
              {"highest_accepted_generation", inputs.value("receiver_mark", Json())},
              {"inputs", inputs}};
}

Json started_outcome(const Command& command) { return Json{{"state", kStarted}, {"resource", command.resource}}; }

bool is_started(const Json& outcome) { return text_member(outcome, "state") == kStarted; }

Result<void> Receiver::settle(const std::string&, const std::optional<Json>&) {
  return Refusal(Code::usage, "a receiver of kind " + kind() + " knows every outcome: nothing is to be settled");
}

Result<Applied> applied_from_texts(const std::string& operation_id, const std::string& command,
                                   const std::string& outcome) {
  const auto sent = parse_json(command);
  const auto said = parse_json(outcome);
  if (!sent || !said) {
    return Refusal(Code::receiver_unreachable, "receiver_unreachable: the record of an operation cannot be read",
                   Json{{"operation_id", operation_id}});
  }
  HF_TRY(Command read, command_from_json(*sent));
  return Applied{std::move(read), *said};
}

Result<Delivery> deliver(Receiver& receiver, const Json& presented, const std::string& payload, const Current& current,
                         const Transaction::Capture& capture) {
  Delivery delivery;
  delivery.decision.inputs = inputs_of(presented.is_object() ? presented : Json::object(), std::nullopt, current);
  auto read = command_from_json(presented);
  if (!read.ok()) return refused(std::move(delivery), read.refusal());
  const Command command = std::move(*read);
  if (!(command.issuer == current.issuer)) {
    return refused(std::move(delivery), incomparable(presented, "the command is of another issuer"));
  }
  if (sha256_hex(payload) != command.payload_sha256) {
    return refused(std::move(delivery),
                   Refusal(Code::content_corrupted_in_transit,
                           "content_corrupted_in_transit: the payload is not the one that the command names"));
  }
  HF_TRY(auto transaction, receiver.begin_for(command, payload));
  auto judged = judged_in(*transaction, command, payload, current, capture, std::move(delivery));
  if (transaction->is_overtaken()) {
    transaction.reset();
    HF_TRY(transaction, receiver.begin());
    Delivery anew;
    anew.decision.inputs = inputs_of(presented, std::nullopt, current);
    judged = judged_in(*transaction, command, payload, current, capture, std::move(anew));
  }
  if (!judged.ok() || judged->decision.decision != "accepted") return judged;
  // The effect stands whatever this look finds: a later one may have come between.
  const auto observed = receiver.observe(command, payload);
  judged->observed = observed.ok() ? *observed : Json{{"unknown", observed.refusal().message()}};
  return judged;
}

Result<void> raise_mark(Receiver& receiver, const std::string& resource, Generation to,
                        std::optional<Generation> expected) {
  HF_TRY(const auto transaction, receiver.begin());
  HF_TRY(const auto mark, transaction->mark(resource));
  if (expected && (!mark || *mark < *expected)) {
    return Refusal(Code::receiver_high_water_missing,
                   "receiver_high_water_missing: the receiver's mark for " + resource + " is " +
                       (mark ? mark->text() : "missing") + ", the workspace's copy " + expected->text(),
                   Json{{"resource", resource}, {"receiver_mark", number(mark)}, {"workspace_mark", expected->text()}});
  }
  if (mark && *mark >= to) return {};
  HF_CHECK(transaction->set_mark(resource, to));
  return transaction->commit();
}

Result<Generation> make_mark(Receiver& receiver, const std::string& resource, Generation first) {
  HF_TRY(const auto transaction, receiver.begin());
  HF_TRY(const auto mark, transaction->mark(resource));
  if (mark) return *mark;
  HF_CHECK(transaction->set_mark(resource, first));
  HF_CHECK(transaction->commit());
  return first;
}

Result<Generation> reseed(Receiver& receiver, const std::string& resource, Generation to) {
  HF_TRY(const auto transaction, receiver.begin());
  HF_TRY(const auto mark, transaction->mark(resource));
  const Generation seeded{std::max(to.value, mark ? mark->value : 0)};
  HF_CHECK(transaction->set_mark(resource, seeded));
  HF_CHECK(transaction->commit());
  return seeded;
}

Result<std::optional<Generation>> read_mark(Receiver& receiver, const std::string& resource) {
  HF_TRY(const auto transaction, receiver.begin());
  return transaction->mark(resource);
}

}  // namespace holdfast::receivers
