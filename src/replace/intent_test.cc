#include "replace/intent.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/digest.h"
#include "base/json.h"
#include "os/fake/control_folder.h"
#include "support/refused_with.h"

namespace holdfast::replace {
namespace {

using os::FakeControlFolder;
using support::granted;
using Ids = std::vector<std::string>;

const std::string kScope = "file://project:/a.txt";

Intent intent(const std::string& id, const std::string& scope = kScope) {
  Intent made;
  made.operation_id = id;
  made.scope = scope;
  made.command = Json{{"operation_id", id}};
  made.temporary_name = new_temporary_name();
  return made;
}

Intent with_state(Intent made, const std::string& state) {
  made.state = state;
  return made;
}

std::string path_of(const std::string& id) { return "intents/" + sha256_hex(id) + ".json"; }

Ids prepared_on(os::ControlFolder& files, const Ids& last = {}, const std::string& scope = kScope) {
  const auto found = IntentJournal(files).prepared_on(scope, last);
  EXPECT_TRUE(granted(found));
  Ids ids;
  for (const Intent& one : found.ok() ? *found : std::vector<Intent>()) ids.push_back(one.operation_id);
  return ids;
}

class Intents : public testing::Test {
 protected:
  Intents() { EXPECT_TRUE(granted(journal.give_open_names({}))); }
  void put(const Intent& one) { ASSERT_TRUE(granted(journal.put(one))); }
  void write_once(const std::string& id, const std::string& scope = kScope) {
    put(intent(id, scope));
    const Intent settled = with_state(intent(id, scope), "settled");
    const os::Staged bytes = IntentJournal::staged(settled);
    ASSERT_TRUE(granted(files.stage(bytes.path, bytes.bytes)));
    ASSERT_TRUE(granted(journal.settle(settled)));
  }
  FakeControlFolder files;
  IntentJournal journal{files};
};

TEST_F(Intents, TheOneThatIsOpenOnAScopeIsFound) {
  put(intent("op-1"));
  put(intent("op-2", "file://project:/b.txt"));
  EXPECT_EQ(prepared_on(files), Ids{"op-1"});
  EXPECT_EQ(prepared_on(files, {}, "file://project:/b.txt"), Ids{"op-2"});
  EXPECT_EQ(prepared_on(files, {}, "file://project:/c.txt"), Ids());
}

TEST_F(Intents, OneThatIsSettledOrClassifiedIsNotOpen) {
  for (const char* state : {"settled", "not_published", "fault", "reconciled"}) {
    put(intent("op-1"));
    put(with_state(intent("op-1"), state));
    EXPECT_EQ(prepared_on(files), Ids()) << state;
  }
  put(intent("op-1"));
  EXPECT_EQ(prepared_on(files), Ids{"op-1"}) << "an id that runs again";
}

TEST_F(Intents, LookingForOpenOnesReadsTheSameFilesHoweverManyAreSettled) {
  write_once("first");
  const int before = files.files_read();
  EXPECT_EQ(prepared_on(files, {"first"}), Ids());
  const int cost = files.files_read() - before;
  EXPECT_LE(cost, 2);
  for (int number = 0; number < 200; ++number) {
    write_once("op-" + std::to_string(number), number % 2 == 0 ? kScope : "file://project:/b" + std::to_string(number));
  }
  const int later = files.files_read();
  EXPECT_EQ(prepared_on(files, {"op-198"}), Ids());
  EXPECT_EQ(files.files_read() - later, cost);
}

// The settled state's name is flushed with the next intent: what a power cut brings back is found by the tenancy's last
// operation, though another intent has taken the open name.
TEST_F(Intents, OneWhoseSettlingWasLostIsFoundByTheTenancysLastOperation) {
  write_once("op-1");
  files.plant(path_of("op-1"), dump_pretty(intent("op-1").to_json()));
  EXPECT_EQ(prepared_on(files), Ids{"op-1"}) << "the open name is still its own";
  put(intent("op-2"));
  put(with_state(intent("op-2"), "not_published"));
  EXPECT_EQ(prepared_on(files, {"op-1"}), Ids{"op-1"});
  EXPECT_EQ(prepared_on(files, {"op-1"}, "file://project:/b.txt"), Ids()) << "it is of another scope";
}

TEST_F(Intents, AfterACrashAtAnyStepWhatIsDurableIsFoundWhereverItMayHaveBeenPublished) {
  const auto act = [](FakeControlFolder& disk) -> Result<void> {
    IntentJournal on(disk);
    HF_CHECK(on.give_open_names({}));
    HF_CHECK(on.put(intent("op-1")));
    const Intent settled = with_state(intent("op-1"), "settled");
    const os::Staged bytes = IntentJournal::staged(settled);
    HF_CHECK(disk.stage(bytes.path, bytes.bytes));
    HF_CHECK(on.settle(settled));
    return on.put(intent("op-2"));
  };
  FakeControlFolder counted;
  ASSERT_TRUE(granted(act(counted)));
  for (int step = 1; step <= counted.steps() + 1; ++step) {
    for (const auto loss : FakeControlFolder::kEveryLoss) {
      SCOPED_TRACE("step " + std::to_string(step) + ", loss " + std::to_string(static_cast<int>(loss)));
      FakeControlFolder disk;
      disk.crash_at(step);
      (void)act(disk);
      const auto left = disk.power_cut(loss);
      const auto every = IntentJournal(*left).prepared();
      ASSERT_TRUE(granted(every));
      EXPECT_TRUE(every->unreadable.empty());
      Ids expected;
      for (const Intent& one : every->found) expected.push_back(one.operation_id);
      std::sort(expected.begin(), expected.end());
      Ids found = prepared_on(*left, {"op-1"});
      std::sort(found.begin(), found.end());
      EXPECT_EQ(found, expected);
    }
  }
}

TEST(IntentsOfAnOlderWorkspace, AreLookedAtOneByOneUntilTheyHaveOpenNames) {
  FakeControlFolder files;
  files.plant(path_of("op-1"), dump_pretty(intent("op-1").to_json()));
  files.plant(path_of("op-2"), dump_pretty(with_state(intent("op-2"), "settled").to_json()));
  EXPECT_EQ(prepared_on(files), Ids{"op-1"});
  IntentJournal journal(files);
  EXPECT_FALSE(journal.has_open_names().value());
  ASSERT_TRUE(granted(journal.give_open_names(journal.prepared()->found)));
  EXPECT_TRUE(journal.has_open_names().value());
  const int before = files.files_read();
  EXPECT_EQ(prepared_on(files), Ids{"op-1"});
  EXPECT_EQ(files.files_read() - before, 2);
}

TEST(IntentsOfAnOlderWorkspace, GetTheirOpenNamesWholeOrAreLookedAtOneByOne) {
  const auto prepare = [](FakeControlFolder& files) {
    for (const char* id : {"op-1", "op-2"}) {
      files.plant(path_of(id), dump_pretty(intent(id, "file://project:/" + std::string(id)).to_json()));
    }
  };
  const auto act = [](FakeControlFolder& files) {
    IntentJournal journal(files);
    return journal.give_open_names(journal.prepared()->found);
  };
  FakeControlFolder counted;
  prepare(counted);
  ASSERT_TRUE(granted(act(counted)));
  for (int step = 1; step <= counted.steps(); ++step) {
    for (const auto loss : FakeControlFolder::kEveryLoss) {
      FakeControlFolder files;
      prepare(files);
      files.crash_at(step);
      (void)act(files);
      const auto left = files.power_cut(loss);
      for (const char* id : {"op-1", "op-2"}) {
        EXPECT_EQ(prepared_on(*left, {}, "file://project:/" + std::string(id)), Ids{id}) << step;
      }
    }
  }
}

TEST_F(Intents, AnOpenNameThatCannotBeReadHidesNothing) {
  put(intent("op-1"));
  files.plant("intents/" + sha256_hex(kScope) + ".open", "{");
  EXPECT_EQ(prepared_on(files), Ids{"op-1"});
}

}  // namespace
}  // namespace holdfast::replace
