#include "os/wake_signal.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "os/file.h"

namespace holdfast::os {

Result<WakeSignal> WakeSignal::open() {
  Handle handle(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!handle) return os_refusal(Code::os_failed, "eventfd", errno);
  return WakeSignal(std::move(handle));
}

void WakeSignal::raise() const {
  const std::uint64_t one = 1;
  while (::write(handle_.fd(), &one, sizeof one) < 0 && errno == EINTR) {}
}

void WakeSignal::lower() const {
  std::uint64_t count = 0;
  while (::read(handle_.fd(), &count, sizeof count) < 0 && errno == EINTR) {}
}

}  // namespace holdfast::os
