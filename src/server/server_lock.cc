#include "server/server_lock.h"

#include <chrono>

#include "base/json.h"
#include "lease/liveness.h"
#include "os/process.h"
#include "os/unnamed_file.h"

namespace holdfast {
namespace {

constexpr int kPollMs = 10;
// How long a server that has just taken the lock gets to say who it is.
constexpr auto kFirstWords = std::chrono::milliseconds(1000);

// The server's pid: from its liveness record, or, where it has not published one yet, from the note in the lock.
Json serving_pid(const os::LockFile& lock, const os::Handle& squad, os::ControlFolder& files) {
  const Json record = living_server(squad, files);
  if (record.is_object() && record.contains("pid")) return record["pid"];
  const auto note = lock.read_note();
  const auto document = note ? parse_json(*note) : std::nullopt;
  if (!document) return nullptr;
  const auto process = os::ProcessIdentity::from_json(*document);
  return os::liveness_of(process) == os::Liveness::alive ? Json(process.pid) : Json(nullptr);
}

}  // namespace

Result<os::LockFile> open_server_lock(const os::Handle& squad) {
  HF_TRY(const os::Handle servers, os::open_folder(squad, "servers", true));
  return os::LockFile::open(squad, kServerLock);
}

Result<os::LockFile> take_server_lock(const os::Handle& squad, os::ControlFolder& files, int limit_ms,
                                      const std::function<bool(int ms)>& pause) {
  HF_TRY(os::LockFile lock, open_server_lock(squad));
  HF_TRY(os::LockFile wanted, os::LockFile::open(squad, kServerWanted));
  // Another server that waits already says it for both of us.
  HF_TRY(const bool first, wanted.try_lock(os::LockMode::exclusive));
  (void)first;
  const auto began = std::chrono::steady_clock::now();
  for (;;) {
    HF_TRY(const bool taken, lock.try_lock(os::LockMode::exclusive));
    if (taken) break;
    const auto waited = std::chrono::steady_clock::now() - began;
    HF_TRY(const bool served, lock.is_held_by_another(os::LockMode::shared));
    if (served) {
      const Json pid = serving_pid(lock, squad, files);
      if (!pid.is_null() || waited >= kFirstWords) {
        const std::string who = pid.is_null() ? "another process" : "process " + pid.dump();
        return Refusal(Code::server_already_serves, who + " serves this workspace", Json{{"pid", pid}});
      }
    } else if (waited >= std::chrono::milliseconds(limit_ms)) {
      return Refusal(Code::workspace_in_use,
                     "processes that change the workspace without a server did not come to an end",
                     Json{{"waited_ms", limit_ms}});
    }
    if (!pause(kPollMs)) return Refusal(Code::workspace_in_use, "asked to end while others changed the workspace");
  }
  // Only for messages: a full disk does not keep the server from serving.
  static_cast<void>(lock.note(dump_ascii(os::this_process().to_json())));
  return lock;
}

}  // namespace holdfast
