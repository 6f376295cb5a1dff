// SIGKILL of the server, of a receiver's process and of a worker at each named step of a command's way to its effect.
// After a restart the same command is sent again: its effect happened once or not at all, or it is listed as unknown
// until somebody tells; no older generation ever gets in; and no kill closes a receiver (field reports B56, B58, B127).
#include <gtest/gtest.h>

#include "support/row_workbench.h"

namespace holdfast {
namespace {

using support::Answer;
using support::Environment;
using support::Lease;
using support::RowWorkbench;
using support::Words;
using support::Workbench;
using support::operator+;

Environment killed_at(const std::string& point) { return {{"HOLDFAST_FAULT", point + ":kill"}}; }

using KindAndPoint = std::tuple<const char*, const char*>;
constexpr const char* kResourceOfPrograms = "session://deploy";

class KilledWhileDelivering : public testing::TestWithParam<KindAndPoint> {};

TEST_P(KilledWhileDelivering, TheEffectIsThereOnceOrNotAndTheSameCommandTells) {
  const auto& [kind, point] = GetParam();
  RowWorkbench ground(kind);
  ground.bench.serve();
  ASSERT_TRUE(ground.add().ok());
  const Lease lease = ground.acquire("ada");
  const std::string command = ground.issue(lease, "op-1", "1");
  const std::string held_back = ground.issue(lease, "op-2", "2");
  ground.restart(killed_at(point));
  const Answer lost = ground.deliver(command);
  ASSERT_EQ(ground.bench.wait_for_server(), -9) << "the point was not reached: " << lost.text;
  EXPECT_FALSE(lost.ok());

  ground.restart();
  const std::string version = ground.rows.version();
  EXPECT_TRUE(version == "1" || version == "2") << version;
  EXPECT_EQ(ground.rows.applied(), version == "2" ? "1" : "0") << "effect and operation are one";
  const Answer again = ground.deliver(command);
  ASSERT_TRUE(again.ok()) << again.text;
  EXPECT_EQ(again.at("repeated"), version == "2");
  EXPECT_EQ(ground.rows.version(), "2");
  EXPECT_EQ(ground.rows.applied(), "1");
  EXPECT_TRUE(ground.is_open());

  ASSERT_TRUE(ground.bench.release(lease).ok());
  const Lease next = ground.acquire("bob");
  EXPECT_EQ(ground.deliver(held_back).code(), "stale_lease_generation");
  EXPECT_EQ(ground.rows.version(), "2");
  EXPECT_TRUE(ground.deliver(ground.issue(next, "op-3", "2")).ok());
  EXPECT_TRUE(ground.is_open());
  EXPECT_TRUE(ground.bench.evidence_verifies());
}

INSTANTIATE_TEST_SUITE_P(EveryStep, KilledWhileDelivering,
                         testing::Combine(testing::Values("sqlite", "postgres"),
                                          testing::Values("deliver_before_receiver", "vault_before_link",
                                                          "vault_after_link", "deliver_after_receiver",
                                                          "store_after_events", "deliver_after_event")));

// The receiver's process dies around its commit: nobody was told, and the server says so (field report B58).
class ReceiverKilledAround : public testing::TestWithParam<KindAndPoint> {};

TEST_P(ReceiverKilledAround, ItsCommitIsListedAsUnknownUntilTheSameCommandTells) {
  const auto& [kind, point] = GetParam();
  RowWorkbench ground(kind);
  ground.bench.serve();
  ASSERT_TRUE(ground.add().ok());
  const Lease lease = ground.acquire("ada");
  const std::string command = ground.issue(lease, "op-1", "1");
  ASSERT_TRUE(ground.bench.run({"handoff", "open", ground.rows.resource(), "--reason", "r"}).ok());
  ground.restart(killed_at(point));
  EXPECT_EQ(ground.deliver(command).code(), "receiver_outcome_unknown");
  ground.restart();
  const std::string status = ground.bench.run({"handoff", "status", ground.rows.resource()}).text;
  EXPECT_NE(status.find("\"effect_unknown\""), std::string::npos) << status;

  // Whether it was applied or not, and though the tenancy has ended meanwhile: asked again, it is known.
  const std::string version = ground.rows.version();
  ASSERT_TRUE(ground.bench.release(lease).ok());
  const Lease next = ground.acquire("bob");
  const Answer again = ground.deliver(command);
  EXPECT_EQ(again.code(), version == "2" ? "" : "stale_lease_generation") << again.text;
  EXPECT_EQ(ground.rows.version(), version);
  const Answer closed = ground.bench.run({"handoff", "close", ground.rows.resource(), "--reason", "r"});
  EXPECT_TRUE(closed.ok()) << closed.text;
  EXPECT_TRUE(ground.is_open());
  EXPECT_TRUE(ground.bench.evidence_verifies());
}

INSTANTIATE_TEST_SUITE_P(EveryStep, ReceiverKilledAround,
                         testing::Combine(testing::Values("sqlite", "postgres"),
                                          testing::Values("receiver_before_commit", "receiver_after_commit")));

class KilledAtATakeover : public testing::TestWithParam<KindAndPoint> {};

TEST_P(KilledAtATakeover, TheOldGenerationStaysOutAndTheReceiverOpens) {
  const auto& [kind, point] = GetParam();
  RowWorkbench ground(kind);
  ground.bench.serve();
  ASSERT_TRUE(ground.add().ok());
  const Lease old = ground.acquire("ada");
  const std::string held_back = ground.issue(old, "op-1", "1");
  ASSERT_TRUE(ground.bench.release(old).ok());
  ground.restart(killed_at(point));
  const Words taking = {"acquire", ground.rows.resource(), "--owner", "bob", "--task", "t", "--ttl", "1s"};
  EXPECT_FALSE(ground.bench.run(taking).ok());
  ASSERT_EQ(ground.bench.wait_for_server(), -9);

  ground.restart();
  EXPECT_EQ(ground.deliver(held_back).code(), "stale_lease_generation");
  EXPECT_EQ(ground.rows.version(), "1");
  EXPECT_TRUE(ground.is_open());
  // Nobody was told the keys of the tenancy that the kill left, and no guard proves its holder dead: it runs out.
  const Answer again =
      ground.bench.run({"acquire", ground.rows.resource(), "--owner", "eve", "--task", "t", "--wait", "20"});
  ASSERT_TRUE(again.ok()) << again.text;
  EXPECT_EQ(again.at("receivers").at(0).at("state"), "ready") << again.text;
  const Lease lease{ground.rows.resource(), again.at("leases").at(0)};
  EXPECT_EQ(ground.rows.mark(), std::to_string(lease.generation()));
  EXPECT_TRUE(ground.deliver(ground.issue(lease, "op-2", "1")).ok());
  EXPECT_EQ(ground.deliver(held_back).code(), "stale_lease_generation");
  EXPECT_TRUE(ground.is_open());
  EXPECT_TRUE(ground.bench.evidence_verifies());
}

// The first lease of all makes the mark.
TEST_P(KilledAtATakeover, OfAResourceThatNobodyHeldBeforeItIsMadeTheNextTime) {
  const auto& [kind, point] = GetParam();
  RowWorkbench ground(kind);
  ground.bench.serve();
  ASSERT_TRUE(ground.add().ok());
  ground.restart(killed_at(point));
  const Words taking = {"acquire", ground.rows.resource(), "--owner", "ada", "--task", "task-1"};
  EXPECT_FALSE(ground.bench.run(taking + Words{"--ttl", "1s"}).ok());
  ASSERT_EQ(ground.bench.wait_for_server(), -9);
  ground.restart();
  const Lease lease = ground.acquire("bob", {"--wait", "20"});
  EXPECT_TRUE(ground.deliver(ground.issue(lease, "op-1", "1")).ok());
  EXPECT_EQ(ground.rows.version(), "2");
  EXPECT_TRUE(ground.is_open());
}

INSTANTIATE_TEST_SUITE_P(EveryStep, KilledAtATakeover,
                         testing::Combine(testing::Values("sqlite", "postgres"),
                                          testing::Values("acquire_after_commit", "takeover_before_receiver_mark",
                                                          "takeover_after_receiver_mark")));

// A program: what was started and has not come back is never run a second time by itself.
class KilledAroundAProgram : public testing::Test {
 protected:
  KilledAroundAProgram() {
    bench_.serve();
    EXPECT_TRUE(bench_.run({"receiver", "add", "deploy", "--kind", "command", "--resource", kResourceOfPrograms}).ok());
    lease_ = bench_.acquire(kResourceOfPrograms, "ada");
    const Words words = Words{"issue", kResourceOfPrograms} + lease_.keys();
    command_ = bench_.run(words + Words{"--from", "-", "--operation-id", "job-1"}, "go").text;
    EXPECT_TRUE(bench_.run({"handoff", "open", kResourceOfPrograms, "--reason", "r"}).ok());
  }
  static Words worker(const std::string& more = "") { return {"receive", "--", "sh", "-c", "echo ran >> ran" + more}; }
  Answer work(const Environment& environment = {}) const { return bench_.run(worker(), command_, environment); }
  std::size_t times_run() const { return bench_.get("ran").size() / 4; }
  bool is_listed() const {
    const std::string status = bench_.run({"handoff", "status", kResourceOfPrograms}).text;
    return status.find("program job-1 was started") != std::string::npos;
  }
  void restart(const Environment& environment = {}) {
    bench_.kill_server();
    bench_.serve(environment);
  }
  // Listed, and refused for as long as nobody has said what became of it; then `said` closes it.
  void is_unknown_until(const std::string& said) {
    const std::size_t before = times_run();
    EXPECT_TRUE(is_listed());
    EXPECT_EQ(work().code(), "receiver_outcome_unknown");
    EXPECT_EQ(times_run(), before);
    const Answer settled =
        bench_.run({"receiver", "settle", "deploy", "--operation", "job-1", said, "--reason", "looked"});
    EXPECT_TRUE(settled.ok()) << settled.text;
    EXPECT_FALSE(is_listed());
  }
  Workbench bench_;
  Lease lease_;
  std::string command_;
};

TEST_F(KilledAroundAProgram, TheServerBeforeItsReceiverLeavesACommandThatRunsOnceLater) {
  restart(killed_at("deliver_before_receiver"));
  EXPECT_FALSE(work().ok());
  EXPECT_EQ(bench_.wait_for_server(), -9);
  restart();
  EXPECT_EQ(times_run(), 0U);
  EXPECT_TRUE(work().ok());
  EXPECT_EQ(times_run(), 1U);
  const Answer again = work();
  EXPECT_TRUE(again.ok()) << again.text;
  EXPECT_EQ(again.at("repeated"), true);
  EXPECT_EQ(times_run(), 1U);
}

TEST_F(KilledAroundAProgram, TheServerAfterItsReceiverLeavesAnUnknownOneThatIsNotRunByItself) {
  restart(killed_at("deliver_after_receiver"));
  EXPECT_FALSE(work().ok());
  EXPECT_EQ(bench_.wait_for_server(), -9);
  restart();
  EXPECT_EQ(work().code(), "receiver_outcome_unknown");
  is_unknown_until("--not-run");
  EXPECT_TRUE(work().ok());
  EXPECT_EQ(times_run(), 1U);
}

TEST_F(KilledAroundAProgram, TheServerAfterItsEndLeavesAnEndThatTheSameCommandTells) {
  restart(killed_at("delivery_end_after_receiver"));
  EXPECT_FALSE(work().ok());
  EXPECT_EQ(bench_.wait_for_server(), -9);
  restart();
  const Answer again = work();
  ASSERT_TRUE(again.ok()) << again.text;
  EXPECT_EQ(again.at("outcome").at("state"), "finished");
  EXPECT_EQ(times_run(), 1U);
  EXPECT_FALSE(is_listed());
}

TEST_F(KilledAroundAProgram, TheWorkerBeforeAndAfterLeavesAnUnknownOne) {
  EXPECT_EQ(work(killed_at("receive_before_program")).status, -9);
  EXPECT_EQ(times_run(), 0U);
  is_unknown_until("--not-run");
  EXPECT_EQ(work(killed_at("receive_after_program")).status, -9);
  EXPECT_EQ(times_run(), 1U);
  is_unknown_until("--ran");
  const Answer again = work();
  EXPECT_TRUE(again.ok()) << again.text;
  EXPECT_EQ(again.at("repeated"), true);
  EXPECT_EQ(times_run(), 1U);
}

TEST_F(KilledAroundAProgram, TheServerAfterAPersonsWordKeepsTheWord) {
  EXPECT_EQ(work(killed_at("receive_after_program")).status, -9);
  restart(killed_at("settle_after_receiver"));
  const Words settle = {"receiver", "settle", "deploy", "--operation", "job-1", "--ran", "--reason", "looked"};
  EXPECT_FALSE(bench_.run(settle).ok());
  EXPECT_EQ(bench_.wait_for_server(), -9);
  restart();
  EXPECT_TRUE(bench_.run(settle).ok()) << "the same word, said again";
  EXPECT_EQ(work().at("repeated"), true);
  EXPECT_EQ(times_run(), 1U);
  EXPECT_FALSE(is_listed());
}

TEST_F(KilledAroundAProgram, TheServerWhileItRunsTakesItsEndAfterwards) {
  const auto working = bench_.start(worker("; while [ ! -e go ]; do sleep 0.02; done"));
  working->write(command_);
  working->close_input();
  ASSERT_TRUE(support::eventually([&] { return times_run() == 1; }));
  restart();
  bench_.put("go", "");
  const Answer ended = Workbench::answer_of(*working);
  EXPECT_TRUE(ended.ok()) << ended.text;
  EXPECT_EQ(ended.at("outcome").at("state"), "finished");
  EXPECT_FALSE(is_listed());
}

TEST_F(KilledAroundAProgram, TheWorkerWhileItRunsLeavesAnUnknownOneWhoseOldGenerationStaysOut) {
  const auto working = bench_.start(worker("; while [ ! -e go ]; do sleep 0.02; done"));
  working->write(command_);
  ASSERT_TRUE(support::eventually([&] { return times_run() == 1; }));
  working->kill();
  working->wait();
  bench_.put("go", "");
  is_unknown_until("--ran");
  ASSERT_TRUE(bench_.release(lease_).ok());
  bench_.acquire(kResourceOfPrograms, "bob");
  EXPECT_TRUE(work().at("outcome").contains("superseded_by")) << "told as it was, and that it is over";
  EXPECT_EQ(times_run(), 1U);
  const Answer closed = bench_.run({"handoff", "close", kResourceOfPrograms, "--reason", "r"});
  EXPECT_TRUE(closed.ok()) << closed.text;
}

}  // namespace
}  // namespace holdfast
