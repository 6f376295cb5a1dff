// The workspace on disk: finding it, opening its root and its .squad without following links, and what the file
// system below it is.
//
// Refuses: workspace_not_found, workspace_insecure (.squad is a link, is writable by group or others),
// workspace_permission_denied, os_failed.
// Does not refuse: a file system that is not local (NFS, CIFS, 9p, virtiofs, FUSE). It says local = false, and who
// needs the kernel's word refuses with workspace_not_local.
#pragma once
#include <optional>
#include <string>

#include "holdfast/result.h"
#include "os/file.h"
#include "os/handle.h"

namespace holdfast::os {

struct WorkspaceFolder {
  std::string root_path;  // absolute, links resolved; for messages to the operator and for resolving absolute scopes
  Handle root;
  Handle squad;
  Facts squad_facts;
  std::string file_system;  // "ext4", "xfs", "btrfs", "tmpfs", "overlayfs", "nfs", …, or "0x…" where unknown
  bool local = true;
};

// The nearest folder at or above `from` with a .squad; nullopt where there is none.
std::optional<std::string> find_workspace(const std::string& from);
// `root` must have a .squad.
Result<WorkspaceFolder> open_workspace(const std::string& root);
// Makes .squad (0700) in `root` where it is missing; says whether it made it. Never follows a link.
Result<bool> make_squad(const std::string& root);

std::string current_folder();

}  // namespace holdfast::os
