#include "guard/still_reading.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <thread>

#include "guard/linux/lease.h"

namespace holdfast::guard {

Result<os::Handle> open_for_still_reading(const std::function<Result<os::Handle>()>& open) {
  // The break of the lease is told by a signal that would end a process which does not expect it.
  sigset_t io;
  ::sigemptyset(&io);
  ::sigaddset(&io, SIGIO);
  ::pthread_sigmask(SIG_BLOCK, &io, nullptr);
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  for (;;) {
    HF_TRY(os::Handle object, open());
    const int error = take_read_lease(object, BreakSignals{::gettid(), SIGIO});
    if (error != EAGAIN || std::chrono::steady_clock::now() >= give_up) return object;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace holdfast::guard
