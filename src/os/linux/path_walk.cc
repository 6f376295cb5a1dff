// The walk of one name is openat2 with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS: the kernel refuses whatever a race
// puts in its way. Links are read from the link object and expanded here, because RESOLVE_BENEATH alone refuses
// absolute links that lead back inside.
#include "os/path_walk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>

#include "os/linux/open_beneath.h"

namespace holdfast::os {
namespace {

constexpr int kLinkLimit = 40;  // as the kernel's own

Refusal unresolvable(const std::string& operation, int os_error) {
  return os_refusal(Code::scope_unresolvable, operation, os_error);
}

// One name below a folder, as O_PATH; a link is the link itself.
Opened open_name(const Handle& folder, const std::string& name) {
  return open_beneath(folder, name, O_PATH | O_NOFOLLOW);
}

Result<std::string> link_text(const char* name, const Handle& at) {
  std::string text(256, '\0');
  for (;;) {
    const ssize_t size = ::readlinkat(at.fd(), name, text.data(), text.size());
    if (size < 0) return unresolvable("readlink", errno);
    if (static_cast<std::size_t>(size) < text.size()) {
      text.resize(static_cast<std::size_t>(size));
      return text;
    }
    text.resize(text.size() * 2);
  }
}

Names names_in(std::string_view path) {
  Names names;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    if (end > 0) names.emplace_back(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return names;
}

// A walk that follows links. Invariants, between steps:
// W1 here_ is the object that the walk has come to; only a folder leads on.
// W2 inside_ exactly when the walk came through the root itself since it was last outside; names_ then lead from the
//    root to here_ without links.
// W3 pending_ is what is still to be walked; what came out of a link stands before what was typed.
class LinkWalk {
 public:
  explicit LinkWalk(const WorkspaceFolder& workspace) : workspace_(workspace) {}

  Result<void> begin_at_top() { return go_to_folder(AT_FDCWD, "/"); }

  // names: without links, since a walk or a canonical scope gave them.
  Result<void> begin_inside(const Names& names) { return walk_down(names); }

  void add_typed(const Names& names) {
    for (const std::string& name : names) pending_.push_back({name, false});
  }

  // What is left when a step begins that was typed: nothing of a link is half walked.
  bool at_typed_name() const { return pending_.empty() || !pending_.front().from_link; }
  bool inside() const { return inside_; }
  bool done() const { return pending_.empty(); }
  const Names& names() const { return names_; }

  Names rest() const {
    Names names;
    for (const Pending& pending : pending_) names.push_back(pending.name);
    return names;
  }

  // Walks one name; false where nothing bears it, and it and all the rest was typed.
  Result<bool> step() {
    if (pending_.front().name == "..") {
      pending_.pop_front();
      HF_CHECK(step_up());
      return true;
    }
    const Pending next = pending_.front();
    if (inside_ && names_.empty() && next.name == ".squad") return reserved();
    Opened found = open_name(here_, next.name);
    if (!found.handle) {
      if (!inside_) return outside().with("os_error", found.error);
      if (found.error != ENOENT) return unresolvable("walk", found.error);
      if (next.from_link) return Refusal(Code::scope_unresolvable, "a link that leads to nothing");
      return false;
    }
    pending_.pop_front();
    HF_CHECK(arrive(next.name, std::move(found.handle)));
    return true;
  }

  Refusal outside() const {
    return Refusal(Code::scope_outside_workspace, "the path does not lead into the workspace");
  }

 private:
  struct Pending {
    std::string name;
    bool from_link;
  };

  static Refusal reserved() {
    return Refusal(Code::scope_reserved, std::string(facts_of(Code::scope_reserved).summary));
  }

  static Result<Identity> identity_of(const Handle& object) {
    HF_TRY(const Facts facts, facts_of_open(object));
    return facts.identity;
  }

  Result<void> arrive(const std::string& name, Handle found) {
    HF_TRY(const Facts facts, facts_of_open(found));
    if (facts.kind == Kind::link) return expand(found);
    here_ = std::move(found);
    if (!inside_) return arrive_from_outside(facts.identity);
    if (facts.identity == workspace_.squad_facts.identity) return reserved();
    names_.push_back(name);
    return {};
  }

  Result<void> arrive_from_outside(const Identity& identity) {
    if (!root_identity_.known()) { HF_TRY(root_identity_, identity_of(workspace_.root)); }
    inside_ = identity == root_identity_;
    names_.clear();
    return {};
  }

  Result<void> expand(const Handle& link) {
    if (++links_ > kLinkLimit) return unresolvable("follow links", ELOOP);
    HF_TRY(const std::string target, link_text("", link));
    const Names names = names_in(target);
    for (auto name = names.rbegin(); name != names.rend(); ++name) {
      if (*name != ".") pending_.push_front({*name, true});
    }
    if (target.starts_with('/')) return begin_at_top();
    return {};
  }

  // `..` in a link. Inside, the way back is the way of the names: a folder that was moved meanwhile leads nowhere.
  Result<void> step_up() {
    if (inside_ && !names_.empty()) {
      const Names up(names_.begin(), names_.end() - 1);
      HF_TRY(const Facts facts, facts_of_open(here_));
      if (facts.kind != Kind::folder) return unresolvable("walk", ENOTDIR);
      return walk_down(up);
    }
    return go_to_folder(here_.fd(), "..");
  }

  Result<void> go_to_folder(int at, const char* path) {
    Handle folder(::openat(at, path, O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!folder) return unresolvable("open a folder", errno);
    here_ = std::move(folder);
    HF_TRY(const Identity identity, identity_of(here_));
    return arrive_from_outside(identity);
  }

  Result<void> walk_down(const Names& names) {
    HF_TRY(here_, duplicate(workspace_.root));
    inside_ = true;
    names_.clear();
    for (const std::string& name : names) {
      Opened found = open_name(here_, name);
      if (!found.handle) return unresolvable("walk", found.error);
      here_ = std::move(found.handle);
    }
    names_ = names;
    return {};
  }

  const WorkspaceFolder& workspace_;
  Identity root_identity_;
  Handle here_;
  bool inside_ = false;
  Names names_;
  std::deque<Pending> pending_;
  int links_ = 0;
};

}  // namespace

Result<Entered> enter_workspace(const WorkspaceFolder& workspace, const std::string& absolute_path) {
  LinkWalk walk(workspace);
  if (!absolute_path.starts_with('/')) return walk.outside();
  HF_CHECK(walk.begin_at_top());
  Names typed = names_in(absolute_path);
  std::erase(typed, ".");
  walk.add_typed(typed);
  while (!(walk.inside() && walk.at_typed_name())) {
    if (walk.done()) return walk.outside();
    HF_TRY(const bool found, walk.step());
    if (!found) break;
  }
  return Entered{walk.names(), walk.rest()};
}

Result<Names> follow_links(const WorkspaceFolder& workspace, const Names& from, const Names& typed) {
  LinkWalk walk(workspace);
  HF_CHECK(walk.begin_inside(from));
  walk.add_typed(typed);
  bool exists = true;
  while (exists && !walk.done()) { HF_TRY(exists, walk.step()); }
  if (!walk.inside()) return walk.outside();
  Names names = walk.names();
  for (std::string& name : walk.rest()) names.push_back(std::move(name));
  return names;
}

Result<Looked> look_at_open(const Handle& object) {
  struct statx found {};
  if (::statx(object.fd(), "", AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &found) != 0) {
    return unresolvable("statx", errno);
  }
  Looked looked;
  HF_TRY(looked.object, duplicate(object));
  HF_TRY(looked.facts, facts_of_open(object));
  looked.is_mount_point = (found.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
  return looked;
}

Result<std::optional<Looked>> look_at(const Handle& folder, const std::string& name) {
  const Opened found = open_name(folder, name);
  if (found.error == ENOENT) return std::optional<Looked>();
  if (!found.handle) return unresolvable("look at a name", found.error);
  HF_TRY(Looked looked, look_at_open(found.handle));
  return std::optional<Looked>(std::move(looked));
}

Result<std::optional<Handle>> open_looked(const Looked& looked) {
  int descriptor = -1;
  do {
    if (looked.facts.kind == Kind::folder) {
      descriptor = ::openat(looked.object.fd(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    } else if (looked.facts.kind == Kind::regular) {
      // Through /proc the very object is opened: its name may be a pipe by now, and opening that would wake its writer.
      const std::string path = "/proc/self/fd/" + std::to_string(looked.object.fd());
      descriptor = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    } else {
      return std::optional<Handle>();
    }
  } while (descriptor < 0 && errno == EINTR);
  if (descriptor >= 0) return std::optional<Handle>(Handle(descriptor));
  if (errno == EACCES || errno == EPERM) return std::optional<Handle>();
  return os_refusal(Code::file_unreadable, "open for reading", errno);
}

Result<std::string> path_of_open(const Handle& object) {
  const std::string name = "/proc/self/fd/" + std::to_string(object.fd());
  Result<std::string> path = link_text(name.c_str(), Handle());
  // "pipe:[4711]", or "(unreachable)/…" of another mount namespace
  if (path && !path->starts_with('/')) return Refusal(Code::scope_unresolvable, "the open object has no path");
  return path;
}

}  // namespace holdfast::os
