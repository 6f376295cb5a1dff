#include "base/clock.h"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

std::int64_t parsed(const std::string& text) {
  std::int64_t wall_us = -1;
  EXPECT_TRUE(parse_wall(text, wall_us)) << text;
  return wall_us;
}

TEST(FormatWall, GivesUtcWithMicroseconds) {
  EXPECT_EQ(format_wall(0), "1970-01-01T00:00:00.000000Z");
  EXPECT_EQ(format_wall(1793469600123456), "2026-10-31T18:00:00.123456Z");
  EXPECT_EQ(format_wall(951782400000001), "2000-02-29T00:00:00.000001Z");
  EXPECT_EQ(format_wall(-1), "1969-12-31T23:59:59.999999Z");
}

TEST(ParseWall, ReadsWhatFormatWallWrites) {
  for (const std::int64_t wall_us : {0LL, 1LL, -1LL, 951782400000001LL, 1709208000999999LL, 4102444799000000LL}) {
    EXPECT_EQ(parsed(format_wall(wall_us)), wall_us);
  }
}

TEST(ParseWall, ReadsTimesWithoutAFraction) {
  EXPECT_EQ(parsed("1970-01-01T00:00:01Z"), 1000000);
  EXPECT_EQ(parsed("2026-10-31T18:00:00.5Z"), 1793469600500000);
}

TEST(ParseWall, RefusesWhatIsNoTime) {
  std::int64_t wall_us = 0;
  for (const char* text : {"", "2026-10-31", "2026-10-31T18:00:00", "2026-10-31T18:00:00+02:00", "2026-13-01T00:00:00Z",
                           "2026-00-01T00:00:00Z", "2026-01-32T00:00:00Z", "2026-01-01T24:00:00Z",
                           "2026-01-01T00:60:00Z", "2026-10-31T18:00:00Zx", "yesterday"}) {
    EXPECT_FALSE(parse_wall(text, wall_us)) << text;
  }
}

TEST(Deadline, PassesWithTheBootClockAlone) {
  const Deadline deadline{1000, "boot-a"};
  EXPECT_FALSE(deadline.passed_at({999, 0, "boot-a"}));
  EXPECT_TRUE(deadline.passed_at({1000, 0, "boot-a"}));
  EXPECT_FALSE(deadline.passed_at({999, INT64_MAX, "boot-a"}));  // the wall clock was set
}

TEST(Deadline, OfAnotherBootHasPassed) {
  const Deadline deadline{1'000'000, "boot-a"};
  EXPECT_TRUE(deadline.passed_at({5, 0, "boot-b"}));
}

}  // namespace
}  // namespace holdfast
