// The workspace's server: one process that holds servers/server.lock for life, holds the guards, and answers the verbs
// over the workspace's socket (docs/formats/socket.md).
//
// Calling sequence: serve() in a process of its own, before it has other threads. It returns when it was asked to end:
// by SIGTERM, SIGINT, SIGHUP, by the verb `stop`, or after idle_limit_ms without connections and leases.
// Start: server.lock, engine, liveness record, recovery, socket, on_ready. End: no new requests, the running ones
// finish (5 s), guards, socket, liveness record, and server.lock last, so that a successor finds all of it done.
// Promises: a second server is refused and changes nothing; a peer's garbage, silence or death ends its connection
// only; the caller's process identity comes from the kernel, never from the message; leases stay when it ends.
// Does not promise: to wait for requests longer than 5 s. Then it returns kRequestsStillRun: the caller ends the
// process at once (std::_Exit), as a crash would; the lock goes with the process. Threads: one for each connection (at
// most connection_limit), one for Engine::tick, one that accepts. Errors: server_already_serves (details.pid),
// workspace_in_use after lock_limit_ms, what the engine's open and recover refuse, those of the socket and the liveness
// record.
#pragma once
#include <functional>
#include <string>

#include "holdfast/result.h"
#include "receivers/receiver_set.h"

namespace holdfast {

struct ServeOptions {
  int transition_limit_ms = 30'000;
  std::function<void(const Json& ready)> on_ready;  // {"ready":true,"pid":N,"session":…,"workspace":…}
  int lock_limit_ms = 30'000;                       // how long processes that change things directly are waited for
  int connection_limit = 512;                       // one more is refused with server_unreachable
  int idle_limit_ms = 0;                            // 0: none
  std::shared_ptr<const receivers::ReceiverSet> receivers = {};
};

constexpr int kEndedInOrder = 0;
constexpr int kRequestsStillRun = 1;

Result<int> serve(const std::string& root, const ServeOptions& options);

}  // namespace holdfast
