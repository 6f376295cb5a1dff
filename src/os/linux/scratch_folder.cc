#include "os/scratch_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "base/ids.h"
#include "os/file.h"
#include "os/kernel_trials.h"
#include "os/linux/open_beneath.h"
#include "os/unnamed_file.h"

namespace holdfast::os {
namespace {

constexpr const char* kLockName = "scratch-lock";
constexpr int kAttempts = 20;
constexpr std::chrono::milliseconds kRemovalLimit{1'000};
constexpr std::chrono::milliseconds kRemovalPause{5};

Refusal refusal_of(const std::string& operation, int error) {
  const Code code = error == EROFS                      ? Code::destination_read_only
                    : error == EACCES || error == EPERM ? Code::workspace_permission_denied
                                                        : Code::state_persist_failed;
  return os_refusal(code, operation, error);
}

// Ours, a guard's temporary names, and the lock file of a transition that is tried.
bool is_ours(const std::string& leaf) {
  return leaf.starts_with("scratch-") || leaf.starts_with(".holdfast-") || leaf == ".lease-transition.mutex";
}

// A file that may not be removed is made removable first: that flag is one of the things that are tried on it.
int take_away(const Handle& folder, const std::string& leaf) {
  if (::unlinkat(folder.fd(), leaf.c_str(), 0) == 0 || errno == ENOENT) return 0;
  const int error = errno;
  if (error != EPERM) return error;
  const Opened file = open_beneath(folder, leaf, O_RDONLY);
  if (!file.handle || set_immutable(file.handle, false) != 0) return error;
  return ::unlinkat(folder.fd(), leaf.c_str(), 0) == 0 ? 0 : errno;
}

// All but the lock, which goes last: whoever finds the folder without it only tries to remove it empty.
int empty_but_lock(const Handle& folder) {
  const auto names = names_in(folder);
  if (!names.ok()) return EIO;
  int first_error = 0;
  for (const std::string& leaf : *names) {
    if (leaf == kLockName || !is_ours(leaf)) continue;
    const int error = take_away(folder, leaf);
    if (first_error == 0) first_error = error;
  }
  return first_error;
}

// Held, and the lock that others find by its name: whoever removes a folder unlinks its lock while holding it, and a
// maker that had opened it by then would lock what nobody looks at any more.
bool hold(LockFile& lock) {
  const auto locked = lock.try_lock(LockMode::exclusive);
  if (!locked.ok() || !*locked) return false;
  const auto facts = facts_of_open(lock.handle());
  return facts.ok() && facts->link_count > 0;
}

void remove_leftover(const Handle& parent, const std::string& name) {
  const Opened found = open_beneath(parent, name, O_RDONLY | O_DIRECTORY);
  struct stat facts {};
  if (!found.handle || ::fstat(found.handle.fd(), &facts) != 0 || facts.st_uid != ::geteuid()) return;
  if (name_exists(found.handle, kLockName)) {
    auto lock = LockFile::open(found.handle, kLockName);
    if (!lock.ok() || !hold(*lock) || empty_but_lock(found.handle) != 0) return;
    (void)take_away(found.handle, kLockName);
  }
  ::unlinkat(parent.fd(), name.c_str(), AT_REMOVEDIR);
}

}  // namespace

Result<std::unique_ptr<ScratchFolder>> ScratchFolder::make_in(const Handle& parent, const std::string& prefix,
                                                              std::uint32_t mode) {
  if (const auto names = names_in(parent); names.ok()) {
    for (const std::string& name : *names) {
      if (name.starts_with(prefix + "-")) remove_leftover(parent, name);
    }
  }
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::unique_ptr<ScratchFolder> scratch(new ScratchFolder());
    HF_TRY(scratch->parent_, duplicate(parent));
    const std::string name = prefix + "-" + random_hex(8);
    if (::mkdirat(parent.fd(), name.c_str(), 0700) != 0) {
      if (errno == EEXIST) continue;
      return refusal_of("make a scratch folder in the workspace", errno)
          .with_hint("the doctor needs a folder in which it may make one; nothing was changed");
    }
    scratch->name_ = name;
    Opened opened = open_beneath(parent, name, O_RDONLY | O_DIRECTORY);
    if (opened.error != 0) continue;
    scratch->folder_ = std::move(opened.handle);
    auto lock = LockFile::open(scratch->folder_, kLockName);
    if (!lock.ok() || !hold(*lock)) continue;  // another one took it for a leftover in this moment
    scratch->lock_ = std::make_unique<LockFile>(std::move(*lock));
    if (::fchmod(scratch->folder_.fd(), static_cast<mode_t>(mode)) != 0) return refusal_of("fchmod", errno);
    return scratch;
  }
  return Refusal(Code::state_persist_failed, "no scratch folder could be made");
}

ScratchFolder::~ScratchFolder() { (void)remove().ok(); }

std::string ScratchFolder::next_name() { return "scratch-" + std::to_string(++given_); }

Result<void> ScratchFolder::put(const std::string& leaf, std::string_view bytes, std::uint32_t mode) {
  Opened file = open_beneath(folder_, leaf, O_WRONLY | O_CREAT | O_EXCL, 0600);
  if (file.error != 0) return refusal_of("open " + leaf, file.error);
  HF_CHECK(write_all(file.handle, bytes));
  return ::fchmod(file.handle.fd(), static_cast<mode_t>(mode)) == 0 ? Result<void>() : refusal_of("fchmod", errno);
}

// On FUSE and NFS an open file that lost its name keeps another one until it is closed, which takes effect a moment
// later: nothing in it may be open any more, and the folder is given that moment. Between the lock and the folder
// another maker may take it for a leftover, and remove it for us.
Result<void> ScratchFolder::remove() {
  if (name_.empty()) return {};
  const auto give_up = std::chrono::steady_clock::now() + kRemovalLimit;
  for (;;) {
    int error = folder_ ? empty_but_lock(folder_) : 0;
    if (error == 0) {
      lock_.reset();
      if (folder_) error = take_away(folder_, kLockName);
    }
    if (error == 0 && ::unlinkat(parent_.fd(), name_.c_str(), AT_REMOVEDIR) != 0) error = errno;
    if (error == 0 || !name_exists(parent_, name_)) break;
    if (error != ENOTEMPTY || std::chrono::steady_clock::now() >= give_up) {
      return refusal_of("remove the scratch folder", error).with("path", name_);
    }
    std::this_thread::sleep_for(kRemovalPause);
  }
  name_.clear();
  return {};
}

}  // namespace holdfast::os
