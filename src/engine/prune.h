// vault prune: the one verb that takes bytes away, and only those that a person has decided on.
//
// Amber entries go that a quarantine record names whose `reconciled` is true, and that nothing else needs: no record
// that waits, no tenancy, no open fault. Their digests stay in the record ("pruned") and in the event.
// `reconcile resolve q-… --accept --reason TEXT` is how a person says that set-aside bytes are no longer needed.
#pragma once
#include "engine/context.h"

namespace holdfast::engine {

// {"pruned":[{"sha256","byte_count","quarantine_id"}…],"byte_count","kept","evidence"}
Result<Json> vault_prune(Context& context, const Json& arguments);
// {"record":{…}}
Result<Json> accept_quarantine(Context& context, const std::string& id, const std::string& reason);

}  // namespace holdfast::engine
