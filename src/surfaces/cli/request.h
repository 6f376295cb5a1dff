// From an invocation to the engine's request (docs/formats/socket.md).
//
// A scope that is not UTF-8 travels as {"scope_base64"} (in "scopes": {"base64"}), a current folder that is not as
// {"cwd_base64"}; any other text has to be UTF-8.
// Errors: usage, lease_file_invalid.
#pragma once
#include <string>

#include "surfaces/cli/parse.h"
#include "surfaces/cli/surroundings.h"

namespace holdfast::cli {

// {"verb","arguments"}. The content of a write is no part of it.
Result<Json> request_of(const Invocation& invocation, const Surroundings& surroundings);

// A request about one scope, such as `scope` itself.
Json scope_request(const std::string& verb, const std::string& scope, const std::string& current_folder);

// The path that a relative one names from the current folder; links stay as they are.
std::string absolute_path(const std::string& path, const std::string& current_folder);

}  // namespace holdfast::cli
