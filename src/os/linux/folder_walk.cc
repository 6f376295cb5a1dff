#include "os/folder_walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "os/linux/open_beneath.h"

namespace holdfast::os {
namespace {

// The kernel takes paths of 4095 bytes; longer ones are walked in pieces.
constexpr std::size_t kPieceMax = 2048;

// Opens the last name of `path` with `flags`, a link there being the link itself.
Opened open_path(const Handle& folder, std::string_view path, int flags) {
  Handle reached;
  while (path.size() > kPieceMax) {
    const std::size_t end = path.rfind('/', kPieceMax);
    if (end == std::string_view::npos) return {Handle(), ENAMETOOLONG};
    Opened piece = open_beneath(reached ? reached : folder, std::string(path.substr(0, end)), O_PATH | O_DIRECTORY);
    if (piece.error != 0) return piece;
    reached = std::move(piece.handle);
    path.remove_prefix(end + 1);
  }
  return open_beneath(reached ? reached : folder, std::string(path), flags | O_NOFOLLOW);
}

// Gone, or another kind of object by now: the walk goes on without it.
bool has_moved_on(int error) { return error == ENOENT || error == ENOTDIR || error == ELOOP; }

bool is_shortage(int error) { return error == EMFILE || error == ENFILE || error == ENOMEM; }

Refusal unreadable(const std::string& operation, int error) {
  return os_refusal(Code::file_unreadable, operation, error);
}

struct CloseListing {
  void operator()(DIR* listing) const { ::closedir(listing); }
};

// The names in a folder; the handle's place in the listing is its own, so it is opened for this alone.
int names_of(Handle folder, std::vector<std::string>& names) {
  const std::unique_ptr<DIR, CloseListing> listing(::fdopendir(folder.fd()));
  if (!listing) return errno;
  folder.release();
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(listing.get());
    if (entry == nullptr) return errno;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
}

// "" where the link cannot be read.
std::string target_of(const Handle& link) {
  std::string target(256, '\0');
  for (;;) {
    const ssize_t size = ::readlinkat(link.fd(), "", target.data(), target.size());
    if (size < 0) return "";
    if (static_cast<std::size_t>(size) < target.size()) {
      target.resize(static_cast<std::size_t>(size));
      return target;
    }
    target.resize(target.size() * 2);
  }
}

class Walk {
 public:
  Walk(const Handle& root, const std::function<bool(const FolderEntry&)>& left_out)
      : root_(root), left_out_(left_out) {}

  Result<std::vector<FolderEntry>> run() {
    Opened top = open_beneath(root_, "", O_RDONLY | O_DIRECTORY);
    if (top.error != 0) return unreadable("open a folder", top.error);
    HF_TRY(const int top_error, enter(std::move(top.handle), "", 0));
    if (top_error != 0) return unreadable("list a folder", top_error);
    while (!pending_.empty()) {
      const Pending next = pending_.back();
      pending_.pop_back();
      FolderEntry& entry = found_[next.index];
      entry.unreadable = next.depth > kWalkDepthMax;
      if (entry.unreadable) continue;
      const std::string path = entry.path;  // found_ grows
      Opened opened = open_path(root_, path, O_RDONLY | O_DIRECTORY);
      if (is_shortage(opened.error)) return unreadable("open a folder", opened.error);
      if (has_moved_on(opened.error)) continue;
      int error = opened.error;
      if (error == 0) { HF_TRY(error, enter(std::move(opened.handle), path + "/", next.depth)); }
      found_[next.index].unreadable = error != 0;
    }
    std::sort(found_.begin(), found_.end(),
              [](const FolderEntry& one, const FolderEntry& other) { return one.path < other.path; });
    return std::move(found_);
  }

 private:
  struct Pending {
    std::size_t index;  // in found_
    std::size_t depth;
  };

  // Lists an open folder; the error of the listing itself, 0 where it was whole.
  Result<int> enter(Handle folder, const std::string& prefix, std::size_t depth) {
    const Opened listed = open_beneath(folder, "", O_PATH | O_DIRECTORY);
    if (is_shortage(listed.error)) return unreadable("open a folder", listed.error);
    if (listed.error != 0) return listed.error;
    std::vector<std::string> names;
    const int error = names_of(std::move(folder), names);
    if (is_shortage(error)) return unreadable("list a folder", error);
    for (const std::string& name : names) HF_CHECK(look(listed.handle, prefix + name, name, depth + 1));
    return error;
  }

  Result<void> look(const Handle& folder, std::string path, const std::string& name, std::size_t depth) {
    FolderEntry entry;
    entry.path = std::move(path);
    const Opened object = open_beneath(folder, name, O_PATH | O_NOFOLLOW);
    if (is_shortage(object.error)) return unreadable("look at a name", object.error);
    if (object.error == ENOENT) return {};
    entry.unreadable = object.error != 0;
    if (object.error == 0) {
      HF_TRY(entry.facts, facts_of_open(object.handle));
      if (entry.facts.kind == Kind::link) entry.link_target = target_of(object.handle);
    }
    if (left_out_ && left_out_(entry)) return {};
    if (object.error == 0 && entry.facts.kind == Kind::folder) pending_.push_back({found_.size(), depth});
    found_.push_back(std::move(entry));
    return {};
  }

  const Handle& root_;
  const std::function<bool(const FolderEntry&)>& left_out_;
  std::vector<FolderEntry> found_;
  std::vector<Pending> pending_;
};

}  // namespace

Result<std::vector<FolderEntry>> list_below(const Handle& folder,
                                            const std::function<bool(const FolderEntry&)>& left_out) {
  return Walk(folder, left_out).run();
}

Result<std::optional<Looked>> look_below(const Handle& folder, const std::string& path) {
  const Opened object = open_path(folder, path, O_PATH);
  if (has_moved_on(object.error)) return std::optional<Looked>();
  if (object.error != 0) return unreadable("look at a path", object.error);
  HF_TRY(Looked looked, look_at_open(object.handle));
  return std::optional<Looked>(std::move(looked));
}

}  // namespace holdfast::os
