// A file without a name: complete and flushed before anybody can find it (KERNEL.md: a *named* staging file leaked
// foreign opens). Linux: O_TMPFILE and linkat.
#pragma once
#include <string>
#include <vector>

#include "holdfast/result.h"
#include "os/handle.h"

namespace holdfast::os {

// Open for reading and writing, mode 0600. atomic_publish_unsupported where the file system has none.
Result<Handle> make_unnamed_file(const Handle& folder);
// Gives it a name that nothing bears, and flushes the folder; false where something bears it already.
Result<bool> name_unnamed_file(const Handle& object, const Handle& folder, const std::string& leaf);
// A folder below `folder`, made 0700 where missing, opened without following links.
Result<Handle> open_folder(const Handle& folder, const std::string& relative, bool make);
// A regular file below `folder`, opened for reading without following links; state_unreadable with os_error where not.
Result<Handle> open_for_reading(const Handle& folder, const std::string& relative);
// A folder by its absolute path; links in it are followed (an operator named it).
Result<Handle> open_absolute_folder(const std::string& path);
// The leaf names in a folder, in no order.
Result<std::vector<std::string>> names_in(const Handle& folder);
bool name_exists(const Handle& folder, const std::string& leaf);
// Takes a name away (absent is success) and flushes the folder.
Result<void> remove_name(const Handle& folder, const std::string& leaf);

}  // namespace holdfast::os
