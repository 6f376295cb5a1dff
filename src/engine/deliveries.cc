#include "engine/deliveries.h"

#include <algorithm>

#include "base/base64.h"
#include "base/fault_point.h"
#include "base/json.h"
#include "engine/acts.h"
#include "engine/arguments.h"
#include "engine/due.h"
#include "engine/receiver_registry.h"
#include "engine/tasks.h"

namespace holdfast::engine {
namespace {

Result<receivers::Current> current_of(Context& context, const Transition& transition, const Registered& registered,
                                      const Scope& resource) {
  receivers::Current current;
  current.issuer = {context.workspace_id(), "local"};
  current.workspace_mark = registered.mark();
  current.knows_tenancy = true;
  current.epoch = transition.state.epoch.epoch;
  const auto is_of = [&current](const Tenancy& tenancy) {
    current.generation = tenancy.generation;
    current.owner = tenancy.owner;
    current.task_id = tenancy.task_id;
  };
  if (const Tenancy* held = transition.state.find(resource); held != nullptr) {
    is_of(*held);
    current.expired = held->expired_at(transition.now);
    return current;
  }
  HF_TRY(const auto last, context.store->last_ended(resource));
  if (!last) return current;
  current.ended = last->tenancy.generation;
  // Until somebody succeeds, who held it is told that time or the epoch ended it.
  // Either way nobody holds it: a command that names the new epoch is no way back in.
  current.expired = last->ended_by == "expiry" || last->ended_by == "epoch";
  if (current.expired) is_of(last->tenancy);
  return current;
}

// A closed receiver is opened here where its mark can be raised now.
Result<void> open_if_closed(Context& context, Registered& registered) {
  if (registered.closed.is_null()) return {};
  const auto needed = exact_u64(registered.closed.value("needed", Json()));
  HF_TRY(const ReceiverInUse use, use_receiver(context, registered));
  const Generation to{needed.value_or(0)};
  HF_CHECK(use->raise_mark(registered.resource, to, registered.mark()));
  HF_FAULT_POINT("opening_after_receiver_mark");
  registered.marks[registered.resource] = std::max(registered.mark().value_or(Generation{}), to);
  registered.closed = nullptr;
  return save_receiver(context, registered);
}

evidence::Event event_of(const char* kind, const Json& command, const Registered& registered,
                         const Transition& transition) {
  evidence::Event event;
  event.kind = kind;
  event.scope = registered.resource;
  if (const auto held = transition.state.held.find(registered.resource);
      held != transition.state.held.end() && !held->second.event.empty()) {
    event.parents.push_back(held->second.event);
  }
  event.facts = {{"receiver", registered.name}, {"kind", registered.kind}, {"command", command}};
  return event;
}

evidence::Event event_of(const receivers::Delivery& delivery, const Json& command, const Registered& registered,
                         const Transition& transition) {
  const char* kind = delivery.refusal ? "command_refused" : delivery.repeated ? "command_repeated" : "command_accepted";
  evidence::Event event = event_of(kind, command, registered, transition);
  event.facts["decision"] = delivery.decision.decision;
  event.facts["inputs"] = delivery.decision.inputs;
  if (delivery.refusal) {
    event.facts["message"] = delivery.refusal->message();
  } else {
    event.facts["outcome"] = delivery.outcome;
  }
  if (!delivery.observed.is_null()) event.facts["observed"] = delivery.observed;
  return event;
}

Result<receivers::Delivery> hand_over(Context& context, const Registered& registered, const Json& command,
                                      const std::string& payload, const receivers::Current& current) {
  const auto capture = [&](const Json& before) -> Result<Json> {
    HF_TRY(const ContentDigest kept, context.vault->store_bytes(vault::Tier::primary, dump_canonical(before)));
    return Json{{"sha256", kept.sha256}, {"tier", "primary"}};
  };
  HF_TRY(const ReceiverInUse use, use_receiver(context, registered));
  HF_FAULT_POINT("deliver_before_receiver");
  return use->deliver(command, payload, current, capture);
}

// The machine's "no", not a judged one: what is known of it becomes evidence.
Refusal not_delivered(Context& context, Transition& transition, const Registered& registered, const Json& command,
                      Refusal why) {
  if (why.code() == Code::receiver_unreachable) forget_receiver(context, registered.name);
  if (why.code() != Code::receiver_outcome_unknown) return why;
  evidence::Event event = event_of("command_outcome_unknown", command, registered, transition);
  event.facts["message"] = why.message();
  if (auto ids = record(context, transition, {std::move(event)}); ids.ok()) why.set_evidence(ids->front());
  return why;
}

// It takes nothing under this grant: fail closed, and say where the number may come from.
Refusal ahead_of_us(const Registered& registered, Generation mark, Generation to) {
  return Refusal(Code::generation_incomparable,
                 "generation_incomparable: the mark of receiver " + registered.name + ", " + mark.text() +
                     ", is above the generation that was granted, " + to.text() +
                     ": another workspace uses it, or this one was rolled back",
                 Json{{"name", registered.name}, {"receiver_mark", mark.text()}, {"granted", to.text()}})
      .with_hint("`holdfast generations repair --floor " + mark.text() + " --reason TEXT`, then acquire anew");
}

// What has to be approved first does not go round by the queue.
Result<void> check_no_act_waits(Context& context, const std::string& operation_id) {
  HF_TRY(const auto act, find_act(context, operation_id));
  const std::string state = act ? text_member(*act, "state") : "";
  if (state != "prepared" && state != "approved") return {};
  return Refusal(Code::approval_required,
                 "approval_required: " + operation_id + " was prepared as an act: it is approved and committed as one",
                 Json{{"operation_id", operation_id}, {"state", state}})
      .with_hint("`holdfast act approve ID`, then `holdfast act commit ID`");
}

// One receiver's mark, raised to a grant's generation; what the grant's answer says of it.
Json made_ready(Context& context, const Registered& registered, Generation to) {
  const std::string& resource = registered.resource;
  HF_FAULT_POINT("takeover_before_receiver_mark");
  const auto raised = [&]() -> Result<void> {
    HF_TRY(const ReceiverInUse use, use_receiver(context, registered));
    if (!registered.mark()) HF_CHECK(use->make_mark(resource, to));
    HF_CHECK(use->raise_mark(resource, to, registered.mark()));
    HF_TRY(const auto mark, use->read_mark(resource));
    return mark && *mark > to ? Result<void>(ahead_of_us(registered, *mark, to)) : Result<void>();
  }();
  if (!raised.ok()) forget_receiver(context, registered.name);
  HF_FAULT_POINT("takeover_after_receiver_mark");
  // The copy after the receiver, and under the transition: others may have raised it meanwhile.
  const auto saved = [&]() -> Result<void> {
    HF_TRY(const Transition transition, begin_transition(context));
    HF_TRY(Registered now, receiver_named(context, registered.name));
    // A grant that somebody has succeeded meanwhile says nothing of the receiver any more.
    if (now.mark() && *now.mark() > to) return {};
    if (!raised.ok()) {
      now.closed = {{"needed", to.text()},
                    {"reason", raised.refusal().message()},
                    {"since", format_wall(transition.now.wall_us)}};
      return save_receiver(context, now);
    }
    now.marks[resource] = std::max(now.mark().value_or(Generation{}), to);
    const auto needed = exact_u64(now.closed.is_object() ? now.closed.value("needed", Json()) : Json());
    if (needed.value_or(0) <= to.value) now.closed = nullptr;
    return save_receiver(context, now);
  }();
  Json line = {{"name", registered.name}, {"resource", resource}, {"state", raised.ok() ? "ready" : "closed"}};
  if (raised.ok()) line["mark"] = to.text();
  if (!raised.ok()) line["reason"] = raised.refusal().message();
  if (!saved.ok()) line["reason"] = saved.refusal().message();
  return line;
}

}  // namespace

Result<Json> deliver_command(Context& context, const Json& command, const std::string& payload,
                             const DeliveryTerms& terms) {
  const std::string resource = text_member(command, "resource");
  const auto parsed = parse_canonical_scope(resource);
  if (!parsed.ok()) {
    HF_CHECK(command_from_json(command));  // a generation that is none is said first
    return parsed.refusal();
  }
  const Scope scope = *parsed;
  if (scope.is_file()) return deliver_to_file(context, command, payload, terms);
  HF_TRY(Transition transition,
         begin_transition_on(context, [&scope](const Transition&) { return std::vector<Scope>{scope}; }));
  HF_CHECK(end_what_is_due(context, transition, &scope));
  HF_TRY(auto found, receiver_of(context, scope.full()));
  if (!found) return no_receiver(resource);
  Registered registered = std::move(*found);
  if (registered.kind == "command" && !terms.runs_programs) {
    return usage("the receiver of " + printable(resource) + " runs programs: a worker with one takes its commands " +
                 "(`holdfast receive -- CMD`)");
  }
  HF_CHECK(check_governing_sources(context, text_member(command, "task_id"), scope));
  HF_CHECK(open_if_closed(context, registered));
  HF_TRY(const receivers::Current current, current_of(context, transition, registered, scope));
  if (terms.revalidate) HF_CHECK(terms.revalidate());
  auto judged = hand_over(context, registered, command, payload, current);
  if (!judged.ok()) return not_delivered(context, transition, registered, command, std::move(judged).refusal());
  HF_FAULT_POINT("deliver_after_receiver");
  receivers::Delivery& delivery = *judged;
  HF_TRY(const auto ids, record(context, transition, {event_of(delivery, command, registered, transition)}));
  const bool raised = delivery.mark && !delivery.refusal && registered.mark().value_or(Generation{}) < *delivery.mark;
  HF_FAULT_POINT("deliver_after_event");
  if (raised) {
    registered.marks[registered.resource] = *delivery.mark;
    HF_CHECK(save_receiver(context, registered));
  }
  if (delivery.refusal) {
    delivery.refusal->set_evidence(ids.front());
    return std::move(*delivery.refusal);
  }
  return Json{{"decision", delivery.decision.decision},
              {"operation_id", text_member(command, "operation_id")},
              {"receiver", registered.name},
              {"generation", command.value("generation", Json())},
              {"repeated", delivery.repeated},
              {"outcome", std::move(delivery.outcome)},
              {"observed", std::move(delivery.observed)},
              {"evidence", ids.front()}};
}

Result<Json> deliver(Context& context, const Json& json) {
  const auto payload = base64_decode(text_member(json, "payload_base64"));
  if (!payload || payload->size() > kPayloadMax) return usage("payload_base64 is no base64, or over 16 MiB");
  const Json command = json.value("command", Json());
  if (!command.is_object()) return usage("command is no object");
  HF_CHECK(check_no_act_waits(context, text_member(command, "operation_id")));
  DeliveryTerms terms;
  HF_TRY(terms.runs_programs, Arguments(json).flag("runs_programs"));
  return deliver_command(context, command, *payload, terms);
}

Result<Json> delivery_end(Context& context, const Json& json) {
  const Arguments arguments(json);
  HF_TRY(const std::string resource, arguments.text("resource"));
  HF_TRY(const std::string operation_id, arguments.text("operation_id"));
  const Json exit_status = json.value("exit_status", Json());
  if (!exit_status.is_number_integer()) return usage("exit_status is no number");
  HF_TRY(Transition transition, begin_transition(context));
  HF_TRY(const auto registered, receiver_of(context, resource));
  if (!registered) return no_receiver(resource);
  const auto held = transition.state.held.find(resource);
  const auto issued = exact_u64(json.value("generation", Json()));
  const bool is_current =
      held != transition.state.held.end() && issued && held->second.generation == Generation{*issued};
  const Json outcome = {{"state", "finished"}, {"exit_status", exit_status}, {"tenancy_was_current", is_current}};
  {
    HF_TRY(const ReceiverInUse use, use_receiver(context, *registered));
    HF_CHECK(use->settle(operation_id, outcome));
  }
  HF_FAULT_POINT("delivery_end_after_receiver");
  evidence::Event event;
  event.kind = "command_finished";
  event.scope = resource;
  event.facts = {{"receiver", registered->name}, {"operation_id", operation_id}, {"outcome", outcome}};
  HF_TRY(const auto ids, record(context, transition, {std::move(event)}));
  return Json{{"operation_id", operation_id}, {"outcome", outcome}, {"current", is_current}, {"evidence", ids.front()}};
}

Json ready_receivers(Context& context, const Json& leases) {
  Json lines = Json::array();
  for (const Json& record : leases) {
    const auto scope =
        parse_canonical_scope(text_member(record, "namespace") + "://" + text_member(record, "resource_id"));
    const auto generation = exact_u64(record.value("generation", Json()));
    if (!scope.ok() || scope->is_file() || !generation) continue;
    const auto concerned = receivers_overlapping(context, *scope);
    if (!concerned.ok()) {
      lines.push_back({{"resource", scope->full()}, {"state", "closed"}, {"reason", concerned.refusal().message()}});
      continue;
    }
    for (const Registered& registered : *concerned) {
      lines.push_back(made_ready(context, registered, Generation{*generation}));
    }
  }
  return lines;
}

}  // namespace holdfast::engine
