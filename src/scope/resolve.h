// From what a caller typed to a canonical scope, and from a canonical file scope to a pinned place on disk.
//
// All walking is by handle, beneath the pinned workspace root (openat2, RESOLVE_BENEATH; never a string compare of
// resolved paths): a link that leaves the workspace is scope_outside_workspace, a dangling or looping one
// scope_unresolvable, one that leads into .squad scope_reserved.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "holdfast/scope.h"
#include "os/file.h"
#include "os/workspace_folder.h"

namespace holdfast {

// `text` as typed; `current_folder` an absolute path for relative ones (the caller's, which may be another process).
// file: absolute inside the workspace, relative, project:/…, file://… of each; links are followed inside and the
// result names what they lead to; a target that does not exist yet keeps its suffix below the nearest existing
// ancestor. Percent signs stay literal: a scope is not a URL.
Result<Scope> resolve_scope(const os::WorkspaceFolder& workspace, std::string_view text,
                            const std::string& current_folder);

// The canonical id that the text *names*, by string alone: what an existing lease is found by. For a file scope that
// is project:/… as typed (or made from an absolute or relative path below root_path); links are not followed.
Result<Scope> name_scope(const os::WorkspaceFolder& workspace, std::string_view text,
                         const std::string& current_folder);

// A file scope on disk, pinned. Walks from the root without following any link: a component that is a link now is
// destination_parent_redirected; one that cannot be looked at, destination_parent_unverifiable.
struct PinnedPlace {
  os::Handle parent;  // P, a read handle of the folder
  os::Facts parent_facts;
  std::string leaf;  // "" for the whole workspace (then parent is the root)
  // The object opened for reading (a folder: as a folder). nullopt where nothing bears the leaf, for a link or a
  // special file, which is never opened, and where reading is denied; file_unreadable where it fails otherwise.
  std::optional<os::Handle> object;
  std::optional<os::Facts> facts;  // of whatever bears the leaf
  bool is_mount_point = false;     // the leaf is the root of a mount of its own
};
// parent_missing: whether a missing parent folder gives a place with an invalid parent handle instead of a refusal.
Result<PinnedPlace> pin_place(const os::WorkspaceFolder& workspace, const Scope& scope,
                              bool parent_may_be_missing = false);

// The scope of an open object, from the object: its path now, walked again from the root and compared by identity.
// scope_outside_workspace, scope_unresolvable where it has no name any more.
Result<Scope> opened_file_scope(const os::WorkspaceFolder& workspace, const os::Handle& object);

}  // namespace holdfast
