// Who may have a scope: break-glass, exclusions, conflicts, existing tenancy, in that order (CONTRACT section 3).
//
// Decides only, and changes nothing: called before the capture to refuse early, and again under the granting
// transition. Refuses: break_glass_engaged, package_excluded, source_excluded, lease_scope_conflict,
// lease_task_mismatch, dead_holder_not_proven; read_acquire_request the scope_* codes, usage and lease_ttl_invalid.
#pragma once
#include "engine/context.h"

namespace holdfast::engine {

struct AcquireRequest {
  std::string owner;
  std::string task_id;
  std::int64_t ttl_seconds = kTtlMaxSeconds;
  bool fresh = false;
  bool no_guard = false;
  bool confined = false;  // of `run`: what its program writes below is its own
  std::string require;
  std::string reason;
  std::string family;
  std::string consequence;
  std::optional<TenancyKeys> keys;  // of --lease FILE: proof for a dead server's tenancy
  std::vector<Scope> scopes;
  std::uint64_t wait_seconds = 0;
  bool bound = false;      // asked for by a `hold`: it never joins a tenancy
  WaitQueue::Place place;  // in the queue; null for one who does not wait
};

Result<AcquireRequest> read_acquire_request(Context& context, const Json& json);

enum class Verdict { grant, existing, regrant };

// Whoever came earlier and waits is not overtaken: lease_scope_conflict that says how many. Not for a scope below what
// the owner holds already.
Result<void> refuse_overtaking(Context& context, const authority::Loaded& state, const AcquireRequest& request,
                               const Scope& scope);

// `identity` is of the object that bears the scope now: another name of a held object is a conflict.
Result<Verdict> judge_acquisition(Context& context, Transition& transition, const AcquireRequest& request,
                                  const Scope& scope, const os::Identity& identity);

}  // namespace holdfast::engine
