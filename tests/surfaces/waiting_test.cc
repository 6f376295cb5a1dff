// acquire --wait: a fair queue (CONTRACT section 3; field reports B24, B124, B126).
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "base/json.h"
#include "support/workbench.h"

namespace holdfast {
namespace {

using support::Answer;
using support::Child;
using support::Lease;
using support::Words;
using support::Workbench;
using support::operator+;

class Waiting : public testing::Test {
 protected:
  Waiting() { bench_.serve(); }
  std::unique_ptr<Child> waiter(const std::string& owner, const Words& scopes, const std::string& seconds = "30") {
    auto child = bench_.start(Words{"acquire"} + scopes + Words{"--owner", owner, "--task", "t", "--wait", seconds});
    ::usleep(150'000);
    return child;
  }
  Lease lease_of(Child& child, const std::string& scope) {
    const Answer answer = Workbench::answer_of(child);
    EXPECT_TRUE(answer.ok()) << answer.text;
    return answer.ok() ? Lease{scope, answer.at("leases").at(0)} : Lease{};
  }
  std::string holder(const std::string& scope) const {
    const Answer listed = bench_.run({"leases"});
    for (const Json& lease : listed.at("leases")) {
      if (lease["resource_id"] == "project:/" + scope) return lease["owner"];
    }
    return "";
  }
  Workbench bench_;
};

TEST_F(Waiting, ServesInTheOrderOfComingAndNobodyOvertakes) {
  Lease held = bench_.acquire("a", "alice");
  auto bob = waiter("bob", {"a"});
  auto carol = waiter("carol", {"a"});
  bench_.release(held);
  held = lease_of(*bob, "a");
  EXPECT_EQ(held.record["owner"], "bob");
  EXPECT_EQ(bench_.run({"acquire", "a", "--owner", "eve", "--task", "t"}).code(), "lease_scope_conflict");
  bench_.release(held);
  EXPECT_EQ(lease_of(*carol, "a").record["owner"], "carol");
}

TEST_F(Waiting, B126TwoWhoWantThePairInOppositeOrderBothGetIt) {
  const Lease held = bench_.acquire("a", "alice");
  auto bob = waiter("bob", {"a", "b"});
  auto carol = waiter("carol", {"b", "a"});
  EXPECT_EQ(holder("b"), "") << "a waiter for several holds none";
  bench_.release(held);
  const Answer first = Workbench::answer_of(*bob);
  ASSERT_TRUE(first.ok()) << first.text;
  for (const Json& lease : first.at("leases")) bench_.release(Lease{lease["resource_id"], lease});
  EXPECT_TRUE(Workbench::answer_of(*carol).ok());
}

TEST_F(Waiting, AWaiterForSeveralKeepsLaterOnesFromOvertakingOnEach) {
  const Lease held = bench_.acquire("a", "alice");
  auto bob = waiter("bob", {"a", "b"});
  EXPECT_EQ(bench_.run({"acquire", "b", "--owner", "eve", "--task", "t"}).code(), "lease_scope_conflict");
  EXPECT_TRUE(bench_.run({"acquire", "c", "--owner", "eve", "--task", "t"}).ok()) << "nobody waits for c";
  bench_.release(held);
  EXPECT_TRUE(Workbench::answer_of(*bob).ok());
}

TEST_F(Waiting, AVanishedWaiterIsPassedOver) {
  const Lease held = bench_.acquire("a", "alice");
  auto bob = waiter("bob", {"a"});
  auto carol = waiter("carol", {"a"});
  bob->kill();
  bob->wait();
  bench_.release(held);
  EXPECT_EQ(lease_of(*carol, "a").record["owner"], "carol");
}

TEST_F(Waiting, AGrantThatNobodyTakesIsGivenBack) {
  const Lease held = bench_.acquire("a", "alice");
  auto bob = waiter("bob", {"a"});
  ::kill(bob->pid(), SIGSTOP);
  bob->kill();
  bob->wait();
  bench_.release(held);
  auto dave = waiter("dave", {"a"}, "10");
  EXPECT_EQ(lease_of(*dave, "a").record["owner"], "dave");
}

TEST_F(Waiting, EndsAfterItsTimeAndNamesTheHolder) {
  bench_.acquire("a", "alice");
  const Answer refused = bench_.run({"acquire", "a", "--owner", "bob", "--task", "t", "--wait", "1"});
  EXPECT_EQ(refused.code(), "lease_scope_conflict");
  EXPECT_EQ(refused.at("error").at("details").at("holders").at(0).at("owner"), "alice");
}

TEST_F(Waiting, WakesForAnExpiryAForceAnEpochAndAnotherNamesEnd) {
  bench_.acquire("a", "alice", {"--ttl", "1s"});
  EXPECT_EQ(lease_of(*waiter("bob", {"a"}), "a").record["owner"], "bob");
  auto carol = waiter("carol", {"a"});
  ASSERT_TRUE(bench_.run({"epoch", "advance", "--reason", "test"}).ok());
  EXPECT_EQ(lease_of(*carol, "a").record["owner"], "carol");
  bench_.put("one", "x");
  ASSERT_EQ(::link(bench_.at("one").c_str(), bench_.at("two").c_str()), 0);
  const Lease one = bench_.acquire("one", "alice");
  auto dave = waiter("dave", {"two"});
  bench_.release(one);
  EXPECT_EQ(lease_of(*dave, "two").record["owner"], "dave");
}

TEST_F(Waiting, AServerThatEndsTellsItsWaiters) {
  bench_.acquire("a", "alice");
  auto bob = waiter("bob", {"a"}, "5");
  ASSERT_TRUE(bench_.run({"stop"}).ok());
  const Answer answer = Workbench::answer_of(*bob);
  EXPECT_FALSE(answer.ok());
  EXPECT_EQ(answer.at("error").at("effect"), "none") << answer.text;
}

TEST(WaitingAlone, AsksAgainUntilItIsFree) {
  const Workbench bench;
  const Lease held = bench.acquire("a", "alice");
  auto bob = bench.start({"acquire", "a", "--owner", "bob", "--task", "t", "--wait", "20"});
  ::usleep(400'000);
  bench.release(held);
  EXPECT_TRUE(Workbench::answer_of(*bob).ok());
}

}  // namespace
}  // namespace holdfast
