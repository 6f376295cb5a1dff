// After a crash: intents are settled or classified (CONTRACT section 4), torn evidence set aside, what a dead client
// had bound released. It never invents a rollback.
#pragma once
#include "engine/context.h"

namespace holdfast::engine {

// {"recovered":[…],"waiting":[…]}. What cannot be looked at is reported, and keeps nothing else from being recovered.
Result<Json> recover(Context& context);

// Before an act on the scope, its end included: a replacement that was published and not recorded is settled first.
// A server knows of which scopes; a process without one looks.
Result<void> settle_intents_of(Context& context, Transition& transition, const Scope& scope);

}  // namespace holdfast::engine
