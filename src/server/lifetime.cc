#include "server/lifetime.h"

#include <algorithm>

#include "base/fault_point.h"
#include "base/json.h"

namespace holdfast::server {
namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

constexpr auto kFinishLimit = milliseconds(5000);
constexpr auto kThreadLimit = milliseconds(2000);
constexpr int kIdleLookMs = 1000;

bool holds_no_lease(Engine& engine) {
  const auto listed = engine.perform(Json{{"verb", "leases"}, {"arguments", Json::object()}},
                                     Caller{.process = os::this_process(), .bound = false});
  return listed && listed->is_object() && listed->contains("leases") && (*listed)["leases"].empty();
}

void wait_until_asked_to_end(State& state) {
  const int idle_limit_ms = state.options.idle_limit_ms;
  while (!state.termination->wait(idle_limit_ms > 0 ? std::min(kIdleLookMs, idle_limit_ms) : -1)) {
    {
      const std::scoped_lock scoped(state.mutex);
      if (!state.clients.empty() || state.closed) state.last_used = SteadyClock::now();
      if (SteadyClock::now() - state.last_used < milliseconds(idle_limit_ms)) continue;
    }
    if (holds_no_lease(*state.engine)) return;
  }
}

// A handoff is not broken off in the middle: its own limits end it. Who asked the server to end meanwhile, meant the
// one that serves.
void wait_for_a_handoff(State& state) {
  std::unique_lock lock(state.mutex);
  if (!state.handoff_runs) return;
  state.changed.wait(lock, [&] { return !state.handoff_runs; });
  if (state.moved && state.successor) state.successor->ask_to_end();
}

}  // namespace

Result<Shared> make_state(const std::string& root, const ServeOptions& options) {
  HF_TRY(os::WakeSignal call, os::WakeSignal::open());
  auto state = std::make_shared<State>(std::move(call));
  state->root = root;
  state->options = options;
  HF_TRY(state->termination, os::Termination::open());
  return state;
}

Result<std::unique_ptr<Engine>> open_engine(const State& state) {
  EngineOptions options;
  options.mode = EngineMode::server;
  options.session = state.session;
  options.transition_limit_ms = state.options.transition_limit_ms;
  options.receivers = state.options.receivers;
  return Engine::open(state.root, options);
}

bool finish(State& state) {
  std::unique_lock lock(state.mutex);
  state.ending = true;
  state.call.raise();
  state.changed.notify_all();
  const bool moved = state.moved;
  lock.unlock();
  if (!moved) state.listener->close();
  state.engine->end_waiting();
  lock.lock();
  state.changed.wait_for(lock, kFinishLimit, [&] { return state.requests == 0; });
  // What was handed on is another image's; the session that handed over ends by itself.
  for (const auto& client : state.clients) {
    if (!moved) client->connection.shut_down();
  }
  return state.changed.wait_for(lock, kThreadLimit, [&] { return state.threads == 0; });
}

void take_down(State& state, os::ControlFolder& files, std::optional<LivenessRecord>& record) {
  if (state.engine && !state.moved) state.engine->shut_down();
  if (state.listener && !state.moved) state.listener->remove();
  HF_FAULT_POINT("server_before_record_removed");
  // A record that cannot be removed (full disk, read-only) is free with our end, and proves nothing by itself.
  if (record) static_cast<void>(record->remove(files));
  record.reset();
  state.engine.reset();
  state.listener.reset();
}

Result<int> serve_to_the_end(const Shared& state, os::ControlFolder& files, std::optional<LivenessRecord>& record) {
  wait_until_asked_to_end(*state);
  wait_for_a_handoff(*state);
  if (!finish(*state)) {
    // Held on purpose until the process is gone: no successor may serve beside a request that still runs.
    static const Shared kept = state;
    static const std::optional<LivenessRecord> kept_record = std::move(record);
    return kRequestsStillRun;
  }
  take_down(*state, files, record);
  state->termination.reset();  // here: it gives this very thread its signal mask back
  state->server_lock.reset();
  if (state->moved) HF_FAULT_POINT("handoff_after_withdraw");
  return kEndedInOrder;
}

}  // namespace holdfast::server
