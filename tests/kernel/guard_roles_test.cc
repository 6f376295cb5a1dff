// What this program does when it is started again as an attacker or as a process that guards: HOLDFAST_GUARD_ROLE
// names the role, and it is played before any test runs.
#include <grp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstring>

#include "guard_ground.h"

namespace holdfast::guard {
namespace {

void tell(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

void wait_for_end_of_input() {
  char piece[64];
  while (::read(0, piece, sizeof piece) > 0) continue;
}

int store_through_new_mapping(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return 1;
  void* memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return 2;
  std::memcpy(memory, "FOREIGN", 7);
  return ::msync(memory, 4096, MS_SYNC) == 0 ? 0 : 3;
}

int hold_mapping(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  void* memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  if (memory == MAP_FAILED) return 1;
  tell("ready");
  wait_for_end_of_input();
  return 0;
}

int open_without_waiting(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  return fd < 0 ? errno : 0;
}

int empty_by_reading_open(const std::string& path) {
  return ::open(path.c_str(), O_RDONLY | O_TRUNC | O_CLOEXEC) < 0 ? errno : 0;
}

int truncate_by_name(const std::string& path) { return ::truncate(path.c_str(), 3) == 0 ? 0 : errno; }

int hammer(const std::string& path, int flags, bool truncate) {
  tell("ready");
  for (;;) {
    if (truncate) {
      [[maybe_unused]] const int result = ::truncate(path.c_str(), 3);
      continue;
    }
    const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | flags);
    if (fd < 0) continue;
    [[maybe_unused]] const ssize_t count = ::write(fd, "FOREIGN", 7);
    ::close(fd);
  }
}

// Guards the file `leaf` below ROOT/in, says so, and then tells each observation until its input ends.
int guard_and_tell(const std::string& root_path, const std::string& leaf) {
  const os::Handle root = open_path(root_path, O_RDONLY | O_DIRECTORY);
  auto guards = make_guards(root);
  if (!guards.ok()) return 1;
  Target target;
  target.scope = "file://project:/in/" + leaf;
  target.parent = open_path(root_path + "/in", O_RDONLY | O_DIRECTORY);
  target.leaf = leaf;
  target.relative = "in/" + leaf;
  auto guard = (*guards)->take(std::move(target));
  if (!guard.ok()) return 2;
  tell((*guard)->enforcement().to_json().dump());
  std::thread teller([&guards] {
    for (bool ended = false; !ended;) {
      for (const auto& seen : (*guards)->wait_for_observations(60'000)) tell(seen.what + " " + seen.fault);
      struct pollfd source {
        0, POLLIN, 0
      };
      ended = ::poll(&source, 1, 0) > 0;
    }
  });
  wait_for_end_of_input();
  (*guards)->wake();
  teller.join();
  return 0;
}

int guard_as_nobody(const std::string& root_path, const std::string& leaf) {
  if (::setgroups(0, nullptr) != 0 || ::setgid(65534) != 0 || ::setuid(65534) != 0) return 9;
  return guard_and_tell(root_path, leaf);
}

// No real-time signal can be queued: the kernel falls back on SIGIO, which names no descriptor.
int guard_without_signal_queue(const std::string& root_path, const std::string& leaf) {
  const struct rlimit none { 0, 0 };
  if (::setrlimit(RLIMIT_SIGPENDING, &none) != 0) return 9;
  return guard_and_tell(root_path, leaf);
}

bool play_role(int count, char** words) {
  const char* role_text = std::getenv("HOLDFAST_GUARD_ROLE");
  if (role_text == nullptr) return false;
  const std::string role(role_text);
  const std::string one = count > 1 ? words[1] : "";
  const std::string other = count > 2 ? words[2] : "";
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that fails leaves no hammer behind
  int status = 100;
  if (role == "map_and_store") status = store_through_new_mapping(one);
  if (role == "hold_mapping") status = hold_mapping(one);
  if (role == "open_without_waiting") status = open_without_waiting(one);
  if (role == "empty_by_reading_open") status = empty_by_reading_open(one);
  if (role == "truncate") status = truncate_by_name(one);
  if (role == "hammer_open") status = hammer(one, O_TRUNC, false);
  if (role == "hammer_append") status = hammer(one, O_APPEND, false);
  if (role == "hammer_truncate") status = hammer(one, 0, true);
  if (role == "guard") status = guard_and_tell(one, other);
  if (role == "guard_without_signal_queue") status = guard_without_signal_queue(one, other);
  if (role == "guard_as_nobody") status = guard_as_nobody(one, other);
  std::fflush(stdout);
  ::_exit(status);
}

// glibc hands main's arguments to constructors.
__attribute__((constructor)) void before_main(int count, char** words, char** /*environment*/) {
  play_role(count, words);
}

}  // namespace
}  // namespace holdfast::guard
