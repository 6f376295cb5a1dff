// release: by its keys, or by an owner's authorisation.
#include "base/fault_point.h"
#include "base/json.h"
#include "engine/arguments.h"
#include "engine/authorisation.h"
#include "engine/due.h"
#include "engine/ending.h"
#include "engine/observing.h"
#include "engine/recover.h"

namespace holdfast::engine {
namespace {

// Intents on the scope are settled or classified before its tenancy ends (CONTRACT section 4).
Result<Json> finish(Context& context, Transition& transition, const Tenancy& tenancy, const std::string& ended_by,
                    const std::optional<Sight>& seen, std::vector<evidence::Event> also) {
  if (const auto guard = context.guard_table.find(tenancy)) (void)guard->check();
  HF_CHECK(settle_intents_of(context, transition, tenancy.scope));
  HF_CHECK(record_observations(context, transition));
  const Tenancy* current = transition.state.find(tenancy.scope);
  HF_ASSERT(current != nullptr);
  const Tenancy ending = *current;
  const bool as_seen = seen && seen->generation == ending.generation && still_so(context, ending.scope, *seen);
  const Sight sight = as_seen ? *seen : look_at_end_of(context, ending, seen ? &*seen : nullptr);
  return end_tenancy(context, transition, ending, ended_by, sight, std::move(also));
}

// The tenancy of these keys, current and with nothing nested in it.
Result<Tenancy> judged(Context& context, Transition& transition, const Scope& scope, const TenancyKeys& keys) {
  HF_TRY(Tenancy tenancy, current_tenancy(context, transition, scope, keys));
  for (const auto& [full, other] : transition.state.held) {
    if (!is_below(other.scope, scope)) continue;
    return Refusal(Code::nested_lease_held,
                   "nested_lease_held: " + other.scope.display() + " below " + scope.display() + " is still held",
                   Json{{"scope", scope.full()}, {"inner", describe_holder(other, transition.now)}});
  }
  return tenancy;
}

// The tenancy that is to be broken, and the authorisation that allows it.
struct Breaking {
  Tenancy tenancy;
  Json authorisation;
};
Result<Breaking> judged_by_force(Context& context, const Transition& transition, const std::string& owner,
                                 const Scope& scope) {
  const Tenancy* held = transition.state.find(scope);
  if (held == nullptr) {
    return Refusal(Code::not_found, "nobody holds " + scope.display() + "; there is nothing to release",
                   Json{{"scope", scope.full()}});
  }
  HF_TRY(Json authorisation, owner_authorisation(context, owner, scope, transition.now));
  return Breaking{*held, std::move(authorisation)};
}

Result<Json> finish_by_force(Context& context, Transition& transition, const Breaking& breaking,
                             const std::string& owner, const std::optional<Sight>& seen) {
  const Tenancy& tenancy = breaking.tenancy;
  evidence::Event event;
  event.kind = "lock_force_released_under_owner_authorization";
  event.id = evidence::new_event_id();
  event.scope = tenancy.scope.full();
  if (!tenancy.event.empty()) event.parents.push_back(tenancy.event);
  event.facts = {{"forced_by", owner},
                 {"holder", describe_holder(tenancy, transition.now)},
                 {"authorisation", breaking.authorisation}};
  HF_TRY(Json document, finish(context, transition, tenancy, "force", seen, {std::move(event)}));
  document["forced_by"] = owner;
  return document;
}

Result<Json> force(Context& context, const Arguments& arguments) {
  HF_TRY(const std::string owner, arguments.text("owner"));
  HF_TRY(const std::string text, arguments.scope());
  HF_TRY(const std::string cwd, arguments.current_folder());
  Scope scope;
  Breaking breaking;
  {
    HF_TRY(Transition transition, begin_transition(context));
    HF_TRY(scope, scope_of_lease(context, transition.state, text, cwd));
    HF_TRY(breaking, judged_by_force(context, transition, owner, scope));
    if (is_quick_to_look_at(context, scope)) {
      return finish_by_force(context, transition, breaking, owner, std::nullopt);
    }
  }
  // The lease stays its holder's meanwhile; whoever holds it then, and whether it may be broken, is judged again.
  const Sight seen = look_at_end_of(context, breaking.tenancy);
  HF_FAULT_POINT("release_after_look");
  HF_TRY(Transition transition, begin_transition(context));
  const Generation looked_at = breaking.tenancy.generation;
  HF_TRY(breaking, judged_by_force(context, transition, owner, scope));
  if (breaking.tenancy.generation != looked_at) {
    return Refusal(
        Code::stale_lease_generation,
        "stale_lease_generation: expected " + looked_at.text() + ", current " + breaking.tenancy.generation.text() +
            "; the lease that was to be broken ended by itself",
        Json{{"scope", scope.full()}, {"expected", looked_at.text()}, {"current", breaking.tenancy.generation.text()}});
  }
  return finish_by_force(context, transition, breaking, owner, seen);
}

}  // namespace

Result<Json> release(Context& context, const Json& json, const Caller&) {
  const Arguments arguments(json);
  HF_TRY(const bool forced, arguments.flag("force"));
  if (forced) return force(context, arguments);
  HF_TRY(const TenancyKeys keys, arguments.keys());
  HF_TRY(const std::string text, arguments.scope());
  HF_TRY(const std::string cwd, arguments.current_folder());
  Scope scope;
  Tenancy tenancy;
  {
    HF_TRY(Transition transition, begin_transition_on(context, arguments));
    HF_TRY(scope, scope_of_lease(context, transition.state, text, cwd));
    HF_TRY(tenancy, judged(context, transition, scope, keys));
    if (is_quick_to_look_at(context, scope)) {
      HF_CHECK(walk_again(context, scope));
      return finish(context, transition, tenancy, "release", std::nullopt, {});
    }
  }
  HF_CHECK(walk_again(context, scope));
  const Sight seen = look_at_end_of(context, tenancy);
  HF_FAULT_POINT("release_after_look");
  // It may have become due meanwhile: what was seen serves that end as well.
  HF_TRY(Transition transition,
         begin_transition_on(context, [&](const Transition&) { return std::vector<Scope>{scope}; },
                             authority::Need::tenancies, {{scope.full(), seen}}));
  HF_TRY(tenancy, judged(context, transition, scope, keys));
  return finish(context, transition, tenancy, "release", seen, {});
}

}  // namespace holdfast::engine
