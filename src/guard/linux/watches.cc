#include "guard/linux/watches.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "guard/linux/place.h"

namespace holdfast::guard {

Watches::Watches() : inotify_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {}

int Watches::watch_folder(const os::Handle& folder, const std::string& leaf, GuardId guard) {
  return watch(folder, IN_CREATE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE | IN_MOVE_SELF | IN_DELETE_SELF, leaf,
               guard);
}

// IN_ATTRIB also tells of a new or a lost hard link; IN_MODIFY of open(O_RDONLY|O_TRUNC), which no lease keeps out.
int Watches::watch_object(const os::Handle& object, Bytes bytes, GuardId guard) {
  const std::uint32_t events = IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF;
  return watch(object, bytes == Bytes::too ? events | IN_MODIFY : events, "", guard);
}

int Watches::watch(const os::Handle& object, std::uint32_t events, const std::string& leaf, GuardId guard) {
  const std::lock_guard lock(mutex_);
  const int token = ::inotify_add_watch(inotify_.fd(), path_of_open(object).c_str(), events | IN_MASK_ADD);
  if (token < 0) return kNone;
  watched_[token][guard] = leaf;
  return token;
}

void Watches::unwatch(int token, GuardId guard) {
  if (token == kNone) return;
  const std::lock_guard lock(mutex_);
  const auto found = watched_.find(token);
  if (found == watched_.end()) return;
  found->second.erase(guard);
  if (!found->second.empty()) return;
  watched_.erase(found);
  ::inotify_rm_watch(inotify_.fd(), token);
}

void Watches::note(int token, const std::string& name, bool of_itself, Due& due) {
  const auto found = watched_.find(token);
  if (found == watched_.end()) return;
  for (const auto& [guard, leaf] : found->second) {
    if (of_itself || leaf.empty() || leaf == name) due.guards.insert(guard);
  }
}

Watches::Due Watches::read() {
  Due due;
  alignas(struct inotify_event) char buffer[16384];
  for (;;) {
    const ssize_t count = ::read(inotify_.fd(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return due;
    const std::lock_guard lock(mutex_);
    for (ssize_t at = 0; at < count;) {
      struct inotify_event event {};
      std::memcpy(&event, buffer + at, sizeof event);
      const std::string name = event.len > 0 ? std::string(buffer + at + sizeof event) : std::string();
      at += static_cast<ssize_t>(sizeof event + event.len);
      if ((event.mask & IN_Q_OVERFLOW) != 0) due.all = true;
      if ((event.mask & IN_IGNORED) != 0) continue;
      note(event.wd, name, name.empty(), due);
    }
  }
}

}  // namespace holdfast::guard
