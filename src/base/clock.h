// Time as Holdfast uses it. Wall time is for display only; every decision uses the boot clock, which counts
// suspend (CLOCK_BOOTTIME) and is meaningful only together with the boot's id (field reports B23, B24, B26).
//
// Only the implementation of SystemClock (src/os) asks the operating system; everything else gets an Instant.
#pragma once
#include <cstdint>
#include <string>

namespace holdfast {

struct Instant {
  std::int64_t boot_ms = 0;  // milliseconds on the boot clock
  std::int64_t wall_us = 0;  // microseconds since 1970-01-01T00:00:00Z
  std::string boot_id;       // of the boot that boot_ms belongs to
};

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Instant now() const = 0;
};

class SystemClock : public Clock {
 public:
  Instant now() const override;
};

// A point in time on one boot's clock. Another boot's deadline has passed: nothing that held it is alive.
struct Deadline {
  std::int64_t boot_ms = 0;
  std::string boot_id;

  bool passed_at(const Instant& now) const { return boot_id != now.boot_id || now.boot_ms >= boot_ms; }
};

std::string format_wall(std::int64_t wall_us);                    // 2026-10-31T18:00:00.123456Z
bool parse_wall(const std::string& text, std::int64_t& wall_us);  // the same, and without a fraction

}  // namespace holdfast
