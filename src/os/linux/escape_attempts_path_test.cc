// Attempts that name a path outside, or reach it by a link, /proc, a rename or an open folder.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "os/handle.h"
#include "os/linux/escape_attempts.h"

namespace holdfast::os {
namespace {

constexpr unsigned kExchange = 2;

std::string victim(const EscapeGround& ground) { return ground.outside + "/victim"; }
std::string mine(const EscapeGround& ground) { return ground.inside + "/mine"; }

bool write_by(const std::string& path, int flags) {
  const Handle file(::open(path.c_str(), flags | O_CLOEXEC, 0666));
  return file && ::write(file.fd(), "hacked", 6) == 6;
}

bool bind_socket(const std::string& path) {
  const Handle socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return ::bind(socket.fd(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

bool through_own_descriptor(const EscapeGround& ground, int flags) {
  const Handle reading(::open(victim(ground).c_str(), O_RDONLY | O_CLOEXEC));
  return write_by("/proc/self/fd/" + std::to_string(reading.fd()), flags);
}

bool hard_link_then_write(const EscapeGround& ground) {
  const std::string link = ground.inside + "/link";
  return ::link(victim(ground).c_str(), link.c_str()) == 0 && write_by(link, O_WRONLY);
}

bool unnamed_then_linked(const EscapeGround& ground, const std::string& folder) {
  const Handle file(::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  const std::string own = "/proc/self/fd/" + std::to_string(file.fd());
  return file && ::linkat(AT_FDCWD, own.c_str(), AT_FDCWD, (ground.outside + "/new").c_str(), AT_SYMLINK_FOLLOW) == 0;
}

bool by_folder_handle(const EscapeGround& ground) {
  const Handle folder(::open(ground.outside.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const Handle file(::openat(folder.fd(), "victim", O_WRONLY | O_TRUNC | O_CLOEXEC));
  return static_cast<bool>(file);
}

bool by_working_folder(const EscapeGround& ground) {
  return ::chdir(ground.outside.c_str()) == 0 && write_by("/proc/self/cwd/victim", O_WRONLY | O_TRUNC);
}

bool by_root_of_neighbour(const EscapeGround& ground) {
  const std::string root = "/proc/" + std::to_string(ground.neighbour) + "/root";
  return write_by(root + victim(ground), O_WRONLY | O_TRUNC);
}

bool by_descriptor_of_neighbour(const EscapeGround& ground) {
  return write_by("/proc/" + std::to_string(ground.neighbour) + "/fd/9", O_WRONLY | O_TRUNC);
}

bool exchange(const EscapeGround& ground) {
  return ::syscall(SYS_renameat2, AT_FDCWD, mine(ground).c_str(), AT_FDCWD, victim(ground).c_str(), kExchange) == 0;
}

bool copy_into_reading_descriptor(const EscapeGround& ground) {
  const Handle from(::open(mine(ground).c_str(), O_RDONLY | O_CLOEXEC));
  const Handle to(::open(victim(ground).c_str(), O_RDONLY | O_CLOEXEC));
  return ::copy_file_range(from.fd(), nullptr, to.fd(), nullptr, 2, 0) > 0;
}

bool allocate_by_reading_descriptor(const EscapeGround& ground) {
  const Handle to(::open(victim(ground).c_str(), O_RDONLY | O_CLOEXEC));
  return ::fallocate(to.fd(), 0, 0, 4096) == 0 || ::ftruncate(to.fd(), 0) == 0;
}

}  // namespace

const std::vector<EscapeAttempt>& escape_attempts_by_path() {
  using Ground = const EscapeGround&;
  static const std::vector<EscapeAttempt> all = {
      {"open_for_writing", [](Ground g) { return write_by(victim(g), O_WRONLY); }},
      {"open_for_both", [](Ground g) { return write_by(victim(g), O_RDWR); }},
      {"append", [](Ground g) { return write_by(victim(g), O_WRONLY | O_APPEND); }},
      {"truncate", [](Ground g) { return ::truncate(victim(g).c_str(), 1) == 0; }},
      {"open_truncating", [](Ground g) { return ::open(victim(g).c_str(), O_RDONLY | O_TRUNC) >= 0; }},
      {"own_descriptor_again", [](Ground g) { return through_own_descriptor(g, O_WRONLY); }},
      {"own_descriptor_truncating", [](Ground g) { return through_own_descriptor(g, O_WRONLY | O_TRUNC); }},
      {"create", [](Ground g) { return write_by(g.outside + "/new", O_WRONLY | O_CREAT); }},
      {"create_exclusively", [](Ground g) { return write_by(g.outside + "/new", O_RDWR | O_CREAT | O_EXCL); }},
      {"make_folder", [](Ground g) { return ::mkdir((g.outside + "/new").c_str(), 0777) == 0; }},
      {"remove_folder", [](Ground g) { return ::rmdir((g.outside + "/empty").c_str()) == 0; }},
      {"unlink", [](Ground g) { return ::unlink(victim(g).c_str()) == 0; }},
      {"rename_out", [](Ground g) { return ::rename(victim(g).c_str(), (g.inside + "/got").c_str()) == 0; }},
      {"rename_in", [](Ground g) { return ::rename(mine(g).c_str(), (g.outside + "/new").c_str()) == 0; }},
      {"rename_over", [](Ground g) { return ::rename(mine(g).c_str(), victim(g).c_str()) == 0; }},
      {"rename_beside", [](Ground g) { return ::rename((g.outside + "/spare").c_str(), victim(g).c_str()) == 0; }},
      {"rename_folder_out",
       [](Ground g) { return ::rename((g.outside + "/empty").c_str(), (g.inside + "/e").c_str()) == 0; }},
      {"rename_leased_folder", [](Ground g) { return ::rename(g.inside.c_str(), (g.outside + "/new").c_str()) == 0; }},
      {"exchange", exchange},
      {"link_out", [](Ground g) { return ::link(mine(g).c_str(), (g.outside + "/new").c_str()) == 0; }},
      {"symbolic_link", [](Ground g) { return ::symlink("victim", (g.outside + "/new").c_str()) == 0; }},
      {"pipe", [](Ground g) { return ::mkfifo((g.outside + "/new").c_str(), 0666) == 0; }},
      {"device", [](Ground g) { return ::mknod((g.outside + "/new").c_str(), S_IFCHR | 0666, makedev(1, 3)) == 0; },
       true},
      {"device_inside",
       [](Ground g) { return ::mknod((g.inside + "/disk").c_str(), S_IFBLK | 0666, makedev(7, 0)) == 0; }, true},
      {"regular_node", [](Ground g) { return ::mknod((g.outside + "/new").c_str(), S_IFREG | 0666, 0) == 0; }},
      {"socket", [](Ground g) { return bind_socket(g.outside + "/new"); }},
      {"through_link_inside", [](Ground g) { return write_by(g.inside + "/way_out", O_WRONLY | O_TRUNC); }},
      {"through_new_link_inside",
       [](Ground g) {
         return ::symlink(victim(g).c_str(), (g.inside + "/way").c_str()) == 0 && write_by(g.inside + "/way", O_WRONLY);
       }},
      {"by_parent", [](Ground g) { return write_by(g.inside + "/../outside/victim", O_WRONLY); }},
      {"by_folder_handle", by_folder_handle},
      {"by_working_folder", by_working_folder},
      {"by_root_of_neighbour", by_root_of_neighbour},
      {"by_descriptor_of_neighbour", by_descriptor_of_neighbour},
      {"hard_link_then_write", hard_link_then_write},
      {"unnamed_outside", [](Ground g) { return unnamed_then_linked(g, g.outside); }},
      {"unnamed_inside_linked_outside", [](Ground g) { return unnamed_then_linked(g, g.inside); }},
      {"copy_into_reading_descriptor", copy_into_reading_descriptor, false, true},
      {"allocate_by_reading_descriptor", allocate_by_reading_descriptor, false, true},
      {"disk", [](Ground) { return ::open("/dev/kmsg", O_WRONLY | O_CLOEXEC) >= 0; }, true},
      {"kernel_setting", [](Ground) { return ::open("/proc/sys/kernel/core_pattern", O_WRONLY | O_CLOEXEC) >= 0; },
       true},
  };
  return all;
}

}  // namespace holdfast::os
