// The requests about receivers, commands, acts, results and handoffs: what their options say, beside those that travel
// as they were typed (request.h).
//
// Promises: bytes are read here, in the client, at most 16 MiB; a row's change becomes canonical JSON, so that the same
// words are the same bytes. Errors: usage, content_unreadable, lease_file_invalid.
#pragma once
#include <string>

#include "surfaces/cli/parse.h"
#include "surfaces/cli/surroundings.h"

namespace holdfast::cli {

// The bytes that --from, or --key and --set, say.
Result<std::string> payload_in_words(const Invocation& invocation);

Result<void> put_receivers_and_acts(const Invocation& invocation, const Surroundings& surroundings, Json& arguments);

}  // namespace holdfast::cli
