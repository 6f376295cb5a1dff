// control/exclusions.json {"packages":[SCOPE…],"sources":[SCOPE…]}: never leased for writing.
// Refuses: package_excluded, source_excluded; exclusions_invalid where the file is there and malformed.
#pragma once
#include "engine/context.h"

namespace holdfast::engine {
Result<void> check_exclusions(Context& context, const Scope& scope);
}  // namespace holdfast::engine
