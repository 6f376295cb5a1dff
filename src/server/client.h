// The verbs' side of the workspace's server: asking it, and knowing whether there is one.
//
// Calling sequence of a verb that changes something: server_lives() -> os::connect_to_server() -> call_server(); or,
// without a server, DirectPass::take() and a direct engine while the pass is kept. Both answers can be overtaken by a
// server that starts or ends; whoever asks repeats the question on a refusal.
// Promises: call_server reads while it sends, so that an early refusal is seen, and never a broken pipe in its place;
// the answer is the verb's document, or the refusal that the server gave.
// Errors: server_unreachable (nothing was done: the request or its content did not arrive whole), server_answer_lost
// (the request arrived, the answer did not: effect unknown for a verb that changes anything), content_unreadable.
// Threads: one at a time on a connection.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "engine/engine.h"
#include "holdfast/result.h"
#include "os/handle.h"
#include "os/local_socket.h"
#include "os/lock_file.h"
#include "os/workspace_folder.h"

namespace holdfast {

// `request` is {"verb","arguments","client":{"bound","bridge"}}; `content` for verbs that carry some; others ignore it.
// `progress` gets what the engine reports; it may be empty. After a refusal with server_* or content_unreadable the
// connection is of no further use.
Result<Json> call_server(os::Connection& connection, const Json& request, ContentSource* content = nullptr,
                         const ProgressReport& progress = {});

// Of an acquire's answer, the KEYS of each lease that it granted, as `release` takes them; not of those that were held
// already. For whoever has to give back what nobody was told of.
std::vector<Json> keys_granted_now(const Json& answer);

// `serve --replace`: the server that lives hands over to the program that this process runs (docs/formats/handoff.md).
// The ready line of the one that serves now, with "replaced", also where the one before ended before it could say so.
// Errors: those of server/handoff.h; server_unreachable where none answers.
Result<Json> ask_for_handoff(const os::WorkspaceFolder& folder);

// Whether a server holds this workspace: servers/server.lock is held exclusively. Takes nothing, makes nothing.
bool server_lives(const os::Handle& squad);

// The shared hold of servers/server.lock that lets a process change the workspace without a server; `serve` waits for
// it. Released with the object.
class DirectPass {
 public:
  // direct_refused_server_lives where a server holds the workspace.
  static Result<DirectPass> take(const os::Handle& squad);

 private:
  explicit DirectPass(os::LockFile lock) : lock_(std::move(lock)) {}
  os::LockFile lock_;
};

}  // namespace holdfast
