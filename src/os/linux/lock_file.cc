// Open-file-description locks (fcntl F_OFD_*, Linux 3.15).
#include "os/lock_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "os/file.h"
#include "os/linux/open_beneath.h"

namespace holdfast::os {
namespace {

constexpr std::size_t kNoteMax = 64U * 1024U;

struct flock whole_file(short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;  // start 0, length 0: all of it, however long it becomes; l_pid has to be 0
}

short type_of(LockMode mode) { return mode == LockMode::exclusive ? F_WRLCK : F_RDLCK; }

Refusal open_refusal(const std::string& name, int error) {
  const Code code = error == ELOOP || error == EXDEV    ? Code::workspace_insecure
                    : error == EACCES || error == EPERM ? Code::workspace_permission_denied
                                                        : Code::state_persist_failed;
  return os_refusal(code, "open " + name, error).with("path", name);
}

Result<void> require_regular(const Handle& file, const std::string& name) {
  struct stat found {};
  if (::fstat(file.fd(), &found) != 0) return os_refusal(Code::os_failed, "fstat " + name, errno);
  if (S_ISREG(found.st_mode)) return {};
  return Refusal(Code::workspace_insecure, name + " is no regular file", Json{{"path", name}});
}

}  // namespace

Result<LockFile> LockFile::open(const Handle& folder, const std::string& name) {
  Opened file = open_beneath(folder, name, O_RDWR | O_CREAT, 0600);
  // On a read-only mount nothing is changed, and whoever looks is kept apart from nobody.
  const bool read_only = file.error == EROFS;
  if (read_only) file = open_beneath(folder, name, O_RDONLY);
  if (file.error != 0) return open_refusal(name, file.error);
  HF_CHECK(require_regular(file.handle, name));
  LockFile lock(std::move(file.handle));
  lock.read_only_ = read_only;
  return lock;
}

Result<std::optional<LockFile>> LockFile::open_existing(const Handle& folder, const std::string& name) {
  Opened file = open_beneath(folder, name, O_RDONLY);
  if (file.error == ENOENT || file.error == ENOTDIR) return std::optional<LockFile>();
  if (file.error != 0) return open_refusal(name, file.error);
  HF_CHECK(require_regular(file.handle, name));
  return std::optional<LockFile>(LockFile(std::move(file.handle)));
}

Result<bool> LockFile::try_lock(LockMode mode) {
  struct flock lock = whole_file(read_only_ ? F_RDLCK : type_of(mode));
  for (;;) {
    if (::fcntl(handle_.fd(), F_OFD_SETLK, &lock) == 0) return true;
    if (errno == EAGAIN || errno == EACCES) return false;
    if (errno != EINTR) return os_refusal(Code::os_failed, "fcntl(F_OFD_SETLK)", errno);
  }
}

Result<bool> LockFile::is_held_by_another(LockMode mode) const {
  struct flock lock = whole_file(type_of(mode));
  for (;;) {
    if (::fcntl(handle_.fd(), F_OFD_GETLK, &lock) == 0) return lock.l_type != F_UNLCK;
    if (errno != EINTR) return os_refusal(Code::os_failed, "fcntl(F_OFD_GETLK)", errno);
  }
}

Result<void> LockFile::unlock() {
  struct flock lock = whole_file(F_UNLCK);
  while (::fcntl(handle_.fd(), F_OFD_SETLK, &lock) != 0) {
    if (errno != EINTR) return os_refusal(Code::os_failed, "fcntl(F_OFD_SETLK, F_UNLCK)", errno);
  }
  return {};
}

Result<void> LockFile::note(const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = ::pwrite(handle_.fd(), text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return os_refusal(Code::state_persist_failed, "write a note", count < 0 ? errno : ENOSPC);
    done += static_cast<std::size_t>(count);
  }
  struct stat found {};
  if (::fstat(handle_.fd(), &found) != 0) return os_refusal(Code::os_failed, "fstat", errno);
  // A note of the same length as the last one costs no change of the file's size.
  if (found.st_size == static_cast<off_t>(text.size())) return {};
  while (::ftruncate(handle_.fd(), static_cast<off_t>(text.size())) != 0) {
    if (errno != EINTR) return os_refusal(Code::state_persist_failed, "ftruncate", errno);
  }
  return {};
}

Result<std::string> LockFile::read_note() const { return read_whole(handle_, kNoteMax); }

}  // namespace holdfast::os
