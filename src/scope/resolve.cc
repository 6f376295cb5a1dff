#include "scope/resolve.h"

#include "os/path_walk.h"
#include "scope/lexical.h"

namespace holdfast {
namespace {

using lexical::Typed;

// Where a file scope's text begins, below the root and without links, and what it says from there on.
struct Start {
  os::Names folder;
  os::Names typed;

  os::Names joined() const {
    os::Names names = folder;
    names.insert(names.end(), typed.begin(), typed.end());
    return names;
  }
};

Result<os::Names> resolve_current_folder(const os::WorkspaceFolder& workspace, const std::string& current_folder) {
  Result<os::Entered> entered = os::enter_workspace(workspace, current_folder);
  if (!entered) {
    return Refusal(entered.refusal().code(), "a relative path, and the current folder is not in the workspace",
                   entered.refusal().details());
  }
  return os::follow_links(workspace, entered->names, entered->rest);
}

Result<Start> find_start(const os::WorkspaceFolder& workspace, Typed& typed, const std::string& current_folder) {
  switch (typed.from) {
    case Typed::From::workspace_root: return Start{{}, std::move(typed.segments)};
    case Typed::From::current_folder: {
      HF_TRY(os::Names folder, resolve_current_folder(workspace, current_folder));
      return Start{std::move(folder), std::move(typed.segments)};
    }
    case Typed::From::file_system_root: break;
  }
  HF_TRY(os::Entered entered, os::enter_workspace(workspace, typed.path));
  HF_CHECK(lexical::check_segments(entered.rest));
  return Start{std::move(entered.names), std::move(entered.rest)};
}

}  // namespace

Result<Scope> resolve_scope(const os::WorkspaceFolder& workspace, std::string_view text,
                            const std::string& current_folder) {
  HF_TRY(Typed typed, lexical::read_typed(text));
  if (typed.ns != Namespace::file) return Scope{typed.ns, std::move(typed.resource_id)};
  HF_TRY(const Start start, find_start(workspace, typed, current_folder));
  HF_TRY(const os::Names names, os::follow_links(workspace, start.folder, start.typed));
  return lexical::file_scope(names);
}

Result<Scope> name_scope(const os::WorkspaceFolder& workspace, std::string_view text,
                         const std::string& current_folder) {
  HF_TRY(Typed typed, lexical::read_typed(text));
  if (typed.ns != Namespace::file) return Scope{typed.ns, std::move(typed.resource_id)};
  HF_TRY(const Start start, find_start(workspace, typed, current_folder));
  return lexical::file_scope(start.joined());
}

}  // namespace holdfast
