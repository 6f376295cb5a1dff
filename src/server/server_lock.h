// servers/server.lock: held exclusively for life by the one server of a workspace, shared by whoever changes the
// workspace without one. Never deleted.
// Errors: server_already_serves with details.pid, workspace_in_use, those of LockFile.
#pragma once
#include <functional>

#include "holdfast/result.h"
#include "os/control_folder.h"
#include "os/handle.h"
#include "os/lock_file.h"

namespace holdfast {

constexpr char kServerLock[] = "servers/server.lock";

// The file, and its folder, made where missing.
Result<os::LockFile> open_server_lock(const os::Handle& squad);

// Held exclusively by a server that waits for direct changes to end: nobody begins a new one meanwhile.
constexpr char kServerWanted[] = "servers/server.wanted";

// The exclusive hold. Where another server has it, says which; where direct changes are under way, waits for their end
// up to limit_ms. `pause` waits that many ms and says whether to go on (false: asked to end; workspace_in_use).
Result<os::LockFile> take_server_lock(const os::Handle& squad, os::ControlFolder& files, int limit_ms,
                                      const std::function<bool(int ms)>& pause);

}  // namespace holdfast
