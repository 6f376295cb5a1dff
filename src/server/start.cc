#include "server/start.h"

#include <chrono>
#include <thread>

#include "base/json.h"
#include "lease/liveness.h"
#include "os/background_program.h"
#include "os/child_process.h"
#include "os/control_folder.h"
#include "server/client.h"

namespace holdfast {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kStartLimit{10'000};
constexpr milliseconds kStartAgain{2'000};
constexpr milliseconds kPoll{10};

Result<std::int64_t> start_server(const os::WorkspaceFolder& folder) {
  HF_TRY(const std::string program, os::this_program());
  return os::start_in_background({program, "--workspace", folder.root_path, "serve", "--leave-when-idle", "600"});
}

}  // namespace

Result<os::Connection> connect_or_start_server(const os::WorkspaceFolder& folder,
                                               const std::function<void(std::int64_t pid)>& started) {
  const auto give_up = steady_clock::now() + kStartLimit;
  auto start_again = steady_clock::now();
  for (;; std::this_thread::sleep_for(kPoll)) {
    auto connection = os::connect_to_server(folder.squad);
    if (connection.ok()) return connection;
    if (steady_clock::now() >= give_up) return connection;
    // One that lost the race for the lock leaves; where nobody holds it after a while, another is started.
    if (!server_lives(folder.squad) && steady_clock::now() >= start_again) {
      HF_TRY(const std::int64_t pid, start_server(folder));
      if (started) started(pid);
      start_again = steady_clock::now() + kStartAgain;
    }
  }
}

std::int64_t serving_pid(const os::WorkspaceFolder& folder) {
  const auto files = os::open_control_folder(folder.squad);
  if (!files.ok()) return 0;
  const Json record = living_server(folder.squad, **files);
  const auto pid = record.is_object() ? exact_u64(record.value("pid", Json())) : std::nullopt;
  return static_cast<std::int64_t>(pid.value_or(0));
}

bool ended_in_order(const os::WorkspaceFolder& folder, std::int64_t pid) {
  const auto files = os::open_control_folder(folder.squad);
  if (!files.ok()) return false;
  const auto record = (*files)->read(liveness_record_path(pid));
  return record.ok() && !record->has_value();
}

}  // namespace holdfast
