#include "receivers/receiver.h"

#include <algorithm>

#include "base/digest.h"
#include "base/json.h"

namespace holdfast::receivers {
namespace {

Json number(const std::optional<Generation>& generation) { return generation ? Json(generation->text()) : Json(); }

// What a delivery was judged by. The inputs are those of docs/formats/evidence.md.
Json inputs_of(const Json& presented, const std::optional<Generation>& mark, const Current& current) {
  Json inputs = {
      {"presented_generation", presented.value("generation", Json())},
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
  inputs["revoked"] = epoch && *epoch < current.epoch.value;
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
  const std::optional<Generation> newest = current.knows_tenancy ? current.generation : mark;
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
  if (command.control_epoch < current.epoch.value) {
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
  HF_TRY(const auto transaction, receiver.begin());
  HF_TRY(const auto mark, transaction->mark(command.resource));
  delivery.mark = mark;
  delivery.decision.inputs = inputs_of(presented, mark, current);
  const bool is_closed = !mark || (current.workspace_mark && *mark < *current.workspace_mark);
  if (is_closed) return refused(std::move(delivery), closed(command, mark, current));
  HF_TRY(const auto before, transaction->applied(command.operation_id));
  delivery.decision.inputs["presented_operation"] = operation_of(command);
  delivery.decision.inputs["applied_operation"] = before ? operation_of(before->command) : Json();
  if (before && operation_of(before->command) != operation_of(command)) {
    return refused(std::move(delivery),
                   Refusal(Code::operation_id_reused,
                           "operation_id_reused: " + command.operation_id + " was used for another command",
                           Json{{"operation_id", command.operation_id}}));
  }
  if (before) {
    delivery.decision.decision = "repeated";
    delivery.repeated = true;
    delivery.outcome = before->outcome;
    if (before->command.generation < mark->value) delivery.outcome["superseded_by"] = mark->text();
    return delivery;
  }
  if (auto refusal = against_the_tenancy(command, mark, current)) return refused(std::move(delivery), *refusal);
  auto outcome = transaction->apply(command, payload, capture);
  if (!outcome.ok()) {
    delivery.decision.inputs["effect"] = outcome.refusal().details();
    return refused(std::move(delivery), outcome.refusal());
  }
  HF_CHECK(transaction->remember({command, *outcome}));
  const Generation raised{std::max(mark->value, command.generation)};
  if (*mark < raised) HF_CHECK(transaction->set_mark(command.resource, raised));
  HF_CHECK(transaction->commit());
  delivery.mark = raised;
  delivery.decision.decision = "accepted";
  delivery.outcome = std::move(*outcome);
  // The effect stands whatever this look finds: a later one may have come between.
  const auto observed = receiver.observe(command, payload);
  delivery.observed = observed.ok() ? *observed : Json{{"unknown", observed.refusal().message()}};
  return delivery;
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
