// A lease of three seconds on a machine whose every core has four other things to do: no renewal is missed
// (field report B32).
#include <gtest/gtest.h>
#include <unistd.h>

#include "support/workbench.h"

namespace holdfast {
namespace {

using support::Answer;
using support::Child;
using support::Workbench;

TEST(BusyMachine, AShortLeaseIsRenewedAllTheSame) {
  Workbench bench;
  bench.put("a.txt", "old");
  std::vector<std::unique_ptr<Child>> busy;
  for (long loops = 0; loops < 4 * ::sysconf(_SC_NPROCESSORS_ONLN); ++loops) {
    busy.push_back(std::make_unique<Child>(support::spawn({"sh", "-c", "while :; do :; done"})));
  }
  const Answer run = bench.run({"hold", "a.txt", "--owner", "o", "--task", "t", "--ttl", "3s", "--", "sleep", "20"});
  for (auto& loop : busy) loop->kill();
  EXPECT_EQ(run.status, 0) << run.text;
  (void)bench.run({"stop"});
}

}  // namespace
}  // namespace holdfast
