// T1 to T4 of the second seed, at every receiver of rows: who was in control, and is no more, has no effect, whatever
// he believes, however late he comes, and whatever became of the receiver's mark.
#include <gtest/gtest.h>

#include <thread>

#include "support/row_receiver.h"
#include "support/row_worker.h"

namespace holdfast::receivers {
namespace {

using support::granted;
using support::kAccounts;
using support::RowWorker;

class Transition : public support::RowReceiverTest {
 protected:
  // The next owner takes over: the receiver's mark, then the workspace's copy, before the new owner is ready.
  void taken_over() { ASSERT_TRUE(granted(raise_mark(*receiver_, kAccounts, Generation{6}, Generation{5}))); }
  static Current tenancy_of(std::uint64_t generation) {
    Current current = at_mark(generation);
    current.knows_tenancy = true;
    current.generation = Generation{generation};
    current.owner = "ada";
    current.task_id = "task";
    current.epoch = Epoch{1};
    return current;
  }
  std::string count_of_generation(const char* generation) {
    return database_->ask(std::string("SELECT count(*) FROM holdfast_operations WHERE generation='") + generation +
                          "'");
  }
};

// T1. It was paused with its command in hand, and believes the tenancy that it had.
TEST_P(Transition, APausedWorkerThatResumesWithItsOldGenerationChangesNothing) {
  RowWorker old(database_->config());
  old.process().stop();
  old.send(command("op-old", 5, "1", paid()), paid(), tenancy_of(5));
  taken_over();
  old.process().cont();
  const Json answer = old.answer();
  EXPECT_EQ(answer.value("decision", ""), "stale_lease_generation") << answer;
  EXPECT_NE(answer.value("refusal", "").find("expected 5"), std::string::npos) << answer;
  expect_untouched();
  EXPECT_EQ(decided(command("op-new", 6, "1", paid()).to_json(), paid(), tenancy_of(6)), "accepted");
}

// T1, paused at the worst place: judged and inside of the transaction. A takeover waits for it; nothing of the old one
// comes behind the takeover.
TEST_P(Transition, AWorkerPausedInsideOfItsTransactionHoldsTheTakeoverBack) {
  RowWorker old(database_->config());
  old.send(command("op-old", 5, "1", paid()), paid(), tenancy_of(5), "captured");
  ASSERT_TRUE(old.is_at_point());
  old.process().stop();
  std::atomic<bool> is_raised = false;
  std::thread successor([&] {
    const auto raised = raise_mark(*receiver_, kAccounts, Generation{6}, Generation{5});
    is_raised = true;
    EXPECT_TRUE(granted(raised));
  });
  // A takeover that did not wait would have come through by then.
  EXPECT_FALSE(support::eventually([&] { return is_raised.load(); }, 300));
  old.process().cont();
  old.go();
  EXPECT_EQ(old.answer().value("decision", ""), "accepted");
  successor.join();
  old.send(command("op-late", 5, "2", state_set("late")), state_set("late"), tenancy_of(5));
  EXPECT_EQ(old.answer().value("decision", ""), "stale_lease_generation");
  EXPECT_EQ(state(), "paid");
  EXPECT_EQ(operations(), "1");
}

// T2. One side still sees the old tenancy, or none at all; the other one is the new owner. Both act at once.
TEST_P(Transition, OfTwoApparentOwnersOnlyTheHighestGenerationThatTheReceiverKnowsHasEffects) {
  for (const bool sees_the_old_tenancy : {true, false}) {
    const std::uint64_t old_generation = sees_the_old_tenancy ? 5 : 6;
    const std::uint64_t next = old_generation + 1;
    RowWorker old(database_->config());
    RowWorker newer(database_->config());
    const std::string round = std::to_string(old_generation);
    const std::string before = version();
    ASSERT_TRUE(granted(raise_mark(*receiver_, kAccounts, Generation{next}, Generation{old_generation})));
    Current apart = sees_the_old_tenancy ? tenancy_of(old_generation) : at_mark(old_generation);
    if (!sees_the_old_tenancy) apart.workspace_mark.reset();
    for (int turn = 0; turn < 5; ++turn) {
      const std::string planned = version();
      const std::string id = round + "-" + std::to_string(turn);
      old.send(command("old-" + id, old_generation, planned, state_set("old")), state_set("old"), apart);
      newer.send(command("new-" + id, next, planned, state_set("new-" + id)), state_set("new-" + id), tenancy_of(next));
      EXPECT_EQ(old.answer().value("decision", ""), "stale_lease_generation");
      EXPECT_EQ(newer.answer().value("decision", ""), "accepted");
      EXPECT_EQ(state(), "new-" + id);
    }
    EXPECT_EQ(std::stoi(version()), std::stoi(before) + 5);
    EXPECT_EQ(count_of_generation(std::to_string(next).c_str()), "5");
  }
  EXPECT_EQ(count_of_generation("5"), "0");
}

// T2: nobody raised the mark beforehand; the first command of the new owner does, and the old one ends there.
TEST_P(Transition, TheFirstEffectOfAHigherGenerationEndsTheOlderOne) {
  Current apart = at_mark(5);
  apart.workspace_mark.reset();
  EXPECT_EQ(decided(command("op-1", 5, "1", state_set("old")).to_json(), state_set("old"), apart), "accepted");
  Current successor = tenancy_of(6);
  successor.workspace_mark = Generation{5};
  EXPECT_EQ(decided(command("op-2", 6, "2", state_set("new")).to_json(), state_set("new"), successor), "accepted");
  EXPECT_EQ(decided(command("op-3", 5, "3", state_set("old")).to_json(), state_set("old"), apart),
            "stale_lease_generation");
  EXPECT_EQ(state(), "new");
}

// T3. In the form of a queue; the refusal tells which operation, of which generation, against which mark.
TEST_P(Transition, ADelayedItemAfterTheNewOwnersEffectIsRefusedByNameAndRepeatsNothing) {
  const Command applied = command("op-applied", 5, "1", state_set("first"));
  const Command delayed = command("op-delayed", 5, "2", state_set("late"));
  EXPECT_EQ(decided(applied.to_json(), state_set("first"), tenancy_of(5)), "accepted");
  const std::string in_the_queue = delayed.header();
  taken_over();
  EXPECT_EQ(decided(command("op-new", 6, "2", state_set("new")).to_json(), state_set("new"), tenancy_of(6)),
            "accepted");
  const auto arrived = command_from_header(in_the_queue);
  ASSERT_TRUE(granted(arrived));
  for (int times = 0; times < 2; ++times) {
    const Delivery late = sent(arrived->to_json(), state_set("late"), tenancy_of(6));
    const Json record = late.decision.to_json(*arrived);
    EXPECT_EQ(record["decision"], "stale_lease_generation");
    EXPECT_EQ(record["operation_id"], "op-delayed");
    EXPECT_EQ(record["incoming_generation"], "5");
    EXPECT_EQ(record["highest_accepted_generation"], "6");
  }
  // And one that was applied under the old owner comes once more: told so, and that it was superseded.
  const Delivery again = sent(applied.to_json(), state_set("first"), tenancy_of(6));
  EXPECT_EQ(again.decision.decision, "repeated");
  EXPECT_EQ(again.outcome.value("superseded_by", ""), "6");
  EXPECT_EQ(state(), "new");
  EXPECT_EQ(version(), "3");
  EXPECT_EQ(operations(), "2");
}

// T4. A consistent backup brings rows, operations and mark back together, so that only the workspace's copy can tell.
TEST_P(Transition, AReceiverRestoredFromABackupIsClosedUntilItIsReseeded) {
  receiver_.reset();
  ASSERT_TRUE(database_->back_up());
  receiver_ = opened("accounts", {"id"});
  ASSERT_TRUE(receiver_);
  taken_over();
  EXPECT_EQ(decided(command("op-new", 6, "1", paid()).to_json(), paid(), tenancy_of(6)), "accepted");
  receiver_.reset();
  ASSERT_TRUE(database_->restore());
  receiver_ = opened("accounts", {"id"});
  ASSERT_TRUE(receiver_);
  expect_untouched();
  for (const std::uint64_t generation : {5U, 6U, 7U}) {
    const std::string id = "op-" + std::to_string(generation);
    EXPECT_EQ(decided(command(id, generation, "1", paid()).to_json(), paid(), tenancy_of(6)),
              "receiver_high_water_missing");
  }
  EXPECT_TRUE(support::refused_with(raise_mark(*receiver_, kAccounts, Generation{7}, Generation{6}),
                                    Code::receiver_high_water_missing));
  expect_untouched();
  const auto seeded = reseed(*receiver_, kAccounts, Generation{6});
  ASSERT_TRUE(granted(seeded));
  EXPECT_EQ(decided(command("op-5", 5, "1", paid()).to_json(), paid(), tenancy_of(6)), "stale_lease_generation");
  EXPECT_EQ(decided(command("op-6", 6, "1", paid()).to_json(), paid(), tenancy_of(6)), "accepted");
}

HOLDFAST_EVERY_ROW_DATABASE(Transition);

}  // namespace
}  // namespace holdfast::receivers
