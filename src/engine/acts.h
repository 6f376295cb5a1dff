// Requested acts: exact bytes for one target, bound to a task's generation, approved once and consumed once; and the
// grants by which a task receives the result of another's (first seed, section 8, "RequestedAct and result grants").
//
// States of acts/<sha256(operation_id)>.json: prepared --approve--> approved --commit--> committing --effect-->
// consumed; committing --refused, and known not to be applied--> approved. Calling sequence: act_prepare under the
// tenancy; act_approve by whoever decides; act_commit under the same tenancy. Promises: what is committed is what was
// prepared and approved, byte for byte: another command, payload, generation, task or epoch is refused, and so is a
// second commit. A crash between effect and record is closed by committing again: the receiver answers with the first
// outcome, and nothing is done twice. Does not promise: that the approver is who the name says; whoever may run this
// program may approve. Errors: act_mismatch act_consumed approval_required result_grant_tenancy_required, and those of
// the effect.
#pragma once
#include "engine/context.h"

namespace holdfast::engine {

Result<Json> act_prepare(Context& context, const Json& arguments);
Result<Json> act_approve(Context& context, const Json& arguments);
Result<Json> act_commit(Context& context, const Json& arguments);
Result<Json> act_list(Context& context);
// With the bytes, as payload_base64: null where the vault has them no more.
Result<Json> act_show(Context& context, const Json& arguments);

// The act of this operation id, whatever its state; nullopt: none was prepared.
Result<std::optional<Json>> find_act(Context& context, const std::string& operation_id);

Result<Json> result_grant(Context& context, const Json& arguments);
Result<Json> result_get(Context& context, const Json& arguments);

// Acts on these scopes that were prepared or approved and not consumed: what a handoff has to look at.
Result<std::vector<Json>> open_acts(Context& context, const Scope& scope);

}  // namespace holdfast::engine
