#include "os/name_swap.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "os/file.h"
#include "os/handle.h"

namespace holdfast::os {
namespace {

// The shortest slice that the kernel takes: a thread that asks for less time at once is served before one in its slice.
constexpr std::uint64_t kShortestSliceNs = 100'000;

// struct sched_attr in its first version: the kernel's header for it clashes with the C library's.
struct SchedulingAttributes {
  std::uint32_t size = sizeof(SchedulingAttributes);
  std::uint32_t policy = SCHED_OTHER;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime_ns = 0;
  std::uint64_t deadline_ns = 0;
  std::uint64_t period_ns = 0;
};
static_assert(sizeof(SchedulingAttributes) == 48);

std::vector<pid_t> threads_of(std::int64_t pid) {
  std::vector<pid_t> threads;
  std::error_code error;
  std::filesystem::directory_iterator entry("/proc/" + std::to_string(pid) + "/task", error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    pid_t thread = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), thread).ec == std::errc()) threads.push_back(thread);
  }
  return threads;
}

// Both on one processor, until it goes. Threads that start meanwhile inherit the narrow choice, and get it back too.
class OneProcessor {
 public:
  explicit OneProcessor(std::int64_t pid) : pid_(pid) {
    CPU_ZERO(&before_);
    if (::sched_getaffinity(0, sizeof before_, &before_) != 0) return;
    int chosen = -1;
    for (int number = 0; number < CPU_SETSIZE; ++number) {
      if (CPU_ISSET(number, &before_)) chosen = number;
    }
    if (chosen < 0) return;
    cpu_set_t narrow;
    CPU_ZERO(&narrow);
    CPU_SET(chosen, &narrow);
    moved_ = true;
    move_to(narrow);
  }
  ~OneProcessor() {
    if (moved_) move_to(before_);
  }
  OneProcessor(const OneProcessor&) = delete;
  OneProcessor& operator=(const OneProcessor&) = delete;

 private:
  void move_to(const cpu_set_t& processors) {
    (void)::sched_setaffinity(0, sizeof processors, &processors);
    for (const pid_t thread : threads_of(pid_)) (void)::sched_setaffinity(thread, sizeof processors, &processors);
  }
  std::int64_t pid_;
  cpu_set_t before_{};
  bool moved_ = false;
};

const char* be_served_first() {
  sched_param lowest{};
  lowest.sched_priority = ::sched_get_priority_min(SCHED_FIFO);
  if (::sched_setscheduler(0, SCHED_FIFO, &lowest) == 0) return "real_time";
  SchedulingAttributes attributes;
  attributes.runtime_ns = kShortestSliceNs;
  return ::syscall(SYS_sched_setattr, 0, &attributes, 0) == 0 ? "short_slice" : "ordinary";
}

bool has_prefixed_name(const char* begin, const char* end, const std::string& prefix) {
  while (begin < end) {
    inotify_event event;
    std::copy_n(begin, sizeof event, reinterpret_cast<char*>(&event));
    if (event.len > 0 && std::string_view(begin + sizeof event).starts_with(prefix)) return true;
    begin += sizeof event + event.len;
  }
  return false;
}

}  // namespace

Result<Json> swap_when_name_appears(const NameSwap& swap, const std::function<void()>& ready) {
  const Handle watch(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!watch) return os_refusal(Code::os_failed, "inotify_init1", errno);
  if (::inotify_add_watch(watch.fd(), swap.folder.c_str(), IN_CREATE | IN_MOVED_TO) < 0) {
    return os_refusal(Code::os_failed, "inotify_add_watch", errno);
  }
  const OneProcessor together(swap.against_pid);
  Json answer = {{"swapped", false}, {"appeared", false}, {"priority", be_served_first()}};
  ready();
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(swap.limit_ms);
  std::array<char, 4096> bytes;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return answer;
    pollfd source{watch.fd(), POLLIN, 0};
    if (::poll(&source, 1, static_cast<int>(left.count())) <= 0) continue;
    const ssize_t count = ::read(watch.fd(), bytes.data(), bytes.size());
    if (count <= 0 || !has_prefixed_name(bytes.data(), bytes.data() + count, swap.prefix)) continue;
    const int failed = ::renameat2(AT_FDCWD, swap.one.c_str(), AT_FDCWD, swap.other.c_str(), RENAME_EXCHANGE);
    answer["appeared"] = true;
    answer["swapped"] = failed == 0;
    if (failed != 0) answer["os_error"] = errno;
    return answer;
  }
}

}  // namespace holdfast::os
