#include "surfaces/cli/request_path.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/json.h"
#include "os/local_socket.h"
#include "os/process.h"
#include "server/client.h"
#include "surfaces/cli/receiver_set.h"
#include "surfaces/cli/request.h"

namespace holdfast::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kStartOrEnd{3'000};
constexpr milliseconds kStopLimit{10'000};
constexpr milliseconds kPoll{20};
constexpr milliseconds kAskAgain{200};

Caller this_caller() { return Caller{.process = os::this_process(), .bound = false}; }

Result<Json> perform_direct(const Json& request, const Sending& sending) {
  EngineOptions options;
  options.mode = EngineMode::direct;
  options.transition_limit_ms = transition_limit_ms(sending.surroundings);
  options.receivers = receivers_in_their_processes();
  HF_TRY(const auto engine, Engine::open(sending.root, options));
  return engine->perform(request, this_caller(), sending.content, sending.progress);
}

Json as_sent(const Json& request, bool bound) {
  Json sent = request;
  sent["client"] = Json{{"bound", bound}};
  return sent;
}

Result<Json> ask_server(const os::WorkspaceFolder& folder, const Json& request, const Sending& sending) {
  HF_TRY(os::Connection connection, os::connect_to_server(folder.squad));
  return call_server(connection, as_sent(request, sending.bound), sending.content, sending.progress);
}

// The time of an acquire that waits, where no server keeps the queue: it is asked again until its time is over.
class WaitingAlone {
 public:
  explicit WaitingAlone(const Json& request) : request_(request) {
    const Json& arguments = request_["arguments"];
    const auto seconds = exact_u64(arguments.value("wait_seconds", Json())).value_or(0);
    give_up_ = steady_clock::now() + std::chrono::seconds(std::min<std::uint64_t>(seconds, 7ULL * 24 * 3600));
    waits_ = seconds > 0;
  }

  // With the time that is left.
  const Json& request() {
    if (waits_) request_["arguments"]["wait_seconds"] = std::to_string(seconds_left());
    return request_;
  }
  bool goes_on(const Refusal& refusal, const ProgressReport& progress) {
    if (!waits_ || refusal.code() != Code::lease_scope_conflict || steady_clock::now() >= give_up_) return false;
    const Json now = {{"place", nullptr}, {"holders", refusal.details().value("holders", Json::array())}};
    if (progress && now != told_) progress(Json{{"waiting", now}});
    told_ = now;
    std::this_thread::sleep_for(kAskAgain);
    return true;
  }

 private:
  std::uint64_t seconds_left() const {
    const auto left = std::chrono::ceil<std::chrono::seconds>(give_up_ - steady_clock::now()).count();
    return left > 0 ? static_cast<std::uint64_t>(left) : 0;
  }
  Json request_;
  Json told_;
  steady_clock::time_point give_up_;
  bool waits_ = false;
};

}  // namespace

Result<std::string> workspace_root(const Invocation& invocation, const Surroundings& surroundings) {
  if (invocation.workspace) return absolute_path(*invocation.workspace, surroundings.current_folder);
  if (auto found = os::find_workspace(surroundings.current_folder)) return *found;
  return Refusal(Code::workspace_not_found,
                 "no .squad in " + printable(surroundings.current_folder) + " or above it; `holdfast init` makes one");
}

Result<std::unique_ptr<Engine>> open_observer(const std::string& root, const Surroundings& surroundings) {
  EngineOptions options;
  options.mode = EngineMode::observer;
  options.transition_limit_ms = transition_limit_ms(surroundings);
  options.receivers = receivers_in_their_processes();
  return Engine::open(root, options);
}

Result<Json> send(const Json& request, const Sending& sending) {
  if (!sending.mutating) {
    HF_TRY(const auto engine, open_observer(sending.root, sending.surroundings));
    return engine->perform(request, this_caller(), sending.content, sending.progress);
  }
  HF_TRY(const os::WorkspaceFolder folder, os::open_workspace(sending.root));
  const auto give_up = steady_clock::now() + kStartOrEnd;
  WaitingAlone waiting(request);
  for (;; std::this_thread::sleep_for(kPoll)) {
    const bool last_try = steady_clock::now() >= give_up;
    if (!server_lives(folder.squad)) {
      if (sending.needs_server && !last_try) continue;
      if (sending.needs_server) return Refusal(Code::server_unreachable, "no server serves this workspace");
      const auto pass = DirectPass::take(folder.squad);
      if (pass) {
        auto answer = perform_direct(waiting.request(), sending);
        if (answer.ok() || !waiting.goes_on(answer.refusal(), sending.progress)) return answer;
        continue;
      }
      // A server may have started between the two questions; then it is the one to ask.
      if (last_try || pass.refusal().code() != Code::direct_refused_server_lives) return pass.refusal();
      continue;
    }
    if (sending.direct) {
      return Refusal(Code::direct_refused_server_lives, "a server serves this workspace: nothing goes past it");
    }
    auto answer = ask_server(folder, waiting.request(), sending);
    // Nothing was done: a server that is just starting or ending. What a stopped server may yet do is not asked twice;
    // content that was read is gone, and is not sent twice.
    const bool may_ask_again = !answer && answer.refusal().code() == Code::server_unreachable &&
                               answer.refusal().effect() == Effect::none && !sending.content_begun();
    if (!may_ask_again || last_try) return answer;
  }
}

Result<Json> stop_server(const std::string& root) {
  HF_TRY(const os::WorkspaceFolder folder, os::open_workspace(root));
  if (!server_lives(folder.squad)) return Refusal(Code::server_absent, "no server serves this workspace");
  HF_TRY(os::Connection connection, os::connect_to_server(folder.squad));
  auto answer = call_server(connection, as_sent(Json{{"verb", "stop"}, {"arguments", Json::object()}}, false));
  // Where it ended before its answer was read, its lock says the same.
  if (!answer && answer.refusal().code() != Code::server_answer_lost) return answer;
  const auto give_up = steady_clock::now() + kStopLimit;
  while (server_lives(folder.squad)) {
    if (steady_clock::now() >= give_up) {
      return Refusal(Code::server_unreachable, "the server was asked to end, and still holds the workspace",
                     Json{{"waited_seconds", 10}});
    }
    std::this_thread::sleep_for(kPoll);
  }
  if (answer) return answer;
  return Json{{"stopping", true}, {"pid", nullptr}};
}

}  // namespace holdfast::cli
