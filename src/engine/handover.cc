#include "engine/handover.h"

#include <algorithm>

#include "base/json.h"
#include "engine/observing.h"

namespace holdfast::engine {
namespace {

// One guard's way to its counterpart in the other image.
class ScopeFollower : public guard::Follower {
 public:
  ScopeFollower(std::shared_ptr<Successor> successor, std::string scope)
      : successor_(std::move(successor)), scope_(std::move(scope)) {}
  Result<bool> offer(const os::Handle& object, const std::string& temporary_name, bool leased) override {
    return successor_->offer_object(scope_, object, temporary_name, leased);
  }
  void settle(bool taken) override { successor_->settle_object(scope_, taken); }

 private:
  std::shared_ptr<Successor> successor_;
  std::string scope_;
};

bool holds(const Holder& holder, const Tenancy& tenancy) {
  return tenancy.holder.is_server && tenancy.holder.session == holder.session &&
         tenancy.holder.process == holder.process;
}

std::shared_ptr<guard::Guard> guard_on(Context& context, const std::string& scope) {
  const auto all = context.guard_table.all();
  const auto found = all.find(scope);
  return found == all.end() ? nullptr : found->second.guard;
}

}  // namespace

Result<std::vector<std::string>> begin_handover(Context& context) {
  HF_TRY(Transition transition, begin_transition(context));
  HF_CHECK(record_observations(context, transition));
  std::vector<std::string> scopes;
  for (const auto& [full, tenancy] : transition.state.held) {
    if (holds(context.self, tenancy)) scopes.push_back(full);
  }
  // A guard of a tenancy that ended guards nothing that anybody leases: it is not handed over.
  for (const auto& [scope, entry] : context.guard_table.all()) {
    const auto held = transition.state.held.find(scope);
    if (held == transition.state.held.end() || held->second.generation != entry.generation) {
      context.guard_table.drop(scope, entry.generation);
    }
  }
  return scopes;
}

Result<void> share_guards(Context& context, const std::shared_ptr<Successor>& successor) {
  for (const auto& [scope, entry] : context.guard_table.all()) {
    guard::Overlap& overlap = entry.guard->overlap();
    const guard::Overlap::Place at = overlap.place();
    GuardedPlace place{scope, entry.generation.text(), at.leaf, at.relative, overlap.state(), {}};
    HF_TRY(place.parent, os::duplicate(at.parent));
    HF_CHECK(successor->begin_guard(place));
    HF_CHECK(overlap.share(std::make_shared<ScopeFollower>(successor, scope)));
  }
  return {};
}

Json guards_stand_by(Context& context) {
  Json guards = Json::object();
  for (const auto& [scope, entry] : context.guard_table.all()) guards[scope] = entry.guard->overlap().stand_by();
  // What they saw last is recorded while they still stand: the marks on a lease come from it.
  if (auto transition = begin_transition(context); transition.ok()) (void)record_observations(context, *transition);
  Json unsettled = Json::array();
  for (const std::string& scope : context.unsettled) unsettled.push_back(scope);
  return Json{{"guards", std::move(guards)}, {"unsettled", std::move(unsettled)}};
}

void guards_answer_again(Context& context) {
  for (const auto& [scope, entry] : context.guard_table.all()) entry.guard->overlap().answer_again();
}

Result<void> begin_guard(Context& context, GuardedPlace place) {
  const auto generation = parse_u64(place.generation);
  if (!generation || !place.parent) return Refusal(Code::handoff_failed, "no description of a guard");
  guard::Target target{place.scope, std::move(place.parent), place.leaf, place.relative};
  HF_TRY(auto taken, context.guards->take_beside(std::move(target), place.state));
  context.guard_table.put(place.scope, Generation{*generation}, std::move(taken));
  return {};
}

Result<bool> offer_object(Context& context, const std::string& scope, os::Handle object,
                          const std::string& temporary_name, bool leased) {
  const auto guard = guard_on(context, scope);
  if (!guard || !object) return Refusal(Code::handoff_failed, "an object of no guard that is handed over");
  return guard->overlap().prepare(std::move(object), temporary_name, leased);
}

void settle_object(Context& context, const std::string& scope, bool taken) {
  if (const auto guard = guard_on(context, scope)) guard->overlap().settle(taken);
}

Result<void> learn(Context& context, const Json& states) {
  const Json guards = states.value("guards", Json::object());
  const auto all = context.guard_table.all();
  if (!guards.is_object() || guards.size() != all.size()) {
    return Refusal(Code::handoff_failed, "the two images do not guard the same files");
  }
  for (const auto& [scope, entry] : all) {
    if (!guards.contains(scope)) return Refusal(Code::handoff_failed, "no guard on " + scope + " was handed over");
    HF_CHECK(entry.guard->overlap().learn(guards[scope]));
  }
  for (const Json& scope : states.value("unsettled", Json::array())) context.unsettled.insert(scope.get<std::string>());
  return {};
}

void guards_answer(Context& context) {
  for (const auto& [scope, entry] : context.guard_table.all()) entry.guard->overlap().answer();
}

Result<Json> take_over(Context& context, const Holder& gone) {
  HF_TRY(Transition transition, begin_transition(context));
  authority::Batch batch;
  Json moved = Json::array();
  for (const auto& [full, held] : transition.state.held) {
    if (!holds(gone, held)) continue;
    const bool was_enforced = guard::Enforcement::from_json(held.os_lock).enforced;
    if (was_enforced && !context.guard_table.find(held)) continue;
    Tenancy tenancy = held;
    tenancy.holder = context.self;
    evidence::Event event;
    event.kind = "holder_transferred";
    event.scope = full;
    event.generation = tenancy.generation;
    if (!tenancy.event.empty()) event.parents.push_back(tenancy.event);
    event.facts = {{"from", gone.to_json()}, {"to", context.self.to_json()}, {"reason", "the other image is gone"}};
    batch.events.push_back(std::move(event));
    moved.push_back(full);
    batch.updates.push_back(std::move(tenancy));
  }
  if (batch.updates.empty()) return Json{{"transferred", std::move(moved)}};
  HF_CHECK(context.store->commit(transition.held, transition.state, std::move(batch), transition.now));
  return Json{{"transferred", std::move(moved)}};
}

}  // namespace holdfast::engine
