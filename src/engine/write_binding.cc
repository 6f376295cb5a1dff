#include "engine/write_binding.h"

#include "base/json.h"
#include "engine/due.h"
#include "engine/ending.h"
#include "engine/faults.h"
#include "engine/observing.h"
#include "engine/recover.h"
#include "engine/tasks.h"
#include "scope/resolve.h"

namespace holdfast::engine {
namespace {

Result<void> require_exact_lease(const authority::Loaded& state, const Scope& scope, const TenancyKeys& keys) {
  if (state.find(scope) != nullptr) return {};
  for (const auto& [full, held] : state.held) {
    if (!is_below(scope, held.scope) || held.owner != keys.owner || held.generation != keys.generation) continue;
    return Refusal(Code::exact_lease_required,
                   "exact_lease_required: the lease is on " + held.scope.display() + ", not on " + scope.display(),
                   Json{{"scope", scope.full()}, {"leased", held.scope.full()}});
  }
  return {};
}

}  // namespace

// The watching thread may wait for this very transition with what it saw: then the record is made here, and its event
// follows.
Result<void> look_before_acting(Context& context, Transition& transition, const Scope& scope) {
  const Tenancy* held = transition.state.find(scope);
  const auto guard = held == nullptr ? nullptr : context.guard_table.find(*held);
  const auto checked = guard ? guard->check() : Result<void>();
  HF_CHECK(record_observations(context, transition));
  held = transition.state.find(scope);
  if (checked.ok() || held == nullptr) return {};
  guard::Observation seen;
  seen.what = checked.refusal().message();
  seen.scope = scope.full();
  seen.fault = std::string(checked.refusal().code_name());
  return record_noticed_fault(context, transition, *held, seen, "");
}

Result<Binding> require_write_binding(Context& context, Transition& transition, const Replacement& replacement,
                                      const Scope& scope) {
  const Instant& now = transition.now;
  HF_CHECK(end_what_is_due(context, transition, &scope));
  HF_CHECK(settle_intents_of(context, transition, scope));
  HF_CHECK(require_exact_lease(transition.state, scope, replacement.keys));
  HF_TRY(const Tenancy held, current_tenancy(context, transition, scope, replacement.keys));
  if (!scope.is_file()) {
    return Refusal(Code::exact_lease_required, "exact_lease_required: only a file can be written",
                   Json{{"scope", scope.full()}});
  }
  HF_CHECK(check_governing_sources(context, held.task_id, scope));
  HF_TRY(const PinnedPlace place, pin_place(context.folder, scope));
  if (place.is_mount_point) {
    return Refusal(Code::destination_is_mount_point, "destination_is_mount_point: " + scope.display(),
                   Json{{"scope", scope.full()}});
  }
  if (place.leaf.empty() || (place.facts && place.facts->kind != os::Kind::regular)) {
    return Refusal(Code::destination_not_a_file, "destination_not_a_file: " + scope.display(),
                   Json{{"scope", scope.full()}});
  }
  auto guard = context.guard_table.find(held);
  if (!guard) {
    return Refusal(Code::server_handle_required,
                   "server_handle_required: no living server holds " + scope.display() + " for generation " +
                       held.generation.text(),
                   Json{{"scope", scope.full()},
                        {"holder", describe_holder(held, now)},
                        {"liveness", os::name_of(holder_liveness(context, held))}});
  }
  if (held.parent_identity.known() && !(place.parent_facts.identity == held.parent_identity)) {
    return Refusal(
        Code::destination_parent_redirected,
        "destination_parent_redirected: the folder of " + scope.display() + " is not the one that was leased",
        Json{{"scope", scope.full()}});
  }
  if (!replacement.restores_reconciliation) {
    HF_TRY(const auto waiting, waiting_reconciliation(context, scope));
    if (waiting) {
      return Refusal(Code::reconciliation_required,
                     "reconciliation_required: " + text_member(*waiting, "fault") + " on " + scope.display() +
                         " waits for a decision (" + text_member(*waiting, "id") + ")",
                     Json{{"scope", scope.full()}, {"reconcile", *waiting}});
    }
  }
  return Binding{held, std::move(guard)};
}

}  // namespace holdfast::engine
