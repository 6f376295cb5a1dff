// Everything below an open folder, by handle.
//
// Calling sequence: list_below() once; then look_below() for each regular file that is to be read.
// Promises: no link is followed, neither the last name nor one on the way, and nothing outside the folder is listed or
// opened, whatever changes places meanwhile (openat2 beneath the folder); nothing is opened for reading but folders, so
// a pipe, a socket or a device neither hangs nor notices. One folder is open at a time and nothing recurses: depth
// costs neither stack nor descriptors. Folders deeper than kWalkDepthMax are `unreadable`.
// Does not promise: one moment. What comes, goes or changes during the walk is listed as it was met, or not at all.
// Mounted file systems below the folder are walked as well.
// Memory: grows with the number of objects. Threads: no state. Errors: file_unreadable with details.os_error, for the
// folder itself and where the machine is out of descriptors or memory.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/result.h"
#include "os/file.h"
#include "os/path_walk.h"

namespace holdfast::os {

constexpr std::size_t kWalkDepthMax = 1000;

struct FolderEntry {
  std::string path;         // below the folder, names parted by '/', bytes as the system keeps them
  Facts facts;              // default where nothing but the name is known
  std::string link_target;  // of a link
  bool unreadable = false;  // what it is cannot be told, or, of a folder, what is in it
};

// Sorted by the bytes of `path`. What `left_out` says yes to is not listed, and a folder of that kind is not entered.
Result<std::vector<FolderEntry>> list_below(const Handle& folder,
                                            const std::function<bool(const FolderEntry&)>& left_out = {});

// What bears the path now. nullopt: nothing does, or a link or something else than a folder is on the way.
Result<std::optional<Looked>> look_below(const Handle& folder, const std::string& path);

}  // namespace holdfast::os
