// transfer_holder: tenancies go on under another process image (first seed, section 4; CONTRACT sections 3 and 7).
//
// Every record has to name the server that asks, process and session. One commit: all of them move, or none does; the
// generation stays, because this is migration and not succession. The successor takes its own guards before it.
// Refuses holder_not_current; nothing has changed then.
#pragma once
#include "engine/context.h"

namespace holdfast::engine {

Result<Json> transfer_holder(Context& context, const std::vector<std::string>& scopes, const Holder& successor);

}  // namespace holdfast::engine
