#include "engine/due.h"

#include <algorithm>

#include "base/fault_point.h"
#include "engine/session_binding.h"

namespace holdfast::engine {
namespace {

bool has_dead_client(const Tenancy& tenancy) { return tenancy.bound && client_liveness(tenancy) == os::Liveness::dead; }

bool is_due(const Tenancy& tenancy, const Instant& now, Epoch epoch) {
  return tenancy.expired_at(now) || tenancy.control_epoch < epoch || has_dead_client(tenancy);
}

// A guard whose tenancy ended past the verbs (an end that a crash or a full disk cut short) would divert writers of a
// file that nobody leases.
std::vector<std::pair<std::string, Generation>> guards_without_tenancy(Context& context,
                                                                       const std::vector<Tenancy>& tenancies) {
  std::vector<std::pair<std::string, Generation>> left;
  for (const auto& [scope, entry] : context.guard_table.all()) {
    const auto is_its = [&scope = scope, &entry = entry](const Tenancy& tenancy) {
      return tenancy.generation == entry.generation && tenancy.scope.full() == scope;
    };
    const bool held = std::any_of(tenancies.begin(), tenancies.end(), is_its);
    if (!held) left.emplace_back(scope, entry.generation);
  }
  return left;
}

std::vector<Tenancy> due_now(Context& context) {
  std::vector<Tenancy> due;
  const auto tenancies = context.store->peek_tenancies();
  if (!tenancies.ok()) return due;
  const auto epoch = context.store->peek_epoch();
  const Instant now = context.clock.now();
  for (const Tenancy& tenancy : *tenancies) {
    if (is_due(tenancy, now, epoch.ok() ? epoch->epoch : Epoch{0})) due.push_back(tenancy);
  }
  return due;
}

// Overlapping, or the other side of a managed session: whichever has to end is in the scope's way.
bool concerns(SessionBindings& bindings, const Scope& scope, const Scope& other) {
  if (overlaps(scope, other)) return true;
  const auto bound = bindings.bound(scope, other);
  return bound.ok() && *bound;
}

// Every tenancy that has to end and concerns the scope, and by what.
std::vector<std::pair<Tenancy, std::string>> due_on(Context& context, const Transition& transition,
                                                    const Scope* scope) {
  std::vector<std::pair<Tenancy, std::string>> due;
  SessionBindings bindings(context);
  for (const auto& [full, tenancy] : transition.state.held) {
    const bool is_revoked = tenancy.control_epoch < transition.state.epoch.epoch;
    if (!is_revoked && !tenancy.expired_at(transition.now)) continue;
    if (scope != nullptr && !concerns(bindings, *scope, tenancy.scope)) continue;
    due.emplace_back(tenancy, is_revoked ? "epoch" : "expiry");
  }
  return due;
}

bool is_seen(Context& context, const Transition& transition, const Tenancy& tenancy) {
  const auto found = transition.seen.find(tenancy.scope.full());
  return found != transition.seen.end() && found->second.generation == tenancy.generation &&
         still_so(context, tenancy.scope, found->second);
}

// What is due on these scopes and takes long to look at, and was not looked at yet.
std::map<std::string, Tenancy> unseen_due(Context& context, const Transition& transition, const ScopesOf& scopes_of) {
  std::vector<std::pair<Tenancy, std::string>> due;
  if (!scopes_of) due = due_on(context, transition, nullptr);
  for (const Scope& scope : scopes_of ? scopes_of(transition) : std::vector<Scope>()) {
    for (auto& one : due_on(context, transition, &scope)) due.push_back(std::move(one));
  }
  std::map<std::string, Tenancy> unseen;
  for (auto& [tenancy, ended_by] : due) {
    if (is_quick_to_look_at(context, tenancy.scope) || is_seen(context, transition, tenancy)) continue;
    unseen.emplace(tenancy.scope.full(), tenancy);
  }
  return unseen;
}

}  // namespace

bool is_anything_due(Context& context) { return !due_now(context).empty(); }

Sights look_at_what_is_due(Context& context) {
  Sights seen;
  for (const Tenancy& tenancy : due_now(context)) {
    if (is_quick_to_look_at(context, tenancy.scope)) continue;
    seen.emplace(tenancy.scope.full(), look_at_end_of(context, tenancy));
  }
  return seen;
}

void end_what_became_due(Context& context, Transition& transition) {
  std::vector<Tenancy> held;
  for (const auto& [full, tenancy] : transition.state.held) held.push_back(tenancy);
  for (const auto& [scope, generation] : guards_without_tenancy(context, held))
    context.guard_table.drop(scope, generation);
  // What one end refuses (a full disk) does not keep the others; it is tried again at the next tick.
  (void)end_what_is_due(context, transition, nullptr);
  for (const Tenancy& tenancy : held) {
    if (!has_dead_client(tenancy) || transition.state.find(tenancy.scope) == nullptr) continue;
    const auto found = transition.seen.find(tenancy.scope.full());
    (void)end_tenancy_now(context, transition, tenancy, "client_death",
                          found == transition.seen.end() ? nullptr : &found->second);
  }
}

Result<void> end_what_is_due(Context& context, Transition& transition, const Scope* scope) {
  for (const auto& [tenancy, ended_by] : due_on(context, transition, scope)) {
    const auto found = transition.seen.find(tenancy.scope.full());
    auto ended = end_tenancy_now(context, transition, tenancy, ended_by,
                                 found == transition.seen.end() ? nullptr : &found->second);
    if (!ended.ok()) return std::move(ended).refusal();
  }
  return {};
}

Result<Transition> begin_transition_on(Context& context, const ScopesOf& scopes_of, authority::Need need, Sights seen) {
  // Whoever writes on and on is looked at under the transition in the end: nobody may write then but past every rule.
  static constexpr int kLooksMax = 3;
  for (int looked = 0;; ++looked) {
    std::map<std::string, Tenancy> unseen;
    {
      HF_TRY(Transition transition, begin_transition(context, need));
      transition.seen = std::move(seen);
      if (looked < kLooksMax) unseen = unseen_due(context, transition, scopes_of);
      if (unseen.empty()) return transition;
      seen = std::move(transition.seen);
    }
    for (const auto& [full, tenancy] : unseen) {
      const auto before = seen.find(full);
      seen[full] = look_at_end_of(context, tenancy, before == seen.end() ? nullptr : &before->second);
    }
    HF_FAULT_POINT("due_after_look");
  }
}

Result<Transition> begin_transition_on(Context& context, const std::string& text, const std::string& current_folder) {
  return begin_transition_on(context, [&](const Transition& transition) {
    const auto scope = scope_of_lease(context, transition.state, text, current_folder);
    return scope.ok() ? std::vector<Scope>{*scope} : std::vector<Scope>();
  });
}

Result<Transition> begin_transition_on(Context& context, const Arguments& arguments) {
  const auto text = arguments.scope();
  const auto cwd = arguments.current_folder();
  if (!text.ok() || !cwd.ok()) return begin_transition(context);  // who reads the arguments refuses
  return begin_transition_on(context, *text, *cwd);
}

}  // namespace holdfast::engine
