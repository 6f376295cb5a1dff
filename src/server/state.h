// What the threads of a server share, and the gate that every request passes. Private to server/.
//
//   starting --(on_ready)--> serving --(signal, stop, idle)--> ending --(no request runs, or 5 s)--> ended
//                              |  ^
//              close_gate()    v  | open_gate(): nothing was handed over
//                            closed --(hand_on())--> moved: another image serves, this one only leaves
//
// I1  server.lock is held from before the engine opens until everything else is taken down, or handed on.
// I2  A request runs only between begin_request() and end_request(); none begins once `ending` or while the gate is
//     closed. Whoever comes to a closed gate waits there ("parked") with the request that it has read, if any.
// I3  The threads share the state by shared_ptr: where some do not come to an end, it stays until the process goes.
// I4  While parked, a session does not touch its connection: another image may read from it.
#pragma once
#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "engine/engine.h"
#include "os/local_socket.h"
#include "os/lock_file.h"
#include "os/successor_process.h"
#include "os/termination.h"
#include "os/wake_signal.h"
#include "server/server.h"

namespace holdfast::server {

enum class Pass { go, ending, moved };

// A request that was read and has not begun.
struct ReadRequest {
  Json document;
  std::uint64_t queue_place = 0;  // of an acquire that waited before
};

struct Client {
  explicit Client(os::Connection accepted) : connection(std::move(accepted)) {}
  os::Connection connection;
  std::optional<ReadRequest> read;
  bool parked = false;
  bool asks_handoff = false;
};

class State {
 public:
  explicit State(os::WakeSignal signal) : call(std::move(signal)) {}

  std::unique_ptr<os::Termination> termination;
  std::optional<os::LockFile> server_lock;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<os::Listener> listener;
  std::string root;
  std::string session;
  ServeOptions options;
  os::WakeSignal call;  // raised while the gate is closed

  Pass begin_request(Client& client);
  void end_request(bool waited);
  // Until the client's next request can be read; not go: it cannot be, any more.
  Pass wait_for_request(Client& client);
  // Of the threads that accept and tick: waits while the gate is closed; false where they end.
  bool pass_as_helper();

  // Nothing runs, and every session but the asker's is parked, when it returns; else the gate is open again.
  // handoff_failed where requests run for too long.
  Result<void> close_gate();
  // Those who waited in the queue pass first, and are back in it when the others follow.
  void open_gate();
  // Every parked session leaves without a word: its connection is another image's.
  void hand_on();
  // Of an image that takes over: its gate is closed from the start.
  void begin_closed();

  std::mutex mutex;  // of what follows
  std::condition_variable changed;
  bool ending = false;
  bool closed = false;
  bool moved = false;
  bool handoff_runs = false;
  bool waiters_first = false;
  std::size_t waiters_ended = 0;
  int requests = 0;
  int threads = 0;
  int helpers_parked = 0;
  std::list<std::shared_ptr<Client>> clients;
  std::chrono::steady_clock::time_point last_used = std::chrono::steady_clock::now();
  std::unique_ptr<os::SuccessorProcess> successor;  // of a handoff that came about

  bool is_ending();

 private:
  bool all_parked() const;
};
using Shared = std::shared_ptr<State>;

// A thread for this connection; server_unreachable where there is no room for one, and nothing is said to the peer.
Result<void> take_client(const Shared& state, const std::shared_ptr<Client>& client);
// The threads that accept connections and call Engine::tick.
bool start_helpers(const Shared& state);

}  // namespace holdfast::server
