#include "engine/operator.h"

#include <algorithm>

#include "base/json.h"
#include "engine/arguments.h"
#include "engine/due.h"
#include "engine/ending.h"
#include "engine/receiver_registry.h"

namespace holdfast::engine {
namespace {

Json epoch_document(const authority::EpochState& state) {
  return Json{{"control_epoch", state.epoch.text()},
              {"break_glass", state.break_glass},
              {"reason", state.reason},
              {"changed_at", state.changed_at}};
}

// As far as they can be asked now: repair has to work where much is lost.
Generation highest_mark_at_receivers(Context& context) {
  Generation highest;
  const auto all = registered_receivers(context);
  for (const Registered& one : all.ok() ? *all : std::vector<Registered>()) {
    const auto use = use_receiver(context, one);
    const auto mark = use.ok() ? (*use)->read_mark(one.resource) : Result<std::optional<Generation>>(std::nullopt);
    if (mark.ok() && *mark) highest = std::max(highest, **mark);
  }
  return highest;
}

Result<Json> commit_epoch(Context& context, Transition& transition, const std::string& verb,
                          const std::string& reason) {
  authority::EpochState state = transition.state.epoch;
  if (verb == "epoch_advance") {
    if (state.epoch.value == UINT64_MAX) {
      return Refusal(Code::generation_exhausted, "generation_exhausted: the control epoch cannot be advanced further");
    }
    ++state.epoch.value;
  } else {
    state.break_glass = verb == "epoch_engage";
  }
  state.reason = reason;
  state.changed_at = format_wall(transition.now.wall_us);
  evidence::Event event;
  event.kind = verb == "epoch_advance" ? "control_epoch_advanced"
               : state.break_glass     ? "break_glass_engaged"
                                       : "break_glass_disengaged";
  event.epoch = state.epoch;
  event.facts = {{"reason", reason}, {"control_epoch", state.epoch.text()}, {"break_glass", state.break_glass}};
  authority::Batch batch;
  batch.epoch = state;
  batch.events.push_back(std::move(event));
  std::size_t revoked = 0;
  for (const auto& [full, tenancy] : transition.state.held) revoked += tenancy.control_epoch < state.epoch ? 1U : 0U;
  HF_CHECK(context.store->commit(transition.held, transition.state, std::move(batch), transition.now));
  Json document = epoch_document(state);
  if (verb == "epoch_advance") document["revoked_leases"] = revoked;
  return document;
}

}  // namespace

Result<Json> epoch_show(Context& context) {
  HF_TRY(const authority::EpochState state, context.store->peek_epoch());
  return epoch_document(state);
}

Result<Json> epoch_change(Context& context, const Json& json, const std::string& verb) {
  HF_TRY(const std::string reason, Arguments(json).text("reason"));
  Json document;
  {
    HF_TRY(Transition transition, begin_transition(context));
    HF_TRY(document, commit_epoch(context, transition, verb, reason));
  }
  if (verb != "epoch_advance") return document;
  // The revocation stands with the epoch; the ends, with their checks, follow, each looked at before the transition.
  const auto end_the_revoked = [&]() -> Result<void> {
    HF_TRY(Transition transition, begin_transition_on(context, nullptr));
    return end_what_is_due(context, transition, nullptr);
  };
  if (auto ended = end_the_revoked(); !ended.ok()) document["ends_still_due"] = ended.refusal().message();
  return document;
}

Result<Json> generations_show(Context& context) {
  HF_TRY(const Held held, context.mutex->acquire());
  HF_TRY(const Counters counters, context.store->peek_counters());
  Json shown = Json::object();
  for (const auto& [key, counter] : counters) shown[key] = std::to_string(counter);
  return Json{{"protocol", "room.generation.v2"},
              {"high_water", std::to_string(high_water_of(counters))},
              {"counters", std::move(shown)}};
}

Result<Json> generations_verify(Context& context) {
  HF_TRY(const Held held, context.mutex->acquire());
  HF_TRY(const Counters counters, context.store->peek_counters());
  return Json{{"verified", true}, {"high_water", std::to_string(high_water_of(counters))}, {"keys", counters.size()}};
}

Result<Json> generations_repair(Context& context, const Json& json) {
  const Arguments arguments(json);
  HF_TRY(const std::string reason, arguments.text("reason"));
  HF_TRY(const auto floor, arguments.number("floor"));
  HF_TRY(const Held held, context.mutex->acquire());
  const Instant now = context.clock.now();
  const Generation known{std::max(floor.value_or(0), highest_mark_at_receivers(context).value)};
  HF_TRY(const auto repaired, context.store->repair(held, known, now));
  evidence::Event event;
  event.kind = "generations_repaired";
  event.generation = repaired.high_water;
  event.epoch = repaired.epoch;
  event.facts = {{"reason", reason},
                 {"high_water", repaired.high_water.text()},
                 {"control_epoch", repaired.epoch.text()},
                 {"found", repaired.found}};
  auto ids = context.chain->append({std::move(event)}, now);
  if (!ids.ok()) return std::move(ids).refusal().with_effect(Effect::applied);
  return Json{{"repaired", true},
              {"high_water", repaired.high_water.text()},
              {"control_epoch", repaired.epoch.text()},
              {"found", repaired.found},
              {"evidence", ids->front()}};
}

}  // namespace holdfast::engine
