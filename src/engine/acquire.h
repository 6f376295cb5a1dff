// The acquire verb. {"leases":[RECORD…],"granted":"new|existing|regrant"}
//
// With wait_seconds, in a server, it takes its turn in the queue (waiting.h) and reports who is in the way.
#pragma once
#include "engine/context.h"

namespace holdfast::engine {
Result<Json> acquire(Context& context, const Json& arguments, const Caller& caller, const ProgressReport& progress);

// A bound lease is bound to its command as well: {"scope", KEYS, "command":{process identity}}. Only the process that
// it is bound to may say so. {"lease":RECORD}
Result<Json> bind(Context& context, const Json& arguments, const Caller& caller);
}  // namespace holdfast::engine
