// What can be read by address: holdfast://leases, holdfast://evidence/{id}, holdfast://quarantine/{id}.
//
// Errors: not_found where there is no such resource; never an empty content in its place. Threads: safe.
// Source: CONTRACT section 9; MCP "Resources".
#pragma once
#include <string>

#include "holdfast/result.h"
#include "surfaces/mcp/server_link.h"

namespace holdfast::mcp {

Json resource_list();
Json resource_template_list();

// The document behind an address.
Result<Json> read_resource(ServerLink& link, const std::string& uri, Cancellation& cancellation);
// The same without what changes by the mere passing of time: two are equal where nothing has happened.
Result<std::string> fingerprint_of_resource(ServerLink& link, const std::string& uri, Cancellation& cancellation);

}  // namespace holdfast::mcp
