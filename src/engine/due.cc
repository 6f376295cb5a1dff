#include "engine/due.h"

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
    const bool held = std::any_of(tenancies.begin(), tenancies.end(), [&](const Tenancy& tenancy) {
      return tenancy.generation == entry.generation && tenancy.scope.full() == scope;
    });
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

}  // namespace

bool is_anything_due(Context& context) { return !due_now(context).empty(); }

std::map<std::string, Sight> look_at_what_is_due(Context& context) {
  std::map<std::string, Sight> seen;
  for (const Tenancy& tenancy : due_now(context)) {
    if (is_quick_to_look_at(context, tenancy.scope)) continue;
    seen.emplace(tenancy.scope.full(), look_at_end_of(context, tenancy));
  }
  return seen;
}

void end_what_became_due(Context& context, Transition& transition, const std::map<std::string, Sight>& seen) {
  std::vector<Tenancy> held;
  for (const auto& [full, tenancy] : transition.state.held) held.push_back(tenancy);
  for (const auto& [scope, generation] : guards_without_tenancy(context, held))
    context.guard_table.drop(scope, generation);
  // What one end refuses (a full disk) does not keep the others; it is tried again at the next tick.
  (void)end_what_is_due(context, transition, nullptr, seen);
  for (const Tenancy& tenancy : held) {
    if (!has_dead_client(tenancy) || transition.state.find(tenancy.scope) == nullptr) continue;
    const auto found = seen.find(tenancy.scope.full());
    (void)end_tenancy_now(context, transition, tenancy, "client_death", found == seen.end() ? nullptr : &found->second);
  }
}

}  // namespace holdfast::engine
