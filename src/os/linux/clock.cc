// CLOCK_BOOTTIME counts suspend (CLOCK_MONOTONIC does not), and no clock setting moves it.
#include "base/clock.h"

#include <time.h>

#include "os/process.h"

namespace holdfast {
namespace {

std::int64_t in_units(clockid_t clock, std::int64_t per_second) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return now.tv_sec * per_second + now.tv_nsec / (1'000'000'000 / per_second);
}

}  // namespace

Instant SystemClock::now() const {
  // The boot's id cannot change while this process runs.
  static const std::string boot = os::boot_id();
  return Instant{in_units(CLOCK_BOOTTIME, 1000), in_units(CLOCK_REALTIME, 1'000'000), boot};
}

}  // namespace holdfast
