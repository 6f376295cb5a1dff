// What the guard saw becomes evidence: events, quarantined bytes, and the lease's os_lock.
#pragma once
#include "engine/context.h"

namespace holdfast::engine {

// Takes what the guard has seen so far, without waiting, and records it under the open transition.
Result<void> record_observations(Context& context, Transition& transition);
// The same for observations that are already taken out of the queue.
Result<void> record_observations(Context& context, Transition& transition,
                                 std::vector<guard::Observation> observations);

}  // namespace holdfast::engine
