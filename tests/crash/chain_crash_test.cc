// The evidence chain, cut off at every step of an append, with every way in which a power cut can leave the disk.
// What has to hold afterwards: everything that was answered is there, the chain verifies after the next append, and of
// what was torn not a byte is gone.
#include <gtest/gtest.h>

#include "base/digest.h"
#include "evidence/chain.h"
#include "os/fake/control_folder.h"
#include "support/refused_with.h"

namespace holdfast::evidence {
namespace {

using os::FakeControlFolder;
using support::granted;

const Instant kNow{1000, 1793469600000000, "boot"};
constexpr const char* kFirst = "evidence/log-000001.jsonl";

Event event_of(const std::string& kind) {
  Event event;
  event.kind = kind;
  event.facts = {{"text", std::string(300, 'x')}};
  return event;
}

std::string text_of(FakeControlFolder& files, const std::string& path) { return files.read(path).value().value_or(""); }

// One event that was answered; with `torn` also half a line behind it, as an earlier crash leaves it.
void prepare(FakeControlFolder& files, bool torn) {
  ASSERT_TRUE(granted(Chain(files).append({event_of("answered")}, kNow)));
  if (torn) files.plant(kFirst, text_of(files, kFirst) + "{\"at\":\"torn");
}

Result<std::vector<std::string>> act(FakeControlFolder& files) {
  return Chain(files).append({event_of("first"), event_of("second"), event_of("third")}, kNow);
}

// What a process that comes after the crash finds and does.
void check_afterwards(FakeControlFolder& files, const std::string& answered) {
  EXPECT_EQ(text_of(files, kFirst).substr(0, answered.size()), answered) << "an answered event is gone";
  ASSERT_TRUE(granted(Chain(files).append({event_of("afterwards")}, kNow)));
  const Verification found = Chain(files).verify().value();
  EXPECT_FALSE(found.first_break.has_value()) << found.to_json();

  std::string told;
  ASSERT_TRUE(granted(Chain(files).each([&](const Json& event) {
    if (event["kind"] == "evidence_tail_set_aside") told += event["facts"].dump();
    return true;
  })));
  const auto names = files.list("evidence").value();
  for (const std::string& name : names) {
    if (!name.starts_with("torn-")) continue;
    EXPECT_NE(told.find("\"evidence/" + name + "\""), std::string::npos) << name << " is not told of: " << told;
    EXPECT_NE(told.find(sha256_hex(text_of(files, "evidence/" + name))), std::string::npos);
  }
}

void crash_everywhere(bool torn) {
  FakeControlFolder whole;
  prepare(whole, torn);
  const int before = whole.steps();
  ASSERT_TRUE(granted(act(whole)));
  const int steps = whole.steps() - before;
  ASSERT_GT(steps, 1);
  for (int step = 1; step <= steps; ++step) {
    for (const auto loss : FakeControlFolder::kEveryLoss) {
      SCOPED_TRACE("step " + std::to_string(step) + ", loss " + std::to_string(static_cast<int>(loss)));
      FakeControlFolder machine;
      prepare(machine, torn);
      std::string answered = text_of(machine, kFirst);
      answered.resize(answered.rfind('\n') + 1);
      machine.crash_at(step);
      EXPECT_FALSE(act(machine).ok());
      const auto after = machine.power_cut(loss);
      check_afterwards(*after, answered);
      if (torn) { EXPECT_EQ(text_of(*after, "evidence/torn-2-1"), "{\"at\":\"torn") << "torn bytes are gone"; }
    }
  }
}

TEST(ChainCrash, LosesNothingThatWasAnsweredWhereverAnAppendIsCut) { crash_everywhere(false); }

TEST(ChainCrash, LosesNoTornByteWhereverTheirSettingAsideIsCut) { crash_everywhere(true); }

TEST(ChainCrash, StartsAgainWhereTheVeryFirstAppendWasCut) {
  FakeControlFolder whole;
  ASSERT_TRUE(granted(act(whole)));
  for (int step = 1; step <= whole.steps(); ++step) {
    for (const auto loss : FakeControlFolder::kEveryLoss) {
      FakeControlFolder machine;
      machine.crash_at(step);
      EXPECT_FALSE(act(machine).ok());
      const auto after = machine.power_cut(loss);
      check_afterwards(*after, "");
    }
  }
}

TEST(ChainCrash, KeepsAnAnsweredAppendThroughEveryPowerCut) {
  for (const auto loss : FakeControlFolder::kEveryLoss) {
    FakeControlFolder machine;
    ASSERT_TRUE(granted(act(machine)));
    const auto after = machine.power_cut(loss);
    EXPECT_EQ(Chain(*after).verify().value().events, 3U);
  }
}

}  // namespace
}  // namespace holdfast::evidence
