// Two guards on one file, as two images of a server have them during a handoff (guard/overlap.h, ADR 0013).
#include "guard/overlap.h"

#include <gtest/gtest.h>

#include "guard_ground.h"

namespace holdfast::guard {
namespace {

// What the channel between two processes does, in one.
class Wire : public Follower {
 public:
  explicit Wire(Overlap& to) : to_(to) {}
  Result<bool> offer(const os::Handle& object, const std::string& temporary_name, bool leased) override {
    ++offers;
    if (dead) return Refusal(Code::handoff_failed, "dead");
    HF_TRY(os::Handle sent, os::duplicate(object));
    return to_.prepare(std::move(sent), temporary_name, leased);
  }
  void settle(bool taken) override {
    if (!dead && !loses_settling) to_.settle(taken);
  }
  std::atomic<int> offers{0};
  std::atomic<bool> dead{false};
  std::atomic<bool> loses_settling{false};

 private:
  Overlap& to_;
};

class TwoGuards : public testing::Test {
 protected:
  TwoGuards() {
    put_bytes(ground.path("a"), "good");
    old_guard = ground.take("a");
    const os::Handle root = open_path(ground.root(), O_RDONLY | O_DIRECTORY);
    new_guards = make_guards(root, {}).value();
    new_guard = new_guards->take_beside(ground.target("a"), old_guard->overlap().state()).value();
    wire = std::make_shared<Wire>(new_guard->overlap());
  }
  // An intruder that appends; true: it came to its end, and its bytes are not at the name.
  bool is_diverted() {
    Process intruder(Process::shell("echo EVIL >> " + ground.path("a")));
    return intruder.wait() == 0 && bytes_of(ground.path("a")) == "good";
  }

  Ground ground;
  std::unique_ptr<Guard> old_guard;
  std::unique_ptr<Guards> new_guards;
  std::unique_ptr<Guard> new_guard;
  std::shared_ptr<Wire> wire;
};

TEST_F(TwoGuards, OneDivertsTheOtherFollowsAndNoWriterIsLetInByOneAlone) {
  ASSERT_TRUE(old_guard->overlap().share(wire).ok());
  for (int round = 0; round < 20; ++round) {
    ASSERT_TRUE(is_diverted());
    EXPECT_EQ(old_guard->identity(), identity_of(ground.path("a")));
    EXPECT_EQ(new_guard->identity(), identity_of(ground.path("a")));
  }
  EXPECT_EQ(wire->offers, 21);  // the object at first, then each twin
  EXPECT_TRUE(old_guard->check().ok());
  EXPECT_TRUE(ground.leftovers().empty());
}

TEST_F(TwoGuards, WhileNeitherAnswersAWriterWaitsAndIsThenDivertedByTheOther) {
  ASSERT_TRUE(old_guard->overlap().share(wire).ok());
  const Json state = old_guard->overlap().stand_by();
  Process intruder(Process::shell("echo EVIL >> " + ground.path("a")));
  EXPECT_EQ(intruder.wait(300), -1) << "let in while nobody answered";
  ASSERT_TRUE(new_guard->overlap().learn(state).ok());
  new_guard->overlap().answer();
  EXPECT_EQ(intruder.wait(300), -1) << "let in while the old guard's lease stood";
  old_guard.reset();
  EXPECT_EQ(intruder.wait(), 0);
  EXPECT_EQ(bytes_of(ground.path("a")), "good");
  EXPECT_TRUE(new_guard->enforcement().enforced);
  EXPECT_TRUE(new_guard->check().ok());
  EXPECT_TRUE(is_diverted());
  EXPECT_TRUE(replace_with(*new_guard, "newer").ok());
  EXPECT_EQ(bytes_of(ground.path("a")), "newer");
}

TEST_F(TwoGuards, ShareUnderAHammerAndNothingForeignEverBearsTheName) {
  Process hammer(Process::shell("while :; do echo EVIL >> " + ground.path("a") + "; done"));
  Process other(Process::shell("while :; do echo EVIL > " + ground.path("a") + "; done"));
  ASSERT_TRUE(old_guard->overlap().share(wire).ok());
  for (int round = 0; round < 200; ++round) ASSERT_EQ(bytes_of(ground.path("a")), "good");
  const Json state = old_guard->overlap().stand_by();
  ASSERT_TRUE(new_guard->overlap().learn(state).ok());
  new_guard->overlap().answer();
  old_guard.reset();
  for (int round = 0; round < 200; ++round) ASSERT_EQ(bytes_of(ground.path("a")), "good");
  EXPECT_TRUE(new_guard->check().ok());
  EXPECT_TRUE(new_guard->enforcement().enforced);
}

TEST_F(TwoGuards, AFollowerThatDiesCostsNothing) {
  ASSERT_TRUE(old_guard->overlap().share(wire).ok());
  wire->dead = true;
  new_guard.reset();  // its leases go with it
  ASSERT_TRUE(is_diverted());
  old_guard->overlap().answer_again();
  ASSERT_TRUE(is_diverted());
  EXPECT_TRUE(old_guard->enforcement().enforced);
}

TEST_F(TwoGuards, StandingByIsTakenBackAndTheWaitingWriterDiverted) {
  ASSERT_TRUE(old_guard->overlap().share(wire).ok());
  (void)old_guard->overlap().stand_by();
  Process intruder(Process::shell("echo EVIL >> " + ground.path("a")));
  EXPECT_EQ(intruder.wait(200), -1);
  new_guard.reset();
  old_guard->overlap().answer_again();
  EXPECT_EQ(intruder.wait(), 0);
  EXPECT_EQ(bytes_of(ground.path("a")), "good");
  EXPECT_TRUE(old_guard->enforcement().enforced);
}

// The old image dies after it exchanged the names, and before it could say so: the name tells.
TEST_F(TwoGuards, TheNewOneFindsOutWhichObjectBearsTheNameWhereTheOldOneDiedInADivert) {
  ASSERT_TRUE(old_guard->overlap().share(wire).ok());
  wire->loses_settling = true;
  Process intruder(Process::shell("echo EVIL >> " + ground.path("a")));
  ASSERT_TRUE(eventually([&] { return old_guard->identity() != new_guard->identity(); }));
  EXPECT_EQ(intruder.wait(200), -1) << "the new guard's lease on the old object still stands";
  old_guard.reset();
  new_guard->overlap().answer();
  EXPECT_EQ(intruder.wait(), 0);
  EXPECT_EQ(new_guard->identity(), identity_of(ground.path("a")));
  EXPECT_EQ(bytes_of(ground.path("a")), "good");
  EXPECT_TRUE(is_diverted());
}

TEST_F(TwoGuards, AFaultAndItsReasonAreKnownOnBothSides) {
  ASSERT_TRUE(old_guard->overlap().share(wire).ok());
  put_bytes(ground.path("foreign"), "foreign");
  std::filesystem::rename(ground.path("foreign"), ground.path("a"));
  ASSERT_TRUE(ground.observed("name_replaced"));
  ASSERT_TRUE(new_guard->overlap().learn(old_guard->overlap().stand_by()).ok());
  new_guard->overlap().answer();
  EXPECT_EQ(new_guard->enforcement().to_json(), old_guard->enforcement().to_json());
  EXPECT_FALSE(new_guard->check().ok());
  EXPECT_TRUE(new_guards->wait_for_observations(50).empty()) << "it was told of already";
}

TEST_F(TwoGuards, DoNotAgreeWhereTheyGuardDifferentObjects) {
  ASSERT_TRUE(old_guard->overlap().share(wire).ok());
  Json state = old_guard->overlap().stand_by();
  state["expected"]["identity"]["file_index"] = "1";
  EXPECT_FALSE(new_guard->overlap().learn(state).ok());
}

}  // namespace
}  // namespace holdfast::guard
