// Attempts that go round the path: by another process, another namespace, another program, another way into the kernel.
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "os/confinement.h"
#include "os/linux/escape_attempts.h"

namespace holdfast::os {
namespace {

std::string victim(const EscapeGround& ground) { return ground.outside + "/victim"; }

bool write_to(const std::string& path) {
  const Handle file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return file && ::write(file.fd(), "hacked", 6) == 6;
}

bool shell(const std::string& script) { return std::system((script + " 2> /dev/null").c_str()) == 0; }

Handle pidfd_of(pid_t pid) { return Handle(static_cast<Handle::Native>(::syscall(SYS_pidfd_open, pid, 0))); }

// --- another process

bool trace_neighbour(const EscapeGround& ground) {
  return ::ptrace(PTRACE_SEIZE, ground.neighbour, nullptr, nullptr) == 0;
}

bool memory_of_neighbour(const EscapeGround& ground) {
  const Handle memory(::open(("/proc/" + std::to_string(ground.neighbour) + "/mem").c_str(), O_RDWR | O_CLOEXEC));
  return static_cast<bool>(memory);
}

bool take_descriptor(const EscapeGround& ground) {
  const Handle neighbour = pidfd_of(ground.neighbour);
  const Handle taken(static_cast<Handle::Native>(::syscall(SYS_pidfd_getfd, neighbour.fd(), 9, 0)));
  return taken && ::write(taken.fd(), "hacked", 6) == 6;
}

bool signal_by_pidfd(const EscapeGround& ground) {
  const Handle neighbour = pidfd_of(ground.neighbour);
  return ::syscall(SYS_pidfd_send_signal, neighbour.fd(), SIGTERM, nullptr, 0) == 0;
}

bool connect_to_neighbour(const EscapeGround& ground) {
  const Handle socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ground.socket.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + ground.socket.size());
  return ::connect(socket.fd(), reinterpret_cast<sockaddr*>(&address), length) == 0;
}

// --- another namespace

bool own_mounts(int flags) {
  return ::unshare(flags) == 0 && ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

bool bind_over(const EscapeGround& ground, int namespaces) {
  const std::string point = ground.inside + "/point";
  ::mkdir(point.c_str(), 0777);
  if (!own_mounts(namespaces)) return false;
  return ::mount(ground.outside.c_str(), point.c_str(), nullptr, MS_BIND, nullptr) == 0 && write_to(point + "/victim");
}

bool bind_without_own_root(const EscapeGround& ground) {
  const std::string point = ground.inside + "/point";
  ::mkdir(point.c_str(), 0777);
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  return ::mount(ground.outside.c_str(), point.c_str(), nullptr, MS_BIND, nullptr) == 0 && write_to(point + "/victim");
}

bool move_mount_over(const EscapeGround& ground) {
  constexpr unsigned kClone = 1;          // OPEN_TREE_CLONE
  constexpr unsigned kFromEmptyPath = 4;  // MOVE_MOUNT_F_EMPTY_PATH
  const std::string point = ground.inside + "/point";
  ::mkdir(point.c_str(), 0777);
  if (::unshare(CLONE_NEWNS) != 0) return false;
  const Handle tree(static_cast<Handle::Native>(::syscall(SYS_open_tree, AT_FDCWD, ground.outside.c_str(), kClone)));
  return tree && ::syscall(SYS_move_mount, tree.fd(), "", AT_FDCWD, point.c_str(), kFromEmptyPath) == 0;
}

bool cover_outside(const EscapeGround& ground) {
  return own_mounts(CLONE_NEWNS) && ::mount("tmpfs", ground.outside.c_str(), "tmpfs", 0, nullptr) == 0;
}

bool write_in_cloned_tree(const EscapeGround& ground) {
  const Handle tree(static_cast<Handle::Native>(::syscall(SYS_open_tree, AT_FDCWD, ground.outside.c_str(), 1U)));
  const Handle file(::openat(tree.fd(), "victim", O_WRONLY | O_TRUNC | O_CLOEXEC));
  return tree && file;
}

bool another_root(const EscapeGround& ground) {
  return ::chroot(ground.outside.c_str()) == 0 && ::chdir("/") == 0 && write_to("/victim");
}

bool pivot(const EscapeGround& ground) {
  if (!own_mounts(CLONE_NEWNS)) return false;
  if (::mount(ground.outside.c_str(), ground.outside.c_str(), nullptr, MS_BIND, nullptr) != 0) return false;
  return ::chdir(ground.outside.c_str()) == 0 && ::syscall(SYS_pivot_root, ".", ".") == 0;
}

bool namespace_of_neighbour(const EscapeGround& ground) {
  const Handle mounts(::open(("/proc/" + std::to_string(ground.neighbour) + "/ns/mnt").c_str(), O_RDONLY | O_CLOEXEC));
  return ::setns(mounts.fd(), CLONE_NEWNS) == 0 && write_to(victim(ground));
}

// --- another program

bool program_in_memory(const EscapeGround& ground) {
  const Handle program(::memfd_create("program", 0));
  const Handle source(::open("/bin/sh", O_RDONLY | O_CLOEXEC));
  std::array<char, 65536> piece{};
  for (ssize_t count = 0; (count = ::read(source.fd(), piece.data(), piece.size())) > 0;) {
    if (::write(program.fd(), piece.data(), static_cast<std::size_t>(count)) != count) return false;
  }
  return shell("/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(program.fd()) + " -c 'echo hacked > " +
               victim(ground) + "'");
}

// A ruleset of one's own only ever takes more away.
bool wider_confinement(const EscapeGround& ground) {
  std::vector<Handle> folders;
  folders.emplace_back(::open(ground.outside.c_str(), O_PATH | O_CLOEXEC));
  const auto confinement = Confinement::prepare(folders, {});
  return confinement && confinement->enter() == 0 && write_to(victim(ground));
}

// --- another way into the kernel

bool by_file_handle(const EscapeGround& ground) {
  alignas(file_handle) std::array<char, sizeof(file_handle) + MAX_HANDLE_SZ> space{};
  auto* handle = reinterpret_cast<file_handle*>(space.data());
  handle->handle_bytes = MAX_HANDLE_SZ;
  int mount = 0;
  if (::name_to_handle_at(AT_FDCWD, victim(ground).c_str(), handle, &mount, 0) != 0) return false;
  const Handle somewhere(::open(ground.outside.c_str(), O_RDONLY | O_CLOEXEC));
  const Handle file(::open_by_handle_at(somewhere.fd(), handle, O_WRONLY | O_TRUNC | O_CLOEXEC));
  return static_cast<bool>(file);
}

// One openat, asked for through a ring.
bool by_ring(const EscapeGround& ground) {
  io_uring_params setup{};
  const Handle ring(static_cast<Handle::Native>(::syscall(SYS_io_uring_setup, 4U, &setup)));
  if (!ring) return false;
  const auto map = [&](std::size_t size, std::uint64_t offset) {
    void* at =
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.fd(), static_cast<off_t>(offset));
    return at == MAP_FAILED ? nullptr : static_cast<char*>(at);
  };
  char* submissions = map(setup.sq_off.array + setup.sq_entries * sizeof(unsigned), IORING_OFF_SQ_RING);
  char* completions = map(setup.cq_off.cqes + setup.cq_entries * sizeof(io_uring_cqe), IORING_OFF_CQ_RING);
  auto* entries = reinterpret_cast<io_uring_sqe*>(map(setup.sq_entries * sizeof(io_uring_sqe), IORING_OFF_SQES));
  if (submissions == nullptr || completions == nullptr || entries == nullptr) return false;
  const std::string path = victim(ground);
  entries[0] = {};
  entries[0].opcode = IORING_OP_OPENAT;
  entries[0].fd = AT_FDCWD;
  entries[0].addr = reinterpret_cast<std::uint64_t>(path.c_str());
  entries[0].open_flags = O_WRONLY | O_TRUNC | O_CLOEXEC;
  *reinterpret_cast<unsigned*>(submissions + setup.sq_off.array) = 0;
  __atomic_store_n(reinterpret_cast<unsigned*>(submissions + setup.sq_off.tail), 1U, __ATOMIC_RELEASE);
  if (::syscall(SYS_io_uring_enter, ring.fd(), 1U, 1U, IORING_ENTER_GETEVENTS, nullptr, 0) != 1) return false;
  return reinterpret_cast<io_uring_cqe*>(completions + setup.cq_off.cqes)->res >= 0;
}

}  // namespace

const std::vector<EscapeAttempt>& escape_attempts_by_detour() {
  using Ground = const EscapeGround&;
  static const std::vector<EscapeAttempt> all = {
      {"trace_neighbour", trace_neighbour},
      {"memory_of_neighbour", memory_of_neighbour},
      {"take_descriptor", take_descriptor},
      {"signal", [](Ground g) { return ::kill(g.neighbour, SIGTERM) == 0; }},
      {"signal_by_pidfd", signal_by_pidfd},
      {"connect_to_neighbour", connect_to_neighbour},
      {"bind_mount", [](Ground g) { return bind_over(g, CLONE_NEWNS); }, true},
      {"bind_mount_as_user", bind_without_own_root, false, true},
      {"move_mount", move_mount_over, true},
      {"cover_outside", cover_outside, true},
      {"write_in_cloned_tree", write_in_cloned_tree, true},
      {"another_root", another_root, true},
      {"pivot_root", pivot, true},
      {"namespace_of_neighbour", namespace_of_neighbour, true},
      {"shell", [](Ground g) { return shell("(echo hacked > " + victim(g) + ")"); }},
      {"grandchild", [](Ground g) { return shell("sh -c \"sh -c 'echo hacked > " + victim(g) + "'\""); }},
      {"daemon", [](Ground g) { return shell("setsid sh -c '(echo hacked > " + victim(g) + ") & wait $!'"); }},
      {"copy_program", [](Ground g) { return shell("cp mine " + victim(g)); }},
      {"in_place_editor", [](Ground g) { return shell("sed -i s/o/x/ " + victim(g)); }},
      {"program_in_memory", program_in_memory},
      {"wider_confinement", wider_confinement},
      {"by_file_handle", by_file_handle, true},
      {"by_ring", by_ring, false, true},
  };
  return all;
}

}  // namespace holdfast::os
