// What a workspace can be asked without changing anything.
#pragma once
#include "engine/context.h"

namespace holdfast::engine {

Result<Json> scope_document(Context& context, const Json& arguments);
Result<Json> leases(Context& context);
Result<Json> status(Context& context);
Result<Json> quarantine_list(Context& context);
Result<Json> quarantine_show(Context& context, const Json& arguments);
Result<Json> evidence_log(Context& context, const Json& arguments);
Result<Json> evidence_head(Context& context);
Result<Json> evidence_show(Context& context, const Json& arguments);
Result<Json> evidence_verify(Context& context);

// The bytes of `read` and of `quarantine export`.
Result<Engine::Bytes> read_bytes(Context& context, const Json& arguments);
Result<Engine::Bytes> quarantine_bytes(Context& context, const Json& arguments);

}  // namespace holdfast::engine
