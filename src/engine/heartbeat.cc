#include "engine/heartbeat.h"

#include "base/fault_point.h"
#include "engine/arguments.h"
#include "engine/due.h"
#include "engine/ending.h"
#include "engine/observing.h"

namespace holdfast::engine {

Result<Json> heartbeat(Context& context, const Json& json, const Caller&) {
  const Arguments arguments(json);
  HF_TRY(const auto ttl_text, arguments.optional_text("ttl"));
  std::optional<std::int64_t> ttl;
  if (ttl_text) { HF_TRY(ttl, parse_ttl(*ttl_text)); }
  HF_TRY(Transition transition, begin_transition_on(context, arguments));
  HF_TRY(const Tenancy held, current_tenancy(context, transition, arguments));
  const Scope scope = held.scope;
  HF_CHECK(walk_again(context, scope));
  if (const auto guard = context.guard_table.find(held)) (void)guard->check();  // what it finds is in os_lock
  HF_CHECK(record_observations(context, transition));
  Tenancy renewed = *transition.state.find(scope);
  const guard::Enforcement now = current_enforcement(context, renewed, holder_liveness(context, renewed));
  if (context.guard_table.find(renewed)) renewed.os_lock = now.to_json();
  renewed.renew(transition.now, ttl.value_or(renewed.ttl_seconds));
  evidence::Event event;
  event.kind = "lease_renewed";
  event.scope = scope.full();
  event.generation = renewed.generation;
  if (!renewed.event.empty()) event.parents.push_back(renewed.event);
  event.facts = {{"owner", renewed.owner}, {"expires_at", renewed.expires_at}, {"ttl_seconds", renewed.ttl_seconds}};
  authority::Batch batch;
  batch.updates.push_back(renewed);
  batch.events.push_back(std::move(event));
  HF_CHECK(context.store->commit(transition.held, transition.state, std::move(batch), transition.now));
  HF_FAULT_POINT("heartbeat_after_commit");
  Json record = renewed.to_json();
  record["os_lock"] = now.to_json();
  return Json{{"lease", std::move(record)}, {"renewed", true}};
}

}  // namespace holdfast::engine
