// One connection of the server: its requests, one after another, until it ends. Private to server/.
#pragma once
#include <functional>

#include "engine/engine.h"
#include "os/local_socket.h"

namespace holdfast::server {

// What a session asks of its server. The functions are called in the session's thread.
struct Service {
  Engine& engine;
  std::function<bool()> begin_request;  // false: the server is ending, and the request is refused
  std::function<void()> end_request;
  std::function<void()> stop;  // the verb `stop`; called after its answer was sent
};

// Returns when the peer has gone, has sent what is not the protocol, or the connection was shut down.
void run_session(os::Connection& connection, const Service& service);

}  // namespace holdfast::server
