// A clock that a test sets: loaded before the C library (LD_PRELOAD), it moves the clocks of one program by the whole
// seconds that stand in two files, which are read at every call, so that a process that lives sees its clock move:
//
//   HOLDFAST_TEST_CLOCK_SET    by how much somebody set the wall clock: CLOCK_REALTIME, time(), gettimeofday()
//   HOLDFAST_TEST_CLOCK_SLEPT  how long the machine was suspended: those, and CLOCK_BOOTTIME
//
// CLOCK_MONOTONIC is never moved, as in the kernel. Everything here is a system call: callable from anywhere, also
// between fork and exec. Does not move the kernel's own idea of the time (file times, waits until a wall time).
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace {

long long seconds_in(const char* variable) {
  const int kept = errno;
  char text[32] = {};
  if (const char* path = std::getenv(variable); path != nullptr) {
    const long opened = ::syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (opened >= 0) {
      (void)::syscall(SYS_read, opened, text, sizeof text - 1);
      (void)::syscall(SYS_close, opened);
    }
  }
  errno = kept;
  return std::strtoll(text, nullptr, 10);
}

long long shift_of(clockid_t clock) {
  if (clock == CLOCK_BOOTTIME) return seconds_in("HOLDFAST_TEST_CLOCK_SLEPT");
  if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE) return 0;
  return seconds_in("HOLDFAST_TEST_CLOCK_SET") + seconds_in("HOLDFAST_TEST_CLOCK_SLEPT");
}

int moved_clock(clockid_t clock, timespec* now) {
  const int result = static_cast<int>(::syscall(SYS_clock_gettime, clock, now));
  if (result == 0) now->tv_sec += static_cast<time_t>(shift_of(clock));
  return result;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* now) noexcept { return moved_clock(clock, now); }

int timespec_get(timespec* now, int base) noexcept {
  return base == TIME_UTC && moved_clock(CLOCK_REALTIME, now) == 0 ? base : 0;
}

int gettimeofday(timeval* now, void*) noexcept {
  timespec found{};
  if (moved_clock(CLOCK_REALTIME, &found) != 0) return -1;
  now->tv_sec = found.tv_sec;
  now->tv_usec = found.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* stored) noexcept {
  timespec found{};
  if (moved_clock(CLOCK_REALTIME, &found) != 0) return -1;
  if (stored != nullptr) *stored = found.tv_sec;
  return found.tv_sec;
}
}
