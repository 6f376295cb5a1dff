// The acquire verb. {"leases":[RECORD…],"granted":"new|existing|regrant"}
#pragma once
#include "engine/context.h"

namespace holdfast::engine {
Result<Json> acquire(Context& context, const Json& arguments, const Caller& caller);
}  // namespace holdfast::engine
