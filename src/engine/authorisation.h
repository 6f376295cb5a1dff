// control/lock-release.json: an owner's authorisation to break a live lease. Only a person writes it, out of band.
//   {"authorized_owners":[WHO MAY BREAK…],"scopes":[SCOPE…],"set_by","reason","expires_at"?}
// Refuses: force_release_not_authorized, with details.why.
#pragma once
#include "engine/context.h"

namespace holdfast::engine {
// The authorisation that covers `owner` breaking `scope` now, for the record.
Result<Json> owner_authorisation(Context& context, const std::string& owner, const Scope& scope, const Instant& now);
}  // namespace holdfast::engine
