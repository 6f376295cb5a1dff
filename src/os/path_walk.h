// Walking paths by handle: every folder on the way is held open, every name is looked at as an object, and whether a
// place lies inside the workspace is decided by the identity of the root and of .squad, never by comparing strings
// (field reports M12, M14, B93).
//
// Calling sequence: enter_workspace() for an absolute path, then follow_links() for what is left of it; or, with the
// names of a canonical scope, look_at() from folder to folder.
// Promises: look_at() and the open_looked functions never follow a link, never open a special file, and act on the
// object that was looked at, whatever bears its name by then. No call leaves a mark on what it walks.
// Does not promise: that a place is still there when the call returns. Who acts pins it and compares again.
// Threads: no state. Errors: scope_outside_workspace, scope_reserved, scope_unresolvable with details.os_error.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/result.h"
#include "os/file.h"
#include "os/workspace_folder.h"

namespace holdfast::os {

using Names = std::vector<std::string>;

// Where an absolute path gets inside: `names` lead there from the root without links, `rest` is what of the path is
// still to be walked. A path that goes through a link into the middle of the workspace enters there.
struct Entered {
  Names names;
  Names rest;
};
Result<Entered> enter_workspace(const WorkspaceFolder& workspace, const std::string& absolute_path);

// Walks `typed` from the folder `from`, following links wherever they lead, so long as the walk ends inside. The
// names are those of the object itself; of a target that does not exist, those of its nearest existing ancestor and
// the rest as typed. A link to nothing is scope_unresolvable, so that nothing is ever created through one (M13).
Result<Names> follow_links(const WorkspaceFolder& workspace, const Names& from, const Names& typed);

// An object by its name in an open folder: nothing of it is read yet.
struct Looked {
  Handle object;  // good for identity and facts only
  Facts facts;
  bool is_mount_point = false;
};
// nullopt: nothing bears the name.
Result<std::optional<Looked>> look_at(const Handle& folder, const std::string& name);
// The looked-at folder or regular file, for reading. nullopt: reading it is denied, or it is neither.
Result<std::optional<Handle>> open_looked(const Looked& looked);
// What a handle is now, without opening anything anew.
Result<Looked> look_at_open(const Handle& object);

// The absolute path of an open object, as far as the system knows one. A hint, to be walked and compared.
Result<std::string> path_of_open(const Handle& object);

}  // namespace holdfast::os
