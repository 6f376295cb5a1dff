// statx(2) gives the birth time that stat(2) lacks.
#include "os/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace holdfast::os {
namespace {

std::int64_t nanoseconds(const struct statx_timestamp& time) {
  return time.tv_sec * 1'000'000'000LL + static_cast<std::int64_t>(time.tv_nsec);
}

}  // namespace

Refusal os_refusal(Code code, const std::string& operation, int os_error) {
  return Refusal(code, operation + ": " + std::strerror(os_error),
                 Json{{"os_error", os_error}, {"os_error_text", std::strerror(os_error)}, {"operation", operation}});
}

Result<Facts> facts_of_open(const Handle& object) {
  struct statx found {};
  if (::statx(object.fd(), "", AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME, &found) != 0) {
    return os_refusal(Code::os_failed, "statx", errno);
  }
  Facts facts;
  facts.identity.device = makedev(found.stx_dev_major, found.stx_dev_minor);
  facts.identity.inode = found.stx_ino;
  if ((found.stx_mask & STATX_BTIME) != 0) facts.identity.birth_ns = nanoseconds(found.stx_btime);
  facts.kind = S_ISREG(found.stx_mode)   ? Kind::regular
               : S_ISDIR(found.stx_mode) ? Kind::folder
               : S_ISLNK(found.stx_mode) ? Kind::link
                                         : Kind::other;
  facts.byte_count = found.stx_size;
  facts.link_count = found.stx_nlink;
  facts.modified_ns = nanoseconds(found.stx_mtime);
  facts.changed_ns = nanoseconds(found.stx_ctime);
  facts.mode = found.stx_mode & 07777U;
  facts.user = found.stx_uid;
  facts.group = found.stx_gid;
  return facts;
}

Result<Handle> duplicate(const Handle& object) {
  const int copy = ::fcntl(object.fd(), F_DUPFD_CLOEXEC, 3);
  if (copy < 0) return os_refusal(Code::os_failed, "fcntl(F_DUPFD_CLOEXEC)", errno);
  return Handle(copy);
}

Result<std::size_t> read_at(const Handle& object, std::uint64_t offset, char* into, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t count = ::pread(object.fd(), into + done, size - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return os_refusal(Code::file_unreadable, "read", errno);
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

Result<void> write_all(const Handle& object, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(object.fd(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return os_refusal(Code::staging_failed, "write", errno);
    if (count == 0) return os_refusal(Code::staging_failed, "write", ENOSPC);
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

Result<void> flush(const Handle& object) {
  while (::fsync(object.fd()) != 0) {
    if (errno != EINTR) return os_refusal(Code::state_persist_failed, "fsync", errno);
  }
  return {};
}

}  // namespace holdfast::os
