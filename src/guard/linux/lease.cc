#include "guard/linux/lease.h"

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <sstream>
#include <string>
#include <thread>

#include "os/linux/proc_file.h"
#include "os/process.h"

namespace holdfast::guard {
int take_read_lease(const os::Handle& object, const BreakSignals& signals) {
  // Dropping a lease clears both, so each taking sets them anew; without F_SETSIG the break would come as SIGIO.
  const struct f_owner_ex owner { F_OWNER_TID, signals.thread };
  if (::fcntl(object.fd(), F_SETOWN_EX, &owner) != 0) return errno;
  if (::fcntl(object.fd(), F_SETSIG, signals.number) != 0) return errno;
  return ::fcntl(object.fd(), F_SETLEASE, F_RDLCK) == 0 ? 0 : errno;
}

int take_read_lease_within(const os::Handle& object, const BreakSignals& signals, int limit_ms) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(limit_ms);
  for (;;) {
    const int error = take_read_lease(object, signals);
    if (error != EAGAIN || std::chrono::steady_clock::now() >= limit) return error;
    std::this_thread::sleep_for(std::chrono::microseconds(300));
  }
}

void drop_lease(const os::Handle& object) { ::fcntl(object.fd(), F_SETLEASE, F_UNLCK); }

// F_GETLEASE says F_UNLCK both while a break is pending and after the lease is gone; it also makes the kernel expire
// what is overdue. So it comes first, and fdinfo, which lists the lease as long as it is there, tells the two apart.
LeaseState lease_state(const os::Handle& object) {
  if (::fcntl(object.fd(), F_GETLEASE) == F_RDLCK) return LeaseState::standing;
  const std::string facts = os::read_proc("/proc/self/fdinfo/" + std::to_string(object.fd()));
  // Not to be told (no descriptor is left, say) is not lost: whoever asks asks again, and the writer waits.
  if (facts.empty()) return LeaseState::untold;
  return facts.find("LEASE") == std::string::npos ? LeaseState::lost : LeaseState::breaking;
}

// /proc/locks lists the waiters below the lease that they wait for:
//   1: LEASE  BREAKING  UNLCK 5164 fe:00:10952912 0 EOF
//   1: -> LEASE  BREAKER   WRITE 5168 <none>:0 0 EOF
Json breaker_of(std::uint64_t inode) {
  std::istringstream lines(os::read_proc("/proc/locks"));
  const std::string wanted = ":" + std::to_string(inode) + " ";
  bool below_ours = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("->") == std::string::npos) {
      below_ours = line.find("LEASE") != std::string::npos && line.find(wanted) != std::string::npos;
      continue;
    }
    if (!below_ours || line.find("BREAKER") == std::string::npos) continue;
    std::istringstream words(line);
    std::string number, arrow, lease, breaker, mode;
    std::int64_t pid = 0;
    words >> number >> arrow >> lease >> breaker >> mode >> pid;
    if (pid > 0) {
      return Json{{"pid", pid}, {"command", os::command_of_pid(pid)}, {"process_group", os::group_of_pid(pid)}};
    }
  }
  return nullptr;
}

int lease_break_seconds() {
  const int seconds = std::atoi(os::read_proc("/proc/sys/fs/lease-break-time").c_str());
  return seconds > 0 ? seconds : 45;
}

}  // namespace holdfast::guard
