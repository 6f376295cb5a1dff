// KEYS: the tenancy keys that a verb presents, from options, from a --lease file, or from the environment that `hold`
// sets. Exactly one of these sources is used: options, else HOLDFAST_LEASE_FILE, else HOLDFAST_OWNER, HOLDFAST_TASK,
// HOLDFAST_GENERATION and HOLDFAST_STARTED_AT. Keys of two sources are never mixed.
//
// Errors: usage (missing or mixed keys, not UTF-8), lease_file_invalid.
#pragma once
#include <optional>
#include <string>

#include "surfaces/cli/parse.h"
#include "surfaces/cli/surroundings.h"

namespace holdfast::cli {

// {"owner","task","generation","started_at"} for the request. Where they are optional, the environment is not asked,
// and nullopt says that no option gave any.
Result<std::optional<Json>> tenancy_keys(const Invocation& invocation, const Surroundings& surroundings,
                                         const std::string& scope, bool keys_are_optional);

// The whole record of a lease file: a document as `acquire` or `heartbeat` printed it, or one record. Where it holds
// several, the one on `scope`; an empty `scope` chooses none.
Result<Json> record_of_lease_file(const std::string& path, const Surroundings& surroundings, const std::string& scope);

}  // namespace holdfast::cli
