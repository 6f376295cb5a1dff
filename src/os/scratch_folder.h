// ScratchFolder: a folder of a program's own inside somebody's, for trials on that very file system; gone afterwards.
//
// Calling sequence: make_in(parent, PREFIX); put() files; the destructor takes every name and the folder away.
// Promises: PREFIX-<16 hex>, new, and locked while its maker lives; what a maker that was killed left behind is taken
// away by the next make_in with the same prefix and parent (of the same user alone, files alone, links not followed,
// and only names that this class or a guard gives). No flag that forbids their removal is left on its files.
// Does not promise: anything to whoever shares the user: a name that somebody else puts there keeps the folder.
// Errors: destination_read_only, workspace_permission_denied, state_persist_failed, with details.os_error.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "holdfast/result.h"
#include "os/handle.h"
#include "os/lock_file.h"

namespace holdfast::os {

class ScratchFolder {
 public:
  // `mode` is the folder's: 0700, or 0711 where another user is to reach files by their names.
  static Result<std::unique_ptr<ScratchFolder>> make_in(const Handle& parent, const std::string& prefix,
                                                        std::uint32_t mode);
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& name() const { return name_; }  // in the parent
  const Handle& folder() const { return folder_; }
  // A name that this folder has not given yet: "scratch-1", "scratch-2", …
  std::string next_name();
  // A new file under that name, written and closed.
  Result<void> put(const std::string& leaf, std::string_view bytes, std::uint32_t mode);
  // Whether everything went. Idempotent; the destructor does the same.
  Result<void> remove();

 private:
  ScratchFolder() = default;

  Handle parent_;
  Handle folder_;
  std::string name_;
  std::unique_ptr<LockFile> lock_;
  int given_ = 0;
};

}  // namespace holdfast::os
