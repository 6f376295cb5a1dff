// require_write_binding (first seed, section 5; CONTRACT section 4): whether these keys may replace this file now.
//
// Under the transition, before staging and again before the publish. Refuses, in this order: what judge_keys refuses,
// exact_lease_required, governing_source_is_destination, destination_is_mount_point, destination_not_a_file,
// server_handle_required, destination_parent_redirected, reconciliation_required.
#pragma once
#include "engine/context.h"
#include "engine/write.h"

namespace holdfast::engine {

// The lease and the guard that a replacement is bound to.
struct Binding {
  Tenancy tenancy;
  std::shared_ptr<guard::Guard> guard;
};

// What the kernel says now is recorded before anything is judged.
Result<void> look_before_acting(Context& context, Transition& transition, const Scope& scope);

Result<Binding> require_write_binding(Context& context, Transition& transition, const Replacement& replacement,
                                      const Scope& scope);

}  // namespace holdfast::engine
