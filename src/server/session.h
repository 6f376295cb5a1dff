// One connection of the server: its requests, one after another, until it ends. Private to server/.
#pragma once
#include <functional>

#include "engine/engine.h"
#include "os/local_socket.h"
#include "server/state.h"

namespace holdfast::server {

// What a session asks of its server. The functions are called in the session's thread.
struct Service {
  Engine& engine;
  std::function<Pass()> wait_for_request;
  std::function<Pass()> begin_request;  // not go: the request is refused, or another image's
  std::function<void(bool waited)> end_request;
  std::function<void()> stop;  // the verb `stop`, and a handoff; called after the answer was sent
  std::function<Result<Json>(const os::ProcessIdentity& asker)> hand_over;
};

enum class SessionEnd {
  closed,
  moved,  // the connection is another image's: it is left as it is
};

// Returns when the peer has gone, has sent what is not the protocol, or the connection was shut down or handed on.
SessionEnd run_session(Client& client, const Service& service);

}  // namespace holdfast::server
