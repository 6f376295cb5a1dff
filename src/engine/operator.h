// The operator's verbs: epoch, break-glass, generations. Each says what it did and records it with its reason.
#pragma once
#include "engine/context.h"

namespace holdfast::engine {

Result<Json> epoch_show(Context& context);
Result<Json> epoch_change(Context& context, const Json& arguments, const std::string& verb);
Result<Json> generations_show(Context& context);
Result<Json> generations_verify(Context& context);
Result<Json> generations_repair(Context& context, const Json& arguments);

}  // namespace holdfast::engine
