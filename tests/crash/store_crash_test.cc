// The store on a disk that loses what was not flushed: every step of a grant, a renewal, an end, a batch and an epoch
// is the last one once, and each result of the power cut is opened again. Either the change is there whole or not at
// all; no number is given twice (field reports B10, B52, B56, B77, B78).
#include <gtest/gtest.h>

#include "authority/local/local_store.h"
#include "os/fake/control_folder.h"
#include "os/file.h"
#include "support/refused_with.h"
#include "support/temporary_folder.h"

namespace holdfast {
namespace {

using authority::Batch;
using authority::Loaded;
using authority::LocalStore;
using authority::Need;
using os::FakeControlFolder;
using support::granted;

// The mutex is a real one: the fake has no processes to exclude.
class StoreUnderCrash : public testing::Test {
 protected:
  StoreUnderCrash() {
    folder_.make_folder("squad");
    auto mutex = os::TransitionMutex::open(folder_.open("squad"));
    EXPECT_TRUE(granted(mutex));
    mutex_ = std::move(*mutex);
    now_.boot_ms = 1000;
    now_.wall_us = 1'700'000'000'000'000;
    now_.boot_id = "boot";
  }

  Tenancy tenancy(const std::string& name, std::uint64_t generation) const {
    Tenancy made;
    made.scope = Scope{Namespace::file, "project:/" + name};
    made.owner = "alice";
    made.task_id = "t";
    made.generation = Generation{generation};
    made.started_at = format_wall(now_.wall_us);
    made.renew(now_, 900);
    made.control_epoch = Epoch{1};
    made.event = evidence::new_event_id();
    return made;
  }

  static evidence::Event event_of(const Tenancy& tenancy, const std::string& kind) {
    evidence::Event event;
    event.kind = kind;
    event.scope = tenancy.scope.full();
    event.generation = tenancy.generation;
    return event;
  }

  std::unique_ptr<FakeControlFolder> fresh() {
    auto files = std::make_unique<FakeControlFolder>();
    auto held = mutex_->acquire();
    EXPECT_TRUE(granted(LocalStore::create(*held, *files, now_)));
    return files;
  }

  Result<void> grant(FakeControlFolder& files, const std::vector<std::string>& names) {
    HF_TRY(const auto held, mutex_->acquire());
    evidence::Chain chain(files);
    LocalStore store(files, chain);
    HF_TRY(Loaded state, store.load(held, Need::generations, now_));
    Batch batch;
    Counters issued = state.counters;
    for (const std::string& name : names) {
      HF_TRY(const Generation generation, GenerationStore::next(issued));
      Tenancy made = tenancy(name, generation.value);
      issued[made.scope.routing_key()] = generation.value;
      batch.events.push_back(event_of(made, "lease_acquired"));
      batch.grants.push_back(std::move(made));
    }
    return store.commit(held, state, std::move(batch), now_);
  }

  Result<void> end(FakeControlFolder& files, const std::vector<std::string>& names) {
    HF_TRY(const auto held, mutex_->acquire());
    evidence::Chain chain(files);
    LocalStore store(files, chain);
    HF_TRY(Loaded state, store.load(held, Need::tenancies, now_));
    Batch batch;
    for (const std::string& name : names) {
      EndedTenancy ended;
      ended.tenancy = state.held.at("file://project:/" + name);
      ended.ended_by = "release";
      ended.event = evidence::new_event_id();
      auto event = event_of(ended.tenancy, "tenancy_ended");
      event.id = ended.event;
      batch.events.push_back(std::move(event));
      batch.ends.push_back(std::move(ended));
    }
    return store.commit(held, state, std::move(batch), now_);
  }

  Result<void> advance_epoch(FakeControlFolder& files) {
    HF_TRY(const auto held, mutex_->acquire());
    evidence::Chain chain(files);
    LocalStore store(files, chain);
    HF_TRY(Loaded state, store.load(held, Need::tenancies, now_));
    Batch batch;
    batch.epoch = state.epoch;
    ++batch.epoch->epoch.value;
    evidence::Event event;
    event.kind = "control_epoch_advanced";
    event.epoch = batch.epoch->epoch;
    batch.events.push_back(std::move(event));
    return store.commit(held, state, std::move(batch), now_);
  }

  struct After {
    Loaded state;
    std::uint64_t high_water = 0;
  };
  Result<After> reopen(FakeControlFolder& files) {
    HF_TRY(const auto held, mutex_->acquire());
    evidence::Chain chain(files);
    LocalStore store(files, chain);
    After after;
    HF_TRY(after.state, store.load(held, Need::generations, now_));
    after.high_water = high_water_of(after.state.counters);
    // A commit after the crash works and records what opening did.
    Batch batch;
    evidence::Event event;
    event.kind = "opened_again";
    batch.events.push_back(std::move(event));
    HF_CHECK(store.commit(held, after.state, std::move(batch), now_));
    HF_TRY(const auto verified, chain.verify());
    EXPECT_FALSE(verified.first_break) << verified.first_break->reason;
    return after;
  }

  // Crashes `act` at each of its steps and gives each survivor to `check`.
  template <class Prepare, class Act, class Check>
  void at_every_step(Prepare prepare, Act act, Check check) {
    auto counted = fresh();
    prepare(*counted);
    const int before = counted->steps();
    ASSERT_TRUE(granted(act(*counted)));
    const int steps = counted->steps() - before;
    ASSERT_GT(steps, 3);
    for (int step = 1; step <= steps; ++step) {
      for (const auto loss : FakeControlFolder::kEveryLoss) {
        auto files = fresh();
        prepare(*files);
        files->crash_at(step);
        const bool said_yes = act(*files).ok();
        auto survivor = files->power_cut(loss);
        auto after = reopen(*survivor);
        ASSERT_TRUE(granted(after)) << "step " << step << " of " << steps << ", loss " << static_cast<int>(loss);
        check(*after, said_yes, *survivor);
        if (HasFatalFailure() || HasNonfatalFailure()) {
          FAIL() << "step " << step << " of " << steps << ", loss " << static_cast<int>(loss);
        }
      }
    }
  }

  support::TemporaryFolder folder_;
  std::unique_ptr<os::TransitionMutex> mutex_;
  Instant now_;
};

TEST_F(StoreUnderCrash, AGrantIsThereWholeOrNotAndItsNumberIsNeverGivenAgain) {
  at_every_step([&](FakeControlFolder& files) { ASSERT_TRUE(granted(grant(files, {"first"}))); },
                [&](FakeControlFolder& files) { return grant(files, {"a"}); },
                [&](const After& after, bool said_yes, FakeControlFolder& survivor) {
                  const bool held = after.state.held.contains("file://project:/a");
                  if (said_yes) { EXPECT_TRUE(held); }
                  EXPECT_TRUE(after.state.held.contains("file://project:/first"));
                  const std::uint64_t known = after.high_water;
                  if (held) { EXPECT_LE(after.state.held.at("file://project:/a").generation.value, known); }
                  ASSERT_TRUE(granted(grant(survivor, {"next"})));
                  auto again = reopen(survivor);
                  ASSERT_TRUE(granted(again));
                  EXPECT_GT(again->state.held.at("file://project:/next").generation.value, known);
                });
}

TEST_F(StoreUnderCrash, AnEndIsThereWholeOrNot) {
  at_every_step([&](FakeControlFolder& files) { ASSERT_TRUE(granted(grant(files, {"a"}))); },
                [&](FakeControlFolder& files) { return end(files, {"a"}); },
                [&](const After& after, bool said_yes, FakeControlFolder& survivor) {
                  if (said_yes) { EXPECT_FALSE(after.state.held.contains("file://project:/a")); }
                  evidence::Chain chain(survivor);
                  LocalStore store(survivor, chain);
                  const auto last = store.last_ended(Scope{Namespace::file, "project:/a"});
                  ASSERT_TRUE(granted(last));
                  EXPECT_NE(after.state.held.contains("file://project:/a"), last->has_value());
                  int ends = 0;
                  ASSERT_TRUE(granted(chain.each([&](const Json& event) {
                    ends += event.value("kind", "") == "tenancy_ended" ? 1 : 0;
                    return true;
                  })));
                  EXPECT_EQ(ends, last->has_value() ? 1 : 0) << "an end without its event, or twice";
                });
}

// B52: a tenancy's record that a restore brought back, though its scope was held and given up by others since.
TEST_F(StoreUnderCrash, ARecordOlderThanTheLastEndedTenancyHoldsNothingAndIsTold) {
  const auto files = fresh();
  ASSERT_TRUE(granted(grant(*files, {"a"})));
  const auto names = files->list("locks/write").value();
  ASSERT_EQ(names.size(), 1U);
  const std::string path = "locks/write/" + names.front();
  const std::string old = files->read(path).value().value();
  ASSERT_TRUE(granted(end(*files, {"a"})));
  ASSERT_TRUE(granted(grant(*files, {"a"})));
  ASSERT_TRUE(granted(end(*files, {"a"})));
  ASSERT_TRUE(granted(grant(*files, {"a"})));
  ASSERT_TRUE(granted(files->publish(path, old)));

  const auto held = mutex_->acquire();
  evidence::Chain chain(*files);
  LocalStore store(*files, chain);
  const auto state = store.load(*held, Need::generations, now_);
  ASSERT_TRUE(granted(state));
  EXPECT_TRUE(state->held.empty()) << "neither the first tenancy nor the third, whose record is gone";
  EXPECT_FALSE(files->read(path).value()) << "it is not found again and again";
  const std::string log = files->read("evidence/log-000001.jsonl").value().value();
  EXPECT_NE(log.find("\"kind\":\"old_tenancy_record_removed\""), std::string::npos);
  EXPECT_FALSE(chain.verify()->first_break);
}

TEST_F(StoreUnderCrash, ABatchIsAllOrNothing) {
  at_every_step([](FakeControlFolder&) {},
                [&](FakeControlFolder& files) {
                  return grant(files, {"a", "b", "c"});
                },
                [&](const After& after, bool said_yes, FakeControlFolder& survivor) {
                  const std::size_t held = after.state.held.size();
                  EXPECT_TRUE(held == 0 || held == 3) << held;
                  if (said_yes) { EXPECT_EQ(held, 3U); }
                  const auto left = survivor.read("batch.json");
                  ASSERT_TRUE(granted(left));
                  EXPECT_FALSE(left->has_value());
                });
}

TEST_F(StoreUnderCrash, ABatchOfEndsIsAllOrNothing) {
  at_every_step(
      [&](FakeControlFolder& files) {
        ASSERT_TRUE(granted(grant(files, {"a", "b"})));
      },
      [&](FakeControlFolder& files) {
        return end(files, {"a", "b"});
      },
      [&](const After& after, bool said_yes, FakeControlFolder&) {
        const std::size_t held = after.state.held.size();
        EXPECT_TRUE(held == 0 || held == 2) << held;
        if (said_yes) { EXPECT_EQ(held, 0U); }
      });
}

TEST_F(StoreUnderCrash, AnEpochAndItsEventStandOrFallTogether) {
  at_every_step([](FakeControlFolder&) {}, [&](FakeControlFolder& files) { return advance_epoch(files); },
                [&](const After& after, bool said_yes, FakeControlFolder&) {
                  if (said_yes) { EXPECT_EQ(after.state.epoch.epoch.value, 2U); }
                  EXPECT_TRUE(after.state.epoch.epoch.value == 1 || after.state.epoch.epoch.value == 2);
                });
}

TEST_F(StoreUnderCrash, AFullDiskAtAnyStepRefusesAndKeepsTheLastGoodState) {
  auto counted = fresh();
  const int before = counted->steps();
  ASSERT_TRUE(granted(grant(*counted, {"a"})));
  const int steps = counted->steps() - before;
  for (int step = 1; step <= steps; ++step) {
    auto files = fresh();
    files->fail_at(step, 28 /* ENOSPC */);
    const auto outcome = grant(*files, {"a"});
    auto after = reopen(*files);
    ASSERT_TRUE(granted(after)) << "step " << step;
    if (outcome.ok()) {
      EXPECT_TRUE(after->state.held.contains("file://project:/a")) << "step " << step;
    } else {
      EXPECT_EQ(outcome.refusal().exit_status(), 5) << "step " << step << ": " << outcome.refusal().message();
    }
    EXPECT_TRUE(granted(grant(*files, {"b"}))) << "step " << step;
  }
}

}  // namespace
}  // namespace holdfast
