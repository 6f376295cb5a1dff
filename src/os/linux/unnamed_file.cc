// O_TMPFILE and linkat. Folders are walked segment by segment with O_NOFOLLOW: that works on every kernel, where
// openat2 may be filtered away.
#include "os/unnamed_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "base/json.h"
#include "os/file.h"

namespace holdfast::os {
namespace {

constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

int open_retrying(int folder, const char* name, int flags, mode_t mode = 0) {
  for (;;) {
    const int opened = ::openat(folder, name, flags, mode);
    if (opened >= 0 || errno != EINTR) return opened;
  }
}

bool is_link(int folder, const std::string& leaf) {
  struct stat found {};
  return ::fstatat(folder, leaf.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(found.st_mode);
}

// With O_DIRECTORY and O_NOFOLLOW a link is ENOTDIR, alone it is ELOOP: the name itself has to be asked.
Refusal not_opened(int folder, const std::string& leaf, const std::string& relative, int os_error) {
  const bool link = os_error == ELOOP || is_link(folder, leaf);
  const Code code = link                                      ? Code::workspace_insecure
                    : os_error == EACCES || os_error == EPERM ? Code::workspace_permission_denied
                                                              : Code::state_unreadable;
  Refusal why = os_refusal(code, "open " + printable(relative), os_error);
  return std::move(why).with("path", printable(relative)).with("is_link", link);
}

// fsync needs a real descriptor; the caller's may be O_PATH.
Result<void> flush_folder(const Handle& folder) {
  const Handle opened(open_retrying(folder.fd(), ".", kFolderFlags));
  if (!opened) return os_refusal(Code::state_persist_failed, "open the folder", errno);
  return flush(opened);
}

bool is_step(std::string_view segment) {
  return !segment.empty() && segment != "." && segment != ".." && segment.find('\0') == std::string_view::npos;
}

Result<Handle> step_into(const Handle& folder, const std::string& leaf, const std::string& relative, bool make) {
  int opened = open_retrying(folder.fd(), leaf.c_str(), kFolderFlags);
  if (opened < 0 && errno == ENOENT && make) {
    if (::mkdirat(folder.fd(), leaf.c_str(), 0700) != 0 && errno != EEXIST) {
      return os_refusal(Code::state_persist_failed, "mkdir " + printable(relative), errno);
    }
    HF_CHECK(flush_folder(folder));
    opened = open_retrying(folder.fd(), leaf.c_str(), kFolderFlags);
  }
  if (opened < 0) return not_opened(folder.fd(), leaf, relative, errno);
  return Handle(opened);
}

int give_name(const Handle& object, const Handle& folder, const std::string& leaf) {
  if (::linkat(object.fd(), "", folder.fd(), leaf.c_str(), AT_EMPTY_PATH) == 0) return 0;
  // Without CAP_DAC_READ_SEARCH the call above is ENOENT, or EPERM; the way through /proc needs no privilege.
  if (errno != ENOENT && errno != EPERM) return errno;
  const std::string path = "/proc/self/fd/" + std::to_string(object.fd());
  return ::linkat(AT_FDCWD, path.c_str(), folder.fd(), leaf.c_str(), AT_SYMLINK_FOLLOW) == 0 ? 0 : errno;
}

}  // namespace

Result<Handle> make_unnamed_file(const Handle& folder) {
  Handle made(open_retrying(folder.fd(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!made) {
    const int os_error = errno;
    // Kernels and file systems without O_TMPFILE see "open a folder for writing": EISDIR, or ENOENT.
    const bool unsupported = os_error == EOPNOTSUPP || os_error == EISDIR || os_error == ENOENT || os_error == EINVAL;
    return os_refusal(unsupported ? Code::atomic_publish_unsupported : Code::staging_failed, "open(O_TMPFILE)",
                      os_error);
  }
  // The umask may take bits even from 0600.
  if (::fchmod(made.fd(), 0600) != 0) return os_refusal(Code::staging_failed, "fchmod", errno);
  return made;
}

Result<bool> name_unnamed_file(const Handle& object, const Handle& folder, const std::string& leaf) {
  const int os_error = give_name(object, folder, leaf);
  if (os_error != 0 && os_error != EEXIST) return os_refusal(Code::state_persist_failed, "linkat", os_error);
  // Also where the name is there already: whoever gave it may not have come to flush it.
  HF_CHECK(flush_folder(folder));
  return os_error == 0;
}

Result<Handle> open_folder(const Handle& folder, const std::string& relative, bool make) {
  Handle here(open_retrying(folder.fd(), ".", kFolderFlags));
  if (!here) return not_opened(folder.fd(), ".", relative, errno);
  for (std::size_t at = 0; at < relative.size();) {
    const std::size_t end = std::min(relative.find('/', at), relative.size());
    const std::string segment = relative.substr(at, end - at);
    if (!is_step(segment)) return Refusal(Code::state_unreadable, "not a plain relative path: " + printable(relative));
    HF_TRY(here, step_into(here, segment, relative, make));
    at = end + 1;
  }
  return here;
}

Result<Handle> open_for_reading(const Handle& folder, const std::string& relative) {
  const std::size_t slash = relative.rfind('/');
  const std::string leaf = slash == std::string::npos ? relative : relative.substr(slash + 1);
  if (!is_step(leaf)) return Refusal(Code::state_unreadable, "not a plain relative path: " + printable(relative));
  HF_TRY(const Handle parent, open_folder(folder, slash == std::string::npos ? "" : relative.substr(0, slash), false));

  constexpr int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY;
  // Without O_NONBLOCK a pipe would make us wait for a writer. EAGAIN: the file is leased, and so a regular one.
  int opened = open_retrying(parent.fd(), leaf.c_str(), flags | O_NONBLOCK);
  if (opened < 0 && errno == EAGAIN) opened = open_retrying(parent.fd(), leaf.c_str(), flags);
  if (opened < 0) return not_opened(parent.fd(), leaf, relative, errno);
  Handle object(opened);
  HF_TRY(const Facts facts, facts_of_open(object));
  if (facts.kind != Kind::regular) {
    Refusal why = os_refusal(Code::state_unreadable, printable(relative) + " is no regular file", EINVAL);
    return std::move(why).with("path", printable(relative));
  }
  return object;
}

bool name_exists(const Handle& folder, const std::string& leaf) {
  struct stat found {};
  if (::fstatat(folder.fd(), leaf.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0) return true;
  return errno != ENOENT && errno != ENOTDIR && errno != ENAMETOOLONG;  // what cannot be told is not called free
}

Result<void> remove_name(const Handle& folder, const std::string& leaf) {
  if (::unlinkat(folder.fd(), leaf.c_str(), 0) != 0 && errno != ENOENT) {
    return os_refusal(Code::state_persist_failed, "unlink " + printable(leaf), errno);
  }
  return flush_folder(folder);
}

Result<Handle> open_absolute_folder(const std::string& path) {
  Handle opened(open_retrying(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened) return os_refusal(Code::state_unreadable, "open " + printable(path), errno);
  return opened;
}

Result<std::vector<std::string>> names_in(const Handle& folder) {
  const int opened = open_retrying(folder.fd(), ".", kFolderFlags);
  DIR* listing = opened < 0 ? nullptr : ::fdopendir(opened);
  if (listing == nullptr) {
    const int error = errno;
    if (opened >= 0) ::close(opened);
    return os_refusal(Code::state_unreadable, "list a folder", error);
  }
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(listing)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  ::closedir(listing);
  return names;
}

}  // namespace holdfast::os
