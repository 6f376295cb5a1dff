// Finding the workspace's server, or starting it.
//
// Promises: of many who start one at once, one serves and all find it: a second server leaves by itself. A server that
// is started here leaves after ten idle minutes without leases (CONTRACT section 8).
// Does not promise: to start one that a person stopped; whoever asks knows why there is none.
// Errors: server_unreachable after 10 s, what os::start_in_background refuses. Threads: safe.
#pragma once
#include <cstdint>
#include <functional>

#include "holdfast/result.h"
#include "os/local_socket.h"
#include "os/workspace_folder.h"

namespace holdfast {

// A connection to the server that lives, or to one that is started now; `started` is told its pid.
Result<os::Connection> connect_or_start_server(const os::WorkspaceFolder& folder,
                                               const std::function<void(std::int64_t pid)>& started = {});

// Of the server that lives now, as its record says: a connection outlives a handoff, and its peer is the one before.
// 0 where there is none.
std::int64_t serving_pid(const os::WorkspaceFolder& folder);

// How the server with this pid and session ended: in order it takes its liveness record with it.
bool ended_in_order(const os::WorkspaceFolder& folder, std::int64_t pid);

}  // namespace holdfast
