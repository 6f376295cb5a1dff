// The heartbeat verb: {"lease":RECORD,"renewed":true}. The record's os_lock says what the guard found.
#pragma once
#include "engine/context.h"

namespace holdfast::engine {
Result<Json> heartbeat(Context& context, const Json& arguments, const Caller& caller);
}  // namespace holdfast::engine
