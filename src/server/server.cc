// Starting a server in the place of none. server/state.h draws its states, server/lifetime.h is what follows.
#include "server/server.h"

#include "base/fault_point.h"
#include "base/ids.h"
#include "base/json.h"
#include "lease/liveness.h"
#include "os/control_folder.h"
#include "os/process.h"
#include "os/workspace_folder.h"
#include "server/lifetime.h"
#include "server/server_lock.h"

namespace holdfast {
namespace {

using server::Shared;

Result<void> start(const Shared& state, const os::WorkspaceFolder& folder, os::ControlFolder& files,
                   std::optional<LivenessRecord>& record) {
  HF_TRY(state->engine, server::open_engine(*state));
  HF_FAULT_POINT("server_before_record");
  HF_TRY(record, LivenessRecord::publish(files, folder.squad, state->session));
  HF_FAULT_POINT("server_after_record");
  HF_TRY(const Json recovered, state->engine->recover(Caller{.process = os::this_process(), .bound = false}));
  static_cast<void>(recovered);
  HF_TRY(state->listener, os::Listener::open(folder.squad));
  HF_FAULT_POINT("server_before_ready");
  if (server::start_helpers(state)) return {};
  return Refusal(Code::os_failed, "no thread could be started", Json::object());
}

}  // namespace

Result<int> serve(const std::string& root, const ServeOptions& options) {
  HF_TRY(const os::WorkspaceFolder folder, os::open_workspace(root));
  HF_TRY(const auto files, os::open_control_folder(folder.squad));
  os::keep_footprint_small();
  HF_TRY(const Shared state, server::make_state(folder.root_path, options));
  const auto pause = [&](int limit_ms) { return !state->termination->wait(limit_ms); };
  HF_TRY(state->server_lock, take_server_lock(folder.squad, *files, options.lock_limit_ms, pause));

  state->session = random_hex(16);
  std::optional<LivenessRecord> record;
  if (const auto started = start(state, folder, *files, record); !started) {
    const bool whole = !state->listener || server::finish(*state);
    if (!whole) return kRequestsStillRun;
    server::take_down(*state, *files, record);
    state->termination.reset();
    return started.refusal();
  }
  if (options.on_ready) {
    options.on_ready(Json{{"ready", true},
                          {"pid", static_cast<std::uint64_t>(os::this_process().pid)},
                          {"session", state->session},
                          {"workspace", printable(folder.root_path)}});
  }
  return server::serve_to_the_end(state, *files, record);
}

}  // namespace holdfast
