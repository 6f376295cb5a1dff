// State of a server, and who may change it:
//
//   starting --(on_ready)--> serving --(signal, stop, idle)--> ending --(no request runs, or 5 s)--> ended
//
// I1  server.lock is held from before the engine opens until everything else is taken down.
// I2  A request runs only between begin_request() and end_request(); none begins once `ending` is set.
// I3  The threads share the state by shared_ptr: where some do not come to an end, it stays until the process goes.
#include "server/server.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "base/fault_point.h"
#include "base/ids.h"
#include "base/json.h"
#include "engine/engine.h"
#include "lease/liveness.h"
#include "os/local_socket.h"
#include "os/process.h"
#include "os/termination.h"
#include "os/thread.h"
#include "os/workspace_folder.h"
#include "server/exchange.h"
#include "server/server_lock.h"
#include "server/session.h"

namespace holdfast {
namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

constexpr auto kFinishLimit = milliseconds(5000);
constexpr auto kThreadLimit = milliseconds(2000);
constexpr int kTickMs = 100;
constexpr int kIdleLookMs = 1000;
constexpr auto kAcceptPause = milliseconds(50);

struct ServerState {
  std::unique_ptr<os::Termination> termination;
  std::optional<os::LockFile> lock;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<os::Listener> listener;
  int connection_limit = 0;

  std::mutex mutex;  // of what follows
  std::condition_variable changed;
  bool ending = false;
  int requests = 0;
  int threads = 0;
  std::list<std::shared_ptr<os::Connection>> connections;
  SteadyClock::time_point last_used = SteadyClock::now();

  bool begin_request() {
    const std::scoped_lock scoped(mutex);
    if (ending) return false;
    ++requests;
    return true;
  }
  void end_request() {
    const std::scoped_lock scoped(mutex);
    --requests;
    last_used = SteadyClock::now();
    changed.notify_all();
  }
  bool is_ending() {
    const std::scoped_lock scoped(mutex);
    return ending;
  }
};
using Shared = std::shared_ptr<ServerState>;

// A detached thread that counts while it runs; false where the system has no more.
bool start_thread(const Shared& state, std::function<void(ServerState&)> work) {
  {
    const std::scoped_lock scoped(state->mutex);
    ++state->threads;
  }
  auto started = os::start_thread([state, work = std::move(work)] {
    work(*state);
    const std::scoped_lock scoped(state->mutex);
    --state->threads;
    state->changed.notify_all();
  });
  if (started) {
    started->detach();
    return true;
  }
  const std::scoped_lock scoped(state->mutex);
  --state->threads;
  return false;
}

void run_connection(ServerState& state, const std::shared_ptr<os::Connection>& connection) {
  const server::Service service{*state.engine, [&] { return state.begin_request(); }, [&] { state.end_request(); },
                                [&] { state.termination->request(); }};
  try {
    server::run_session(*connection, service);
  } catch (const std::exception&) {
    // This connection ends; the others go on.
  }
  // A peer that closed is answered in kind at once; the object itself may live a moment longer.
  connection->shut_down();
  const std::scoped_lock scoped(state.mutex);
  state.connections.remove(connection);
  state.last_used = SteadyClock::now();
}

void refuse_connection(os::Connection& connection, const std::string& reason) {
  static_cast<void>(send_document(connection, Refusal(Code::server_unreachable, reason).to_json()));
}

void take_connection(const Shared& state, os::Connection accepted) {
  auto connection = std::make_shared<os::Connection>(std::move(accepted));
  bool room = false;
  {
    const std::scoped_lock scoped(state->mutex);
    if (state->ending) return;
    room = static_cast<int>(state->connections.size()) < state->connection_limit;
    if (room) state->connections.push_back(connection);
  }
  if (!room) return refuse_connection(*connection, "the server has as many connections as it takes");
  if (start_thread(state, [connection](ServerState& inner) { run_connection(inner, connection); })) return;
  refuse_connection(*connection, "the server can start no more threads");
  const std::scoped_lock scoped(state->mutex);
  state->connections.remove(connection);
}

void accept_connections(const Shared& state) {
  while (!state->is_ending()) {
    auto accepted = state->listener->accept(-1);
    if (!accepted) {
      std::this_thread::sleep_for(kAcceptPause);  // out of descriptors: some connection will end
    } else if (accepted->has_value()) {
      take_connection(state, std::move(**accepted));
    }
  }
}

void tick(ServerState& state) {
  while (!state.is_ending()) {
    int pause_ms = kTickMs;
    try {
      pause_ms = std::clamp(state.engine->tick(), 1, kTickMs);
    } catch (const std::exception&) {
      // Damaged state must not end the guards with the server; the verbs say what is wrong with it.
    }
    std::unique_lock lock(state.mutex);
    state.changed.wait_for(lock, milliseconds(pause_ms), [&] { return state.ending; });
  }
}

bool holds_no_lease(Engine& engine) {
  const auto listed = engine.perform(Json{{"verb", "leases"}, {"arguments", Json::object()}},
                                     Caller{.process = os::this_process(), .bound = false});
  return listed && listed->is_object() && listed->contains("leases") && (*listed)["leases"].empty();
}

void wait_for_the_end(ServerState& state, int idle_limit_ms) {
  while (!state.termination->wait(idle_limit_ms > 0 ? std::min(kIdleLookMs, idle_limit_ms) : -1)) {
    {
      const std::scoped_lock scoped(state.mutex);
      if (!state.connections.empty()) state.last_used = SteadyClock::now();
      if (SteadyClock::now() - state.last_used < milliseconds(idle_limit_ms)) continue;
    }
    if (holds_no_lease(*state.engine)) return;
  }
}

// true: nothing runs any more.
bool finish(ServerState& state) {
  std::unique_lock lock(state.mutex);
  state.ending = true;
  state.changed.notify_all();
  lock.unlock();
  state.listener->close();
  state.engine->end_waiting();
  lock.lock();
  state.changed.wait_for(lock, kFinishLimit, [&] { return state.requests == 0; });
  for (const auto& connection : state.connections) connection->shut_down();
  return state.changed.wait_for(lock, kThreadLimit, [&] { return state.threads == 0; });
}

Result<void> start(ServerState& state, const std::string& root, const ServeOptions& options, const std::string& session,
                   const os::WorkspaceFolder& folder, os::ControlFolder& files, std::optional<LivenessRecord>& record) {
  EngineOptions engine_options;
  engine_options.mode = EngineMode::server;
  engine_options.session = session;
  engine_options.transition_limit_ms = options.transition_limit_ms;
  HF_TRY(state.engine, Engine::open(root, engine_options));
  HF_FAULT_POINT("server_before_record");
  HF_TRY(record, LivenessRecord::publish(files, folder.squad, session));
  HF_FAULT_POINT("server_after_record");
  HF_TRY(const Json recovered, state.engine->recover(Caller{.process = os::this_process(), .bound = false}));
  static_cast<void>(recovered);
  HF_TRY(state.listener, os::Listener::open(folder.squad));
  HF_FAULT_POINT("server_before_ready");
  return {};
}

// Everything but the lock, in the order that a successor relies on.
void take_down(ServerState& state, os::ControlFolder& files, std::optional<LivenessRecord>& record) {
  if (state.engine) state.engine->shut_down();
  if (state.listener) state.listener->remove();
  HF_FAULT_POINT("server_before_record_removed");
  // A record that cannot be removed (full disk, read-only) is free with our end, and proves nothing by itself.
  if (record) static_cast<void>(record->remove(files));
  record.reset();
  state.engine.reset();
  state.listener.reset();
}

}  // namespace

Result<int> serve(const std::string& root, const ServeOptions& options) {
  HF_TRY(const os::WorkspaceFolder folder, os::open_workspace(root));
  HF_TRY(const auto files, os::open_control_folder(folder.squad));
  os::keep_footprint_small();
  const auto state = std::make_shared<ServerState>();
  state->connection_limit = options.connection_limit;
  HF_TRY(state->termination, os::Termination::open());
  const auto pause = [&](int limit_ms) { return !state->termination->wait(limit_ms); };
  HF_TRY(state->lock, take_server_lock(folder.squad, *files, options.lock_limit_ms, pause));

  const std::string session = random_hex(16);
  std::optional<LivenessRecord> record;
  const auto started = start(*state, root, options, session, folder, *files, record);
  if (!started || !start_thread(state, [](ServerState& inner) { tick(inner); }) ||
      !start_thread(state, [state](ServerState&) { accept_connections(state); })) {
    const bool whole = !state->listener || finish(*state);
    if (!whole) return kRequestsStillRun;
    take_down(*state, *files, record);
    state->termination.reset();
    if (!started) return started.refusal();
    return Refusal(Code::os_failed, "no thread could be started", Json::object());
  }
  if (options.on_ready) {
    options.on_ready(Json{{"ready", true},
                          {"pid", static_cast<std::uint64_t>(os::this_process().pid)},
                          {"session", session},
                          {"workspace", printable(folder.root_path)}});
  }
  wait_for_the_end(*state, options.idle_limit_ms);
  if (!finish(*state)) {
    // Held on purpose until the process is gone: no successor may serve beside a request that still runs.
    static const Shared kept = state;
    static const std::optional<LivenessRecord> kept_record = std::move(record);
    return kRequestsStillRun;
  }
  take_down(*state, *files, record);
  state->termination.reset();  // here: it gives this very thread its signal mask back
  state->lock.reset();
  return kEndedInOrder;
}

}  // namespace holdfast
