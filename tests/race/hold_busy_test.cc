// A lease of three seconds, held for a minute on a machine whose every core has four other things to do and whose
// memory is asked for all the time: no renewal is missed (field report B32).
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "base/clock.h"
#include "base/json.h"
#include "support/workbench.h"

namespace holdfast {
namespace {

using support::Answer;
using support::Child;
using support::Workbench;

constexpr std::int64_t kTtlMs = 3'000;
constexpr std::int64_t kHeldMs = 60'000;

// Takes memory, touches every page and gives it back, without end.
const support::RegisterRole kAllocates("allocates", [](const std::vector<std::string>&) {
  for (unsigned char round = 1;; ++round) {
    std::vector<unsigned char> taken(32U << 20U, round);
    if (taken[taken.size() / 2] != round) return 1;
  }
});

// When the lease was granted, renewed and released, by the evidence, in milliseconds.
struct Recorded {
  std::vector<std::int64_t> counts_from;
  std::int64_t ended = 0;
};

Recorded recorded_of(const Workbench& bench) {
  Recorded recorded;
  const Answer log = bench.run({"evidence", "log"});
  for (const Json& event : log.at("events")) {
    std::int64_t at_us = 0;
    EXPECT_TRUE(parse_wall(text_member(event, "at"), at_us));
    const std::string kind = text_member(event, "kind");
    if (kind == "lease_acquired" || kind == "lease_renewed") recorded.counts_from.push_back(at_us / 1000);
    if (kind == "tenancy_ended") recorded.ended = at_us / 1000;
  }
  return recorded;
}

TEST(BusyMachine, B32AShortLeaseIsRenewedAllTheSame) {
  Workbench bench;
  bench.put("a.txt", "old");
  std::vector<Child> busy;
  const long cores = ::sysconf(_SC_NPROCESSORS_ONLN);
  for (long loops = 0; loops < 4 * cores; ++loops) busy.push_back(support::spawn({"sh", "-c", "while :; do :; done"}));
  for (long storms = 0; storms < cores; ++storms) busy.push_back(support::spawn_as("allocates"));
  const Answer run = bench.run({"hold", "a.txt", "--owner", "o", "--task", "t", "--ttl",
                                std::to_string(kTtlMs / 1000) + "s", "--", "sleep", std::to_string(kHeldMs / 1000)});
  for (Child& one : busy) one.kill();
  EXPECT_EQ(run.status, 0) << run.text;

  // A renewal is due when a third of the time is over. One that was missed would leave less than the last third.
  const Recorded recorded = recorded_of(bench);
  ASSERT_GE(recorded.counts_from.size(), static_cast<std::size_t>(kHeldMs / (kTtlMs * 2 / 3)));
  EXPECT_GE(recorded.ended - recorded.counts_from.front(), kHeldMs);
  std::int64_t least_left = kTtlMs;
  for (std::size_t at = 0; at < recorded.counts_from.size(); ++at) {
    const bool last = at + 1 == recorded.counts_from.size();
    const std::int64_t next = last ? recorded.ended : recorded.counts_from[at + 1];
    least_left = std::min(least_left, kTtlMs - (next - recorded.counts_from[at]));
  }
  RecordProperty("least_left_ms", std::to_string(least_left));
  EXPECT_GE(least_left, kTtlMs / 3) << "so near came the deadline, in milliseconds";
  (void)bench.run({"stop"});
}

}  // namespace
}  // namespace holdfast
