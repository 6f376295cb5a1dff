#include "os/linux/open_beneath.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace holdfast::os {

Opened open_beneath(const Handle& folder, const std::string& path, int flags, mode_t mode) {
  if (path.find('\0') != std::string::npos) return {Handle(), EINVAL};
  struct open_how how {};
  how.flags = static_cast<unsigned long long>(flags | O_CLOEXEC);
  if ((flags & O_PATH) == 0) how.flags |= O_NONBLOCK | O_NOCTTY;
  how.mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? mode : 0;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const char* name = path.empty() ? "." : path.c_str();
  // EAGAIN: the kernel saw a rename while it walked and cannot vouch for the result; the walk is repeated.
  for (int attempt = 0;; ++attempt) {
    const long found = ::syscall(SYS_openat2, folder.fd(), name, &how, sizeof how);
    if (found >= 0) return {Handle(static_cast<Handle::Native>(found)), 0};
    if (errno == EINTR) continue;
    if (errno == EAGAIN && attempt < 1000) continue;
    return {Handle(), errno};
  }
}

}  // namespace holdfast::os
