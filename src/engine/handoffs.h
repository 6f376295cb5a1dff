// Transition closure (second seed, contract 3): a handoff of a scope stays open while something of the old owner can
// still alter the outcome.
//
// handoffs/<sha256(scope)>.json holds the last handoff of a scope: open --close--> closed. What stands in the way is
// looked up anew each time: leases, acts, programs that were issued and not answered, receivers, unknown effects.
// Calling sequence: handoff_open while the old owner holds the scope (or after its end); the new owner acquires;
// handoff_status as often as one likes; handoff_close.
// Promises: close refuses (transition_open) and names each thing in the way with what closes it; what a person accepts
// with a reason is recorded as that person's decision, never as proof.
// Does not promise: to know of commands that were sent around this workspace; the receivers' marks are for those.
// Errors: transition_open, not_found, target_exists. Source: CONTRACT section 5; docs/formats/handoff-record.md.
#pragma once
#include "engine/context.h"

namespace holdfast::engine {

Result<Json> handoff_open(Context& context, const Json& arguments);
Result<Json> handoff_status(Context& context, const Json& arguments);
Result<Json> handoff_close(Context& context, const Json& arguments);

}  // namespace holdfast::engine
