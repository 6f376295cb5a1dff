// reconcile list|show|resolve, and recover (CONTRACT section 4).
#pragma once
#include "engine/context.h"

namespace holdfast::engine {

Result<Json> reconcile_list(Context& context);
Result<Json> reconcile_show(Context& context, const Json& arguments);
// --accept: what is there stays, and is the baseline from now on. --restore: a guarded write of the verified preimage.
Result<Json> reconcile_resolve(Context& context, const Json& arguments);

// Settles or classifies every intent that a crash left prepared; sets unreadable records aside; ends what is due and
// what a dead client had bound. {"recovered":[…],"waiting":[…]}

}  // namespace holdfast::engine
