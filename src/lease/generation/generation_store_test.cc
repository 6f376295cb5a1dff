#include "lease/generation/generation_store.h"

#include <gtest/gtest.h>

#include "base/digest.h"
#include "os/fake/control_folder.h"
#include "support/refused_with.h"
#include "support/temporary_folder.h"

namespace holdfast {
namespace {

using support::granted;
using support::refused_with;

class GenerationStoreOnDisk : public testing::Test {
 protected:
  GenerationStoreOnDisk() {
    folder_.make_folder("squad");
    auto mutex = os::TransitionMutex::open(folder_.open("squad"));
    mutex_ = std::move(*mutex);
  }
  os::TransitionMutex::Held hold() { return std::move(mutex_->acquire()).value(); }
  Result<GenerationStore::Opened> open(std::uint64_t floor = 0) {
    return GenerationStore(files_).open(hold(), Generation{floor});
  }
  void make(Counters counters) { ASSERT_TRUE(granted(GenerationStore(files_).publish(hold(), counters))); }
  std::string read(const std::string& path) { return files_.read(path)->value_or("(none)"); }

  static constexpr const char* kKey = "0123456789abcdef";
  support::TemporaryFolder folder_;
  std::unique_ptr<os::TransitionMutex> mutex_;
  os::FakeControlFolder files_;
};

TEST_F(GenerationStoreOnDisk, AdvancesAboveEveryCounter) {
  make({{kKey, 14}, {"fedcba9876543210", 15}});
  auto opened = open();
  ASSERT_TRUE(granted(opened));
  const auto next = GenerationStore::next(opened->counters);
  ASSERT_TRUE(granted(next));
  EXPECT_EQ(next->value, 16U);
  ASSERT_TRUE(granted(GenerationStore(files_).advance(hold(), opened->counters, {{kKey, *next}})));
  auto again = open();
  ASSERT_TRUE(granted(again));
  EXPECT_EQ(again->counters.at(kKey), 16U);
  EXPECT_EQ(read("generations.json.next"), "(none)");
}

TEST_F(GenerationStoreOnDisk, GivesTheLastNumberAndRefusesTheNext) {
  EXPECT_EQ(GenerationStore::next({{kKey, UINT64_MAX - 1}})->value, UINT64_MAX);
  EXPECT_TRUE(refused_with(GenerationStore::next({{kKey, UINT64_MAX}}), Code::generation_exhausted));
}

TEST_F(GenerationStoreOnDisk, AMissingStoreIsNeverAFreshStart) {
  EXPECT_TRUE(refused_with(open(), Code::generation_store_missing));
  make({{kKey, 3}});
  ASSERT_TRUE(granted(files_.remove("generations.json")));
  EXPECT_TRUE(refused_with(open(), Code::generation_store_missing));
}

TEST_F(GenerationStoreOnDisk, AMissingMarkerIsAMismatch) {
  make({{kKey, 3}});
  ASSERT_TRUE(granted(files_.remove(".generations-initialized")));
  EXPECT_TRUE(refused_with(open(), Code::generation_checkpoint_mismatch));
}

TEST_F(GenerationStoreOnDisk, AHighWaterBelowWhatTheWorkspaceKnowsIsAMismatch) {
  make({{kKey, 3}});
  EXPECT_TRUE(granted(open(3)));
  EXPECT_TRUE(refused_with(open(4), Code::generation_checkpoint_mismatch));
}

TEST_F(GenerationStoreOnDisk, CompletesPhaseTwoOnlyFromTheStagedStoreThatTheMarkerNames) {
  make({{kKey, 1}});
  const std::string old_store = read("generations.json");
  make({{kKey, 2}});
  const std::string new_store = read("generations.json");
  files_.plant("generations.json", old_store);
  EXPECT_TRUE(refused_with(open(), Code::generation_checkpoint_mismatch));
  for (const std::string& staged : {old_store, std::string(), std::string("{}"), new_store.substr(0, 10)}) {
    files_.plant("generations.json.next", staged);
    EXPECT_FALSE(open().ok()) << staged;
    EXPECT_EQ(read("generations.json.next"), staged);
    EXPECT_EQ(read("generations.json"), old_store);
  }
  files_.plant("generations.json.next", new_store);
  auto opened = open();
  ASSERT_TRUE(granted(opened));
  EXPECT_TRUE(opened->completed_phase_two);
  EXPECT_EQ(opened->counters.at(kKey), 2U);
  EXPECT_EQ(read("generations.json"), new_store);
}

TEST_F(GenerationStoreOnDisk, ExamineChangesNothing) {
  make({{kKey, 1}});
  const std::string old_store = read("generations.json");
  make({{kKey, 2}});
  files_.plant("generations.json.next", read("generations.json"));
  files_.plant("generations.json", old_store);
  ASSERT_TRUE(granted(GenerationStore(files_).examine(Generation{0})));
  EXPECT_EQ(read("generations.json"), old_store);
}

TEST_F(GenerationStoreOnDisk, RefusesEveryMalformedCounter) {
  for (const char* literal : {"-1", "5.0", "5e0", "18446744073709551616", "null", "true", "[5]", "{}", "\"5\""}) {
    const std::string counters = std::string("{\"0123456789abcdef\":") + literal + "}";
    make({{kKey, 1}});
    files_.plant("generations.json", "{\"protocol\":\"room.generation.v2\",\"counters\":" + counters + "}");
    EXPECT_TRUE(refused_with(open(), Code::generation_counters_malformed)) << literal;
  }
}

TEST_F(GenerationStoreOnDisk, RefusesEveryTruncationOfEitherFile) {
  make({{kKey, 7}});
  for (const char* name : {"generations.json", ".generations-initialized"}) {
    const std::string whole = read(name);
    for (std::size_t length = 0; length < whole.size(); ++length) {
      files_.plant(name, whole.substr(0, length));
      EXPECT_FALSE(open().ok()) << name << " cut to " << length;
      EXPECT_EQ(read(name), whole.substr(0, length));
    }
    files_.plant(name, whole);
  }
  EXPECT_TRUE(granted(open()));
}

TEST_F(GenerationStoreOnDisk, RefusesEveryChangedByteOfEitherFile) {
  make({{kKey, 7}, {"00000000000000ff", 9}});
  for (const char* name : {"generations.json", ".generations-initialized"}) {
    const std::string whole = read(name);
    for (std::size_t at = 0; at < whole.size(); ++at) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ 1);
      files_.plant(name, changed);
      EXPECT_FALSE(open().ok()) << name << " byte " << at;
    }
    files_.plant(name, whole);
  }
}

TEST_F(GenerationStoreOnDisk, AnUnknownProtocolIsNamedAsSuch) {
  make({{kKey, 7}});
  std::string store = read("generations.json");
  store.replace(store.find("v2"), 2, "v3");
  files_.plant("generations.json", store);
  EXPECT_TRUE(refused_with(open(), Code::generation_protocol_unknown));
}

TEST_F(GenerationStoreOnDisk, CanonicalCountersHashAsTheSeedSays) {
  EXPECT_EQ(canonical_counters({{"fedcba9876543210", 15}, {"0123456789abcdef", 14}}),
            "{\"0123456789abcdef\":14,\"fedcba9876543210\":15}");
}

}  // namespace
}  // namespace holdfast
