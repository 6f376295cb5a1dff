// `holdfast mcp`: a stdio server for one client, and the bridge from it to the workspace's server.
//
// Calling sequence: run_bridge() in a process of its own; it returns at the end of its input, or when nobody reads its
// output any more. The caller then ends the process at once (std::_Exit): threads may still wait for the server.
// Promises: standard output carries whole lines of JSON-RPC and nothing else; nothing is written to standard error, so
// that one that nobody reads stops nothing; the end of input ends it within a second, but for answers that somebody is
// still reading, and so does a reader that goes away; neither a full output that nobody reads nor a server that stands
// still keeps it. Leases stay with the server. It works without a workspace, and says so in each answer that needs one.
// Errors: os_failed where standard output cannot be taken. Source: CONTRACT section 9; field reports M20 to M28.
#pragma once
#include <functional>
#include <string>

#include "holdfast/result.h"
#include "surfaces/mcp/conversation.h"

namespace holdfast::mcp {

struct BridgeOptions {
  std::function<Result<std::string>()> find_root;
  std::string current_folder;
  Doctor doctor;
  Extension* extension = nullptr;  // of a test build
};

Result<void> run_bridge(const BridgeOptions& options);

}  // namespace holdfast::mcp
