// What reading the receivers found: ways round the fence, the approval and the closure that have to stay shut.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/json.h"
#include "evidence/decision.h"
#include "support/row_bench.h"

namespace holdfast {
namespace {

using support::Answer;
using support::Child;
using support::eventually;
using support::kDeploy;
using support::kRows;
using support::Lease;
using support::RowBench;
using support::Words;
using support::operator+;

class WayRound : public testing::Test {
 protected:
  std::string issued(const Lease& lease, const std::string& state = "late") const {
    return bench_.issue(lease, RowBench::change(state, "1"));
  }
  RowBench bench_;
};

TEST_F(WayRound, ARevokedGenerationThatNamesTheNewEpochIsNobodysCommand) {
  const Lease old = bench_.acquire(kRows);
  Json late = *parse_json(issued(old));
  ASSERT_TRUE(bench_.run({"epoch", "advance", "--reason", "r"}).ok());
  EXPECT_EQ(bench_.receive(late.dump() + "\n").code(), "control_epoch_revoked");
  late["command"]["control_epoch"] = bench_.run({"epoch", "show"}).at("control_epoch");
  EXPECT_FALSE(bench_.receive(late.dump() + "\n").code().empty());
  EXPECT_EQ(bench_.row(), "new 1");
}

TEST_F(WayRound, DecisionsAfterExpiryAndEpochFollowFromTheirInputs) {
  const Lease rows = bench_.acquire(kRows, "alice", {"--ttl", "1s"});
  const Lease file = bench_.acquire("a.txt", "alice", {"--ttl", "1s"});
  const std::string late = issued(rows) + bench_.issue(file, {"--from", "-"}, "late");
  ASSERT_TRUE(eventually([&] { return bench_.run({"leases"}).at("leases").empty(); }));
  bench_.receive(late);
  const Lease again = bench_.acquire("a.txt", "bob");
  const std::string revoked = bench_.issue(again, {"--from", "-"}, "revoked");
  ASSERT_TRUE(bench_.run({"epoch", "advance", "--reason", "r"}).ok());
  bench_.receive(revoked);
  std::size_t refused = 0;
  for (const Json& event : bench_.events("command_refused")) {
    ++refused;
    EXPECT_EQ(evidence::recompute(event["facts"]).verdict, evidence::Recomputed::Verdict::agrees) << event;
  }
  EXPECT_EQ(refused, 3U);
  EXPECT_FALSE(std::filesystem::exists(bench_.at("a.txt")));
}

TEST_F(WayRound, WhatHasToBeApprovedDoesNotGoRoundByTheQueue) {
  const Lease lease = bench_.acquire(kRows);
  ASSERT_TRUE(bench_.prepare_row(lease, "op-1", "paid", "1").ok());
  const Json act = bench_.run({"act", "show", "op-1"}).at("act");
  const std::string envelope =
      Json{{"command", act["command"]}, {"payload_base64", act["payload_base64"]}}.dump() + "\n";
  EXPECT_EQ(bench_.receive(envelope).code(), "approval_required");
  ASSERT_TRUE(bench_.approve("op-1").ok());
  EXPECT_EQ(bench_.receive(envelope).code(), "approval_required");
  EXPECT_EQ(bench_.row(), "new 1");
  EXPECT_TRUE(bench_.commit("op-1", lease).ok());
  EXPECT_EQ(bench_.row(), "paid 2");
}

TEST_F(WayRound, ExecRunsNoProgramTwiceForOneOperation) {
  const Lease lease = bench_.acquire(kDeploy);
  const Words once = Words{"exec", kDeploy} + lease.keys() + Words{"--operation-id", "op-1", "--", "mkdir"};
  EXPECT_EQ(bench_.run(once + Words{bench_.at("first")}).status, 0);
  EXPECT_EQ(bench_.run(once + Words{bench_.at("second")}).code(), "operation_id_reused");
  EXPECT_FALSE(std::filesystem::exists(bench_.at("second")));
}

TEST_F(WayRound, AProgramThatRunsIsInTheWayThoughItsCommandWasIssuedAgain) {
  const Lease old = bench_.acquire(kDeploy);
  const Words job = {"--from", "-", "--operation-id", "op-1"};
  const std::string line = bench_.issue(old, job, "p");
  const std::string gate = bench_.at("gate");
  auto worker = bench_.start({"receive", "--", "sh", "-c", "while [ ! -e " + gate + " ]; do sleep 0.05; done"});
  worker->write(line);
  worker->close_input();
  ASSERT_TRUE(eventually([&] { return !bench_.events("command_accepted").empty(); }));
  bench_.issue(old, job, "p");
  ASSERT_TRUE(bench_.run({"handoff", "open", kDeploy, "--reason", "r"}).ok());
  ASSERT_TRUE(bench_.release(old).ok());
  (void)bench_.acquire(kDeploy, "bob");
  EXPECT_EQ(bench_.run({"handoff", "close", kDeploy, "--reason", "r"}).code(), "transition_open");
  bench_.put("gate", "");
  worker->wait();
  EXPECT_TRUE(bench_.run({"handoff", "close", kDeploy, "--reason", "r"}).ok());
}

TEST_F(WayRound, AResultOfADeliveredCommandCanBeGranted) {
  const Lease lease = bench_.acquire(kRows);
  ASSERT_EQ(bench_.receive(bench_.issue(lease, RowBench::change("paid", "1") + Words{"--operation-id", "op-1"})).status,
            0);
  EXPECT_TRUE(bench_.run({"result", "grant", "op-1", "--to-task", "t-2", "--reason", "r"}).ok());
  EXPECT_EQ(bench_.run({"result", "grant", "op-none", "--to-task", "t-2", "--reason", "r"}).code(), "not_found");
}

}  // namespace
}  // namespace holdfast
