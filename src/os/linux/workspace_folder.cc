#include "os/workspace_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "os/path_walk.h"

namespace holdfast::os {
namespace {

constexpr const char* kSquad = ".squad";

struct FileSystemKind {
  std::uint64_t magic;
  const char* name;
  bool local;
};

// statfs(2). Network and cluster file systems are not local: another machine changes them, and their locks, identities
// and boot clock are not this kernel's.
constexpr std::array kFileSystems = {
    FileSystemKind{0xEF53, "ext4", true},          FileSystemKind{0x58465342, "xfs", true},
    FileSystemKind{0x9123683E, "btrfs", true},     FileSystemKind{0x01021994, "tmpfs", true},
    FileSystemKind{0x794C7630, "overlayfs", true}, FileSystemKind{0x858458F6, "ramfs", true},
    FileSystemKind{0xF2F52010, "f2fs", true},      FileSystemKind{0x2FC12FC1, "zfs", true},
    FileSystemKind{0xCA451A4E, "bcachefs", true},  FileSystemKind{0x3153464A, "jfs", true},
    FileSystemKind{0x3434, "nilfs", true},         FileSystemKind{0xF15F, "ecryptfs", true},
    FileSystemKind{0x4D44, "vfat", true},          FileSystemKind{0x2011BAB0, "exfat", true},
    FileSystemKind{0x7366746E, "ntfs3", true},     FileSystemKind{0x6969, "nfs", false},
    FileSystemKind{0xFF534D42, "cifs", false},     FileSystemKind{0xFE534D42, "smb2", false},
    FileSystemKind{0x517B, "smbfs", false},        FileSystemKind{0x01021997, "9p", false},
    FileSystemKind{0x65735546, "fuse", false},     FileSystemKind{0x6A656A63, "virtiofs", false},
    FileSystemKind{0x00C36400, "ceph", false},     FileSystemKind{0x5346414F, "afs", false},
    FileSystemKind{0x6B414653, "kafs", false},     FileSystemKind{0x73757245, "coda", false},
    FileSystemKind{0x0BD00BD0, "lustre", false},   FileSystemKind{0x47504653, "gpfs", false},
    FileSystemKind{0x01161970, "gfs2", false},     FileSystemKind{0x7461636F, "ocfs2", false},
    FileSystemKind{0x20030528, "orangefs", false},
};

Code code_of(int os_error) {
  switch (os_error) {
    case EACCES:
    case EPERM: return Code::workspace_permission_denied;
    case ENOENT:
    case ENOTDIR: return Code::workspace_not_found;
    default: return Code::os_failed;
  }
}

Result<Handle> open_root(const std::string& root) {
  Handle folder(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return os_refusal(code_of(errno), "open the workspace folder", errno);
  return folder;
}

Refusal insecure(const std::string& why) {
  return Refusal(Code::workspace_insecure, "the control folder .squad " + why);
}

Result<Handle> open_squad(const Handle& root) {
  Handle squad(::openat(root.fd(), kSquad, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (squad) return squad;
  const int os_error = errno;
  if (os_error == ELOOP || os_error == ENOTDIR) return insecure("is a link, or no folder at all");
  if (os_error == ENOENT) return Refusal(Code::workspace_not_found, "this folder has no .squad");
  return os_refusal(code_of(os_error), "open .squad", os_error);
}

Result<void> check_squad(const Facts& facts) {
  // An access list that lets others write shows in the group bits, which then are its mask.
  if ((facts.mode & 022U) != 0) {
    std::array<char, 16> mode{};
    std::snprintf(mode.data(), mode.size(), "%04o", facts.mode);
    return insecure(std::string("can be written by others: its mode is ") + mode.data()).with("mode", mode.data());
  }
  const auto user = static_cast<std::uint32_t>(::geteuid());
  if (facts.user != user && user != 0) {
    return Refusal(Code::workspace_permission_denied, "the control folder .squad belongs to another user",
                   Json{{"owner_uid", facts.user}, {"uid", user}});
  }
  return {};
}

// An unknown file system counts as local where a block device is below it; the anonymous devices (major number 0)
// are those of network file systems, too.
struct Recognised {
  std::string name;
  bool local = false;
};
Result<Recognised> recognise_file_system(const Handle& folder) {
  struct statfs found {};
  if (::fstatfs(folder.fd(), &found) != 0) return os_refusal(Code::os_failed, "fstatfs", errno);
  const std::uint64_t magic = static_cast<std::uint64_t>(found.f_type) & 0xFFFFFFFFU;
  for (const FileSystemKind& kind : kFileSystems) {
    if (kind.magic == magic) return Recognised{kind.name, kind.local};
  }
  std::array<char, 20> name{};
  std::snprintf(name.data(), name.size(), "0x%llx", static_cast<unsigned long long>(magic));
  HF_TRY(const Facts facts, facts_of_open(folder));
  return Recognised{name.data(), major(facts.identity.device) != 0};
}

}  // namespace

std::optional<std::string> find_workspace(const std::string& from) {
  Handle folder(::open(from.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  Identity below;
  while (folder) {
    struct stat entry {};
    // Also where it is a link: open_workspace then says what is wrong, instead of a workspace further up being taken.
    if (::fstatat(folder.fd(), kSquad, &entry, AT_SYMLINK_NOFOLLOW) == 0) {
      const Result<std::string> path = path_of_open(folder);
      return path ? std::optional(*path) : std::nullopt;
    }
    const Result<Facts> facts = facts_of_open(folder);
    if (!facts || facts->identity == below) return std::nullopt;  // `..` of the top is the top
    below = facts->identity;
    folder = Handle(::openat(folder.fd(), "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  return std::nullopt;
}

Result<WorkspaceFolder> open_workspace(const std::string& root) {
  WorkspaceFolder workspace;
  HF_TRY(workspace.root, open_root(root));
  HF_TRY(workspace.squad, open_squad(workspace.root));
  HF_TRY(workspace.squad_facts, facts_of_open(workspace.squad));
  HF_CHECK(check_squad(workspace.squad_facts));
  HF_TRY(Recognised recognised, recognise_file_system(workspace.squad));
  workspace.file_system = std::move(recognised.name);
  workspace.local = recognised.local;
  HF_TRY(workspace.root_path, path_of_open(workspace.root));
  return workspace;
}

Result<bool> make_squad(const std::string& root) {
  HF_TRY(const Handle folder, open_root(root));
  struct stat entry {};
  if (::fstatat(folder.fd(), kSquad, &entry, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT) {
    // Said before anything is made there: a folder that no verb would take were left behind.
    HF_TRY(const Recognised on, recognise_file_system(folder));
    if (!on.local) {
      return Refusal(Code::workspace_not_local,
                     "workspace_not_local: this folder is on " + on.name +
                         "; liveness, guard and boot clock need a local file system",
                     Json{{"file_system", on.name}});
    }
  }
  if (::mkdirat(folder.fd(), kSquad, 0700) != 0) {
    if (errno != EEXIST) return os_refusal(code_of(errno), "make .squad", errno);
    HF_CHECK(open_squad(folder));
    return false;
  }
  // A umask can have taken even the owner's bits. By way of /proc, since the folder may not open for reading yet, and
  // its name may be a link by now.
  const Handle squad(::openat(folder.fd(), kSquad, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!squad) return insecure("was exchanged while it was made");
  if (::chmod(("/proc/self/fd/" + std::to_string(squad.fd())).c_str(), 0700) != 0) {
    return os_refusal(code_of(errno), "chmod .squad", errno);
  }
  HF_CHECK(flush(folder));
  return true;
}

std::string current_folder() {
  char* path = ::getcwd(nullptr, 0);
  std::string folder = path == nullptr ? "" : path;
  std::free(path);
  return folder;
}

}  // namespace holdfast::os
