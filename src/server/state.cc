#include "server/state.h"

#include <algorithm>
#include <thread>

#include "base/json.h"
#include "os/thread.h"
#include "server/exchange.h"
#include "server/handoff.h"
#include "server/session.h"

namespace holdfast::server {
namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

constexpr int kTickMs = 100;
constexpr auto kAcceptPause = milliseconds(50);
constexpr auto kRequestsLimit = milliseconds(10'000);
constexpr auto kParkLimit = milliseconds(2000);
constexpr auto kWaitersLimit = milliseconds(1000);
constexpr int kHelpers = 2;

// A detached thread that counts while it runs; false where the system has no more.
bool start_thread(const Shared& state, std::function<void(State&)> work) {
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

void run_connection(const Shared& state, const std::shared_ptr<Client>& client) {
  const Service service{
      *state->engine,
      [&] { return state->wait_for_request(*client); },
      [&] { return state->begin_request(*client); },
      [&](bool waited) { state->end_request(waited); },
      [&] { state->termination->request(); },
      [&](const os::ProcessIdentity& asker) { return hand_over(state, *client, asker); },
  };
  SessionEnd end = SessionEnd::closed;
  try {
    end = run_session(*client, service);
  } catch (const std::exception&) {
    // This connection ends; the others go on.
  }
  // A peer that closed is answered in kind at once; the object itself may live a moment longer.
  if (end == SessionEnd::closed) client->connection.shut_down();
  const std::scoped_lock scoped(state->mutex);
  state->clients.remove(client);
  state->last_used = SteadyClock::now();
  state->changed.notify_all();
}

void accept_connections(const Shared& state) {
  while (state->pass_as_helper()) {
    auto accepted = state->listener->accept(-1, &state->call);
    if (!accepted) {
      std::this_thread::sleep_for(kAcceptPause);  // out of descriptors: some connection will end
    } else if (accepted->has_value()) {
      const auto client = std::make_shared<Client>(std::move(**accepted));
      const auto taken = take_client(state, client);
      if (!taken.ok()) (void)send_document(client->connection, taken.refusal().to_json());
    }
  }
}

void tick(State& state) {
  while (state.pass_as_helper()) {
    int pause_ms = kTickMs;
    try {
      pause_ms = std::clamp(state.engine->tick(), 1, kTickMs);
    } catch (const std::exception&) {
      // Damaged state must not end the guards with the server; the verbs say what is wrong with it.
    }
    std::unique_lock lock(state.mutex);
    state.changed.wait_for(lock, milliseconds(pause_ms), [&] { return state.ending || state.closed || state.moved; });
  }
}

}  // namespace

Pass State::begin_request(Client& client) {
  std::unique_lock lock(mutex);
  for (;;) {
    if (moved) return Pass::moved;
    if (ending) return Pass::ending;
    if (closed) {
      client.parked = true;
      changed.notify_all();
      changed.wait(lock, [&] { return !closed || moved || ending; });
      client.parked = false;
    } else if (waiters_first && client.read->queue_place == 0) {
      changed.wait(lock);
    } else {
      ++requests;
      return Pass::go;
    }
  }
}

void State::end_request(bool waited) {
  const std::scoped_lock scoped(mutex);
  --requests;
  if (waited) ++waiters_ended;
  last_used = SteadyClock::now();
  changed.notify_all();
}

Pass State::wait_for_request(Client& client) {
  for (;;) {
    {
      std::unique_lock lock(mutex);
      if (closed && !moved && !ending) {
        client.parked = true;
        changed.notify_all();
        changed.wait(lock, [&] { return !closed || moved || ending; });
        client.parked = false;
      }
      if (moved) return Pass::moved;
      if (ending) return Pass::go;  // what was sent is read, and refused
    }
    if (client.connection.wait_for_input_unless(call)) return Pass::go;
  }
}

bool State::pass_as_helper() {
  std::unique_lock lock(mutex);
  if (closed && !ending && !moved) {
    ++helpers_parked;
    changed.notify_all();
    changed.wait(lock, [&] { return !closed || ending || moved; });
    --helpers_parked;
  }
  return !ending && !moved;
}

bool State::all_parked() const {
  return requests == 0 && helpers_parked == kHelpers &&
         std::all_of(clients.begin(), clients.end(),
                     [](const auto& client) { return client->parked || client->asks_handoff; });
}

Result<void> State::close_gate() {
  int running = 0;
  {
    std::unique_lock lock(mutex);
    closed = true;
    call.raise();
    changed.notify_all();
    lock.unlock();
    engine->suspend_waiting();
    lock.lock();
    const bool idle = changed.wait_for(lock, kRequestsLimit, [&] { return requests == 0 || ending; });
    if (idle && !ending && !changed.wait_for(lock, kParkLimit, [&] { return all_parked() || ending; })) {
      // In the middle of a request that does not arrive whole: nothing of it was done, and its sender is told so.
      for (const auto& client : clients) {
        if (!client->parked && !client->asks_handoff) client->connection.shut_down();
      }
      changed.wait_for(lock, kParkLimit, [&] { return all_parked() || ending; });
    }
    if (all_parked() && !ending) return {};
    running = requests;
  }
  open_gate();
  return Refusal(Code::handoff_failed, "requests still run, and are not broken off for a handoff",
                 Json{{"running", running}});
}

void State::open_gate() {
  std::unique_lock lock(mutex);
  const auto waiters = static_cast<std::size_t>(std::count_if(clients.begin(), clients.end(), [](const auto& client) {
    return client->parked && client->read && client->read->queue_place;
  }));
  engine->resume_waiting();
  closed = false;
  waiters_first = waiters > 0;
  waiters_ended = 0;
  last_used = SteadyClock::now();
  call.lower();
  changed.notify_all();
  const auto give_up = SteadyClock::now() + kWaitersLimit;
  while (waiters_first && SteadyClock::now() < give_up) {
    changed.wait_for(lock, milliseconds(2));
    if (engine->waiting_count() + waiters_ended >= waiters) break;
  }
  waiters_first = false;
  changed.notify_all();
}

void State::hand_on() {
  const std::scoped_lock lock(mutex);
  moved = true;
  changed.notify_all();
}

void State::begin_closed() {
  const std::scoped_lock lock(mutex);
  closed = true;
  call.raise();
}

bool State::is_ending() {
  const std::scoped_lock scoped(mutex);
  return ending;
}

Result<void> take_client(const Shared& state, const std::shared_ptr<Client>& client) {
  {
    const std::scoped_lock scoped(state->mutex);
    if (state->ending) return Refusal(Code::server_unreachable, "the server is ending");
    if (static_cast<int>(state->clients.size()) >= state->options.connection_limit) {
      return Refusal(Code::server_unreachable, "the server has as many connections as it takes");
    }
    state->clients.push_back(client);
  }
  if (start_thread(state, [state, client](State&) { run_connection(state, client); })) return {};
  const std::scoped_lock scoped(state->mutex);
  state->clients.remove(client);
  return Refusal(Code::server_unreachable, "the server can start no more threads");
}

bool start_helpers(const Shared& state) {
  return start_thread(state, [](State& inner) { tick(inner); }) &&
         start_thread(state, [state](State&) { accept_connections(state); });
}

}  // namespace holdfast::server
