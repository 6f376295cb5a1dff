// Readers of the evidence chain beside its one writer, on a real file system: an append under way is no break.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "evidence/chain.h"
#include "support/refused_with.h"
#include "support/temporary_folder.h"

namespace holdfast::evidence {
namespace {

using support::granted;
using support::TemporaryFolder;

Event event_of(std::size_t size) {
  Event event;
  event.kind = "written";
  event.facts = {{"text", std::string(size, 'x')}};
  return event;
}

TEST(ChainRace, VerifiesWhileAnotherProcessAppends) {
  const TemporaryFolder squad;
  std::atomic<bool> done{false};
  std::thread writer([&] {
    const auto files = os::open_control_folder(squad.open()).value();
    Chain chain(*files);
    for (std::size_t number = 0; number < 220; ++number) {
      // Lines longer than a page: a reader may see a part of one.
      EXPECT_TRUE(granted(chain.append({event_of(200), event_of(20'000)}, Instant{1, 2, "boot"})));
    }
    done = true;
  });
  const auto files = os::open_control_folder(squad.open()).value();
  std::uint64_t before = 0;
  do {
    const Verification found = Chain(*files).verify().value();
    EXPECT_FALSE(found.first_break.has_value()) << found.to_json();
    EXPECT_GE(found.events, before);
    before = found.events;
  } while (!done && !testing::Test::HasFailure());
  writer.join();
  EXPECT_EQ(Chain(*files).verify().value().events, 440U);
  EXPECT_EQ(files->list("evidence").value().size(), 2U);  // it went on in a second segment
}

TEST(ChainRace, TwoProcessesThatTakeTurnsMakeOneChain) {
  const TemporaryFolder squad;
  const auto one_files = os::open_control_folder(squad.open()).value();
  const auto other_files = os::open_control_folder(squad.open()).value();
  Chain one(*one_files);
  Chain other(*other_files);
  for (int number = 0; number < 50; ++number) {
    ASSERT_TRUE(granted(one.append({event_of(10)}, Instant{1, 2, "boot"})));
    ASSERT_TRUE(granted(other.append({event_of(10), event_of(20)}, Instant{1, 2, "boot"})));
  }
  const Verification found = one.verify().value();
  EXPECT_EQ(found.events, 150U);
  EXPECT_FALSE(found.first_break.has_value()) << found.to_json();
}

}  // namespace
}  // namespace holdfast::evidence
