#include "surfaces/cli/request_path.h"

#include <chrono>
#include <thread>

#include "base/json.h"
#include "os/local_socket.h"
#include "os/process.h"
#include "server/client.h"
#include "surfaces/cli/request.h"

namespace holdfast::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kStartOrEnd{3'000};
constexpr milliseconds kStopLimit{10'000};
constexpr milliseconds kPoll{20};

Caller this_caller() { return Caller{.process = os::this_process(), .bound = false}; }

Result<Json> perform_direct(const Json& request, const Sending& sending) {
  EngineOptions options;
  options.mode = EngineMode::direct;
  options.transition_limit_ms = transition_limit_ms(sending.surroundings);
  HF_TRY(const auto engine, Engine::open(sending.root, options));
  return engine->perform(request, this_caller(), sending.content, sending.progress);
}

Json as_sent(const Json& request) {
  Json sent = request;
  sent["client"] = Json{{"bound", false}};
  return sent;
}

Result<Json> ask_server(const os::WorkspaceFolder& folder, const Json& request, const Sending& sending) {
  HF_TRY(os::Connection connection, os::connect_to_server(folder.squad));
  return call_server(connection, as_sent(request), sending.content, sending.progress);
}

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
  return Engine::open(root, options);
}

Result<Json> send(const Json& request, const Sending& sending) {
  if (!sending.invocation.command->mutating) {
    HF_TRY(const auto engine, open_observer(sending.root, sending.surroundings));
    return engine->perform(request, this_caller(), sending.content, sending.progress);
  }
  HF_TRY(const os::WorkspaceFolder folder, os::open_workspace(sending.root));
  const auto give_up = steady_clock::now() + kStartOrEnd;
  for (;; std::this_thread::sleep_for(kPoll)) {
    const bool last_try = steady_clock::now() >= give_up;
    if (!server_lives(folder.squad)) {
      const auto pass = DirectPass::take(folder.squad);
      if (pass) return perform_direct(request, sending);
      // A server may have started between the two questions; then it is the one to ask.
      if (last_try || pass.refusal().code() != Code::direct_refused_server_lives) return pass.refusal();
      continue;
    }
    if (sending.invocation.direct) {
      return Refusal(Code::direct_refused_server_lives, "a server serves this workspace: nothing goes past it");
    }
    auto answer = ask_server(folder, request, sending);
    // Nothing was done: a server that is just starting or ending. Content that was read is gone, and is not sent twice.
    const bool may_ask_again =
        !answer && answer.refusal().code() == Code::server_unreachable && !sending.content_begun();
    if (!may_ask_again || last_try) return answer;
  }
}

Result<Json> stop_server(const std::string& root) {
  HF_TRY(const os::WorkspaceFolder folder, os::open_workspace(root));
  if (!server_lives(folder.squad)) return Refusal(Code::server_absent, "no server serves this workspace");
  HF_TRY(os::Connection connection, os::connect_to_server(folder.squad));
  auto answer = call_server(connection, as_sent(Json{{"verb", "stop"}, {"arguments", Json::object()}}));
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
