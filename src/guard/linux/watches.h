// Wake-ups from inotify: which guards have to look again. An event is never trusted, only used to look.
//
// One inotify instance a process (there are few of them); several guards may share a folder or an inode, which the
// kernel then watches once. Threads: safe.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "holdfast/result.h"
#include "os/handle.h"

namespace holdfast::guard {

class Watches {
 public:
  using GuardId = std::uint64_t;
  static constexpr int kNone = -1;

  Watches();
  bool open() const { return static_cast<bool>(inotify_); }
  int fd() const { return inotify_.fd(); }

  // A token for unwatch, or kNone where the kernel watches no more.
  int watch_folder(const os::Handle& folder, const std::string& leaf, GuardId guard);
  // Bytes are watched only under a lease, where they never change; a file in use would wake us at each write.
  enum class Bytes { not_watched, too };
  int watch_object(const os::Handle& object, Bytes bytes, GuardId guard);
  void unwatch(int token, GuardId guard);

  struct Due {
    std::set<GuardId> guards;
    bool all = false;  // events were lost
  };
  Due read();

 private:
  int watch(const os::Handle& object, std::uint32_t events, const std::string& leaf, GuardId guard);
  void note(int token, const std::string& name, bool of_itself, Due& due);

  os::Handle inotify_;
  std::mutex mutex_;
  std::map<int, std::map<GuardId, std::string>> watched_;  // token, guard, leaf ("" where the object itself is meant)
};

}  // namespace holdfast::guard
