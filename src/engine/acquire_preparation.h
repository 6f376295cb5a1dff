// What a grant stands on: the guard, the baseline, and of a re-grant what was seen for the old tenancy's end.
//
// Calling sequence: prepare_outside() before the granting transition (it reads, hashes and archives); inside it, by the
// verdict there, prepare_under_transition() or guard_regrant(); after a re-grant's end was checked, capture_again().
// Promises: the guard comes first, so that what is captured is what the lease protects; what is no longer as it was
// prepared is prepared again inside. Of a re-grant the old tenancy's end is looked at before the new baseline is
// captured, so that nothing ungated becomes one unseen. Threads: one acquisition of a scope at a time (ScopeTurns).
// Refuses: file_unreadable, scope_*, state_persist_failed, and what taking a guard does.
#pragma once
#include <memory>
#include <optional>

#include "engine/acquire_judgement.h"
#include "engine/sight.h"

namespace holdfast::engine {

// One scope on its way to a grant.
struct Candidate {
  Scope scope;
  Verdict verdict = Verdict::grant;  // as it was judged first
  PreWrite pre_write;
  os::Identity identity;
  os::Identity parent_identity;
  guard::Enforcement enforcement;
  std::shared_ptr<guard::Guard> guard;
  Sight captured;
  bool ready = false;                  // guard and baseline were taken
  std::optional<Tenancy> superseding;  // of a re-grant: what it was prepared against
  Sight ending;                        // and what was seen for its end
};

Result<void> prepare_outside(Context& context, const AcquireRequest& request, Candidate& candidate);
Result<void> prepare_under_transition(Context& context, const AcquireRequest& request, Candidate& candidate);
// Of a re-grant only the new guard: it stands before the old tenancy's end is checked and its guard drops.
Result<void> guard_regrant(Context& context, const AcquireRequest& request, Candidate& candidate, const Tenancy& old);
// The baseline, where it is not what was captured outside.
Result<void> capture_again(Context& context, Candidate& candidate);

}  // namespace holdfast::engine
