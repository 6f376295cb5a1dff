// B127: a receiver's process is killed at every point of a delivery, and at any moment. The effect is there once or not
// at all, with its operation or without; and the same command asked again tells which, and ends with one effect.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "support/row_receiver.h"
#include "support/row_worker.h"

namespace holdfast::receivers {
namespace {

using support::RowWorker;

class ReceiverKill : public support::RowReceiverTest {
 protected:
  // The row as it was before, with the version 1 and no operation.
  void as_before() {
    database_->run("DELETE FROM holdfast_operations");
    database_->run("UPDATE holdfast_marks SET generation='5'");
    database_->run("UPDATE accounts SET version=1, state='new' WHERE id=7");
  }
  // How often the effect is there: rows, operations and mark agree on it. A server may still be at the killed client's
  // commit, so that the receiver is asked first, whose transaction waits for it.
  int effects_behind_the_killed_one() {
    EXPECT_TRUE(support::granted(read_mark(*receiver_, support::kAccounts)));
    const std::string counted = operations();
    EXPECT_EQ(version(), counted == "1" ? "2" : "1");
    EXPECT_EQ(state(), counted == "1" ? "paid" : "new");
    EXPECT_EQ(database_->ask("SELECT generation FROM holdfast_marks"), counted == "1" ? "6" : "5");
    return std::stoi(counted);
  }
  // A PostgreSQL receiver that has changed such a row once changes the next one by a call.
  void teach(RowWorker& worker) {
    worker.send(command("op-before", 5, "1", paid()), paid(), at_mark(5));
    EXPECT_EQ(worker.answer().value("decision", ""), "accepted");
    as_before();
  }
  // Rows, operations and mark, seen at one moment, agree. How often the effect was there then.
  int effects_at_this_moment() {
    const std::string seen = database_->ask(
        "SELECT (SELECT count(*) FROM holdfast_operations)||','||(SELECT version||','||state FROM accounts WHERE "
        "id=7)||','||(SELECT generation FROM holdfast_marks)");
    EXPECT_TRUE(seen == "0,1,new,5" || seen == "1,2,paid,6") << seen;
    return seen.starts_with("1") ? 1 : 0;
  }
  // What was sent as one call may still begin after its client is gone.
  enum class Late { none, may_come };
  void expect_that_asking_again_tells(const Command& asked, int effects, Late late = Late::none) {
    const Delivery again = sent(asked.to_json(), paid(), at_mark(5));
    if (effects == 1 || late == Late::none) {
      EXPECT_EQ(again.decision.decision, effects == 1 ? "repeated" : "accepted");
    } else {
      EXPECT_TRUE(again.decision.decision == "repeated" || again.decision.decision == "accepted");
    }
    EXPECT_EQ(again.outcome.value("version", ""), "2");
    EXPECT_EQ(version(), "2");
    EXPECT_EQ(operations(), "1");
  }
};

TEST_P(ReceiverKill, AtEveryPointOfADeliveryLeavesOneEffectOrNoneAndAskingAgainTells) {
  for (int round = 0; round < 3; ++round) {
    for (const char* point : support::kDeliveryPoints) {
      SCOPED_TRACE(point);
      as_before();
      const Command asked = command("op-" + std::to_string(round) + point, 6, "1", paid());
      RowWorker worker(database_->config());
      if (GetParam().is_postgres && round > 0) teach(worker);
      worker.send(asked, paid(), at_mark(5), point);
      ASSERT_TRUE(worker.is_at_point());
      worker.process().kill();
      worker.process().wait();
      const int effects = effects_behind_the_killed_one();
      const bool is_committed = std::string(point) == "committed" || std::string(point) == "observed";
      EXPECT_EQ(effects, is_committed ? 1 : 0);
      expect_that_asking_again_tells(asked, effects);
    }
  }
}

TEST_P(ReceiverKill, AtAnyMomentAroundTheCommitLeavesOneEffectOrNoneAndAskingAgainTells) {
  constexpr int kKills = 60;
  int happened = 0;
  for (int kill = 0; kill < kKills; ++kill) {
    as_before();
    const Command asked = command("op-" + std::to_string(kill), 6, "1", paid());
    RowWorker worker(database_->config());
    const bool is_one_call = GetParam().is_postgres && kill % 2 == 1;
    if (is_one_call) teach(worker);
    worker.send(asked, paid(), at_mark(5), "commit");
    ASSERT_TRUE(worker.is_at_point());
    worker.go();
    // The flushes of a commit take some hundred microseconds and more: the moments are spread over them.
    const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(40 * kill);
    while (std::chrono::steady_clock::now() < until) std::this_thread::yield();
    worker.process().kill();
    worker.process().wait();
    const int effects = is_one_call ? effects_at_this_moment() : effects_behind_the_killed_one();
    happened += effects;
    expect_that_asking_again_tells(asked, effects, is_one_call ? Late::may_come : Late::none);
  }
  RecordProperty("happened", happened);
  std::printf("%d of %d killed deliveries had their effect\n", happened, kKills);
}

HOLDFAST_EVERY_ROW_DATABASE(ReceiverKill);

}  // namespace
}  // namespace holdfast::receivers
