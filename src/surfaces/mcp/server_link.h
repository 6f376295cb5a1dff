// The bridge's way to the workspace's server: finds it, starts it where none runs, asks it, and asks a successor again
// where that changes nothing twice.
//
// Calling sequence: ask() from any thread, once for each request; cancel() from another thread while it runs.
// Promises: the leases name this process as their client, and outlive it; a request that a server did not begin is
// asked again (a server that hands over, starts or dies); one whose answer was lost is asked again only where `repeat`
// says that doing so is safe; a server that was stopped in order is not started again. After cancel() of an acquire
// nobody holds a lease that nobody knows: what was granted meanwhile is released.
// Errors: workspace_not_found, server_absent after a stop, server_unreachable, server_answer_lost, and the verb's own.
// Threads: safe. Source: CONTRACT sections 7 to 9.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "holdfast/result.h"
#include "os/local_socket.h"
#include "os/workspace_folder.h"

namespace holdfast::mcp {

// Stops one request while it runs. Shared by the thread that works and the one that was told to stop it.
//
// Once the answer is there nothing is cancelled any more: either the request was stopped, or it is answered.
class Cancellation {
 public:
  void cancel();
  bool is_cancelled() const { return cancelled_; }

 private:
  friend class ServerLink;
  bool attach(os::Connection* connection);  // false: cancelled already
  bool detach(bool is_answered);            // false: cancelled
  std::atomic<bool> cancelled_ = false;
  std::mutex mutex_;
  bool answered_ = false;
  os::Connection* connection_ = nullptr;
};

enum class Repeat { only_if_not_begun, safe };

class ServerLink {
 public:
  using FindRoot = std::function<Result<std::string>()>;
  ServerLink(FindRoot find_root, std::string current_folder);

  // `arguments` without "cwd", which is added. `content` for a write.
  Result<Json> ask(const std::string& verb, Json arguments, Repeat repeat, Cancellation& cancellation,
                   const std::string* content = nullptr, const ProgressReport& progress = {});
  Result<std::string> root();
  // Releases what an acquire's answer granted: nobody was told of it.
  void give_back(const Json& answer);

 private:
  Result<os::Connection> connect(const os::WorkspaceFolder& folder, bool fresh);
  Result<Json> ask_once(os::Connection& connection, const Json& request, const std::string* content,
                        const ProgressReport& progress);
  void keep(const os::WorkspaceFolder& folder, os::Connection connection);

  FindRoot find_root_;
  std::string current_folder_;
  std::mutex mutex_;  // of what follows
  std::string root_;
  std::vector<os::Connection> idle_;  // at least one is kept: a server with a connection does not leave when idle
  std::int64_t server_pid_ = 0;       // of the one that answered last
};

}  // namespace holdfast::mcp
