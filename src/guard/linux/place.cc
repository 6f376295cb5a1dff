#include "guard/linux/place.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "os/linux/open_beneath.h"

namespace holdfast::guard {
namespace {

int open_again(const std::string& path, int flags) {
  for (;;) {
    const int fd = ::open(path.c_str(), flags | O_CLOEXEC);
    if (fd >= 0 || errno != EINTR) return fd;
  }
}

}  // namespace

std::string path_of_open(const os::Handle& object) { return "/proc/self/fd/" + std::to_string(object.fd()); }

Result<std::optional<os::Facts>> facts_at(const os::Handle& folder, const std::string& leaf) {
  const os::Handle found(::openat(folder.fd(), leaf.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!found) {
    if (errno == ENOENT) return std::optional<os::Facts>();
    return os::os_refusal(Code::os_failed, "openat", errno);
  }
  HF_TRY(const os::Facts facts, os::facts_of_open(found));
  return std::optional<os::Facts>(facts);
}

// First a handle that opens nothing (a fifo would wait, a device would act), then the same object for reading.
Result<std::optional<AtName>> open_at(const os::Handle& folder, const std::string& leaf) {
  AtName at;
  at.object = os::Handle(::openat(folder.fd(), leaf.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!at.object) {
    if (errno == ENOENT) return std::optional<AtName>();
    return os::os_refusal(Code::os_failed, "openat", errno);
  }
  HF_TRY(at.facts, os::facts_of_open(at.object));
  if (at.facts.kind == os::Kind::regular || at.facts.kind == os::Kind::folder) {
    HF_TRY(at.object, reopen_for_reading(at.object));
  }
  return std::optional<AtName>(std::move(at));
}

Result<os::Handle> reopen_for_reading(const os::Handle& object) {
  os::Handle again(open_again(path_of_open(object), O_RDONLY | O_NONBLOCK));
  if (!again) return os::os_refusal(Code::file_unreadable, "open", errno);
  return again;
}

Result<os::Handle> make_nameless(const os::Handle& folder, unsigned mode) {
  for (;;) {
    os::Handle made(::openat(folder.fd(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, static_cast<mode_t>(mode)));
    if (made) return made;
    if (errno == EINTR) continue;
    // A kernel or file system without O_TMPFILE sees an open of a folder for writing: EISDIR.
    const bool unsupported = errno == EOPNOTSUPP || errno == EISDIR || errno == ENOSYS || errno == EINVAL;
    if (unsupported) return os::os_refusal(Code::atomic_publish_unsupported, "open(O_TMPFILE)", errno);
    return publish_refusal("open(O_TMPFILE)", errno);
  }
}

// AT_EMPTY_PATH would need a capability; the way through /proc does not.
int give_name(const os::Handle& nameless, const os::Handle& folder, const std::string& leaf) {
  const std::string from = path_of_open(nameless);
  return ::linkat(AT_FDCWD, from.c_str(), folder.fd(), leaf.c_str(), AT_SYMLINK_FOLLOW) == 0 ? 0 : errno;
}

int take_name_away(const os::Handle& folder, const std::string& leaf) {
  return ::unlinkat(folder.fd(), leaf.c_str(), 0) == 0 ? 0 : errno;
}

int exchange_names(const os::Handle& folder, const std::string& one, const std::string& other) {
  return ::renameat2(folder.fd(), one.c_str(), folder.fd(), other.c_str(), RENAME_EXCHANGE) == 0 ? 0 : errno;
}

int rename_to_free_name(const os::Handle& folder, const std::string& from, const std::string& to) {
  return ::renameat2(folder.fd(), from.c_str(), folder.fd(), to.c_str(), RENAME_NOREPLACE) == 0 ? 0 : errno;
}

Refusal publish_refusal(const std::string& operation, int error) {
  switch (error) {
    case EBUSY: return os::os_refusal(Code::destination_is_mount_point, operation, error);
    case EROFS: return os::os_refusal(Code::destination_read_only, operation, error);
    case EINVAL:
    case ENOSYS:
    case EOPNOTSUPP:
    case EXDEV: return os::os_refusal(Code::atomic_publish_unsupported, operation, error);
    case ENOENT:
    case EEXIST:
    case ENOTDIR: return os::os_refusal(Code::destination_identity_changed, operation, error).with_effect(Effect::none);
    default: return os::os_refusal(Code::staging_failed, operation, error);
  }
}

Result<os::Handle> walk_to_parent(const os::Handle& root, const std::string& relative) {
  const auto slash = relative.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : relative.substr(0, slash);
  os::Opened opened = os::open_beneath(root, folder, O_PATH | O_DIRECTORY);
  if (opened.handle) return std::move(opened.handle);
  const int error = opened.error;
  const bool another_way = error == ENOENT || error == ENOTDIR || error == ELOOP || error == EXDEV;
  return os::os_refusal(another_way ? Code::destination_parent_redirected : Code::destination_parent_unverifiable,
                        "openat2", error);
}

TemporaryName::~TemporaryName() {
  if (kept_) return;
  const auto at = facts_at(folder_, leaf_);
  if (at.ok() && at->has_value() && (*at)->identity == bearer_) take_name_away(folder_, leaf_);
}

}  // namespace holdfast::guard
