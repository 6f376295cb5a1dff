// LockFile: a lock of the whole file that the kernel drops with its last handle, in any form of death.
//
// Linux: an open-file-description lock (POSIX record locks vanish when any descriptor of the file is closed; never used
// here). The file is created 0600 where missing, never deleted, never followed through a link.
// The lock is not inherited: descriptors are close-on-exec, and Holdfast never forks without exec.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "holdfast/result.h"
#include "os/handle.h"

namespace holdfast::os {

enum class LockMode { shared, exclusive };

class LockFile {
 public:
  // `folder` is an open folder, `name` a leaf in it or a relative path below it without links. On a read-only mount the
  // file has to be there, and every lock is a shared one.
  static Result<LockFile> open(const Handle& folder, const std::string& name);
  // For looking only (is_held_by_another, read_note): nullopt where the file is missing, and it stays missing.
  static Result<std::optional<LockFile>> open_existing(const Handle& folder, const std::string& name);
  // A lock that another process handed over with its open description: it is held without a gap.
  static LockFile taken_over(Handle handle) { return LockFile(std::move(handle)); }

  // true: held from now until unlock() or destruction. false: somebody else holds it.
  Result<bool> try_lock(LockMode mode);
  // Whether try_lock(mode) would be false because of another open description, without taking anything: a look never
  // stands in the way of somebody's try_lock.
  Result<bool> is_held_by_another(LockMode mode) const;
  Result<void> unlock();
  // Replaces the file's whole content, not flushed: a note for readers, such as the holder's pid.
  Result<void> note(const std::string& text);
  Result<std::string> read_note() const;
  const Handle& handle() const { return handle_; }

 private:
  explicit LockFile(Handle handle) : handle_(std::move(handle)) {}
  Handle handle_;
  bool read_only_ = false;
};

}  // namespace holdfast::os
