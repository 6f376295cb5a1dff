// SIGKILL of the server at each step of an act, of a handoff, and of what a person decides about a receiver; then 200
// kills at random steps of one command after the other (field report B127; HOLDFAST_KILLS=1000 makes it the report's
// thousand, in some minutes).
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <random>

#include "base/base64.h"
#include "os/workspace_folder.h"
#include "server/client.h"
#include "support/row_workbench.h"

namespace holdfast {
namespace {

using support::Answer;
using support::Environment;
using support::Lease;
using support::RowDatabase;
using support::RowWorkbench;
using support::Words;
using support::Workbench;
using support::operator+;

Environment killed_at(const std::string& point) { return {{"HOLDFAST_FAULT", point + ":kill"}}; }

class KilledWhileCommittingARow : public testing::TestWithParam<const char*> {
 protected:
  KilledWhileCommittingARow() : ground_("sqlite") {
    ground_.bench.serve();
    EXPECT_TRUE(ground_.add().ok());
    lease_ = ground_.acquire("ada");
    const Words row = {"--key", "id=integer:7", "--set", "state=text:paid", "--precondition", "1"};
    const Words prepare = Words{"act", "prepare", ground_.rows.resource()} + lease_.keys() + row;
    EXPECT_TRUE(ground_.bench.run(prepare + Words{"--operation-id", "op-1"}).ok());
    EXPECT_TRUE(ground_.bench.run({"act", "approve", "op-1", "--by", "bob"}).ok());
    EXPECT_TRUE(ground_.bench.run({"handoff", "open", ground_.rows.resource(), "--reason", "r"}).ok());
    ground_.restart(killed_at(GetParam()));
    const Answer lost = commit();
    EXPECT_EQ(ground_.bench.wait_for_server(), -9) << "the point was not reached: " << lost.text;
    EXPECT_FALSE(lost.ok());
    ground_.restart();
    version_ = ground_.rows.version();
    EXPECT_TRUE(version_ == "1" || version_ == "2") << version_;
  }
  Answer commit() const { return ground_.bench.run(Words{"act", "commit", "op-1"} + lease_.keys()); }
  RowWorkbench ground_;
  Lease lease_;
  std::string version_;
};

TEST_P(KilledWhileCommittingARow, CommitsItOnceHoweverOftenItIsAskedFor) {
  EXPECT_TRUE(commit().ok());
  EXPECT_EQ(ground_.rows.version(), "2");
  EXPECT_EQ(commit().code(), "act_consumed");
  EXPECT_EQ(ground_.rows.version(), "2");
  EXPECT_EQ(ground_.rows.applied(), "1");
  EXPECT_TRUE(ground_.is_open());
  EXPECT_TRUE(ground_.bench.evidence_verifies());
}

TEST_P(KilledWhileCommittingARow, IsKnownAgainAfterItsTenancyAndKeepsNoHandoffOpen) {
  ASSERT_TRUE(ground_.bench.release(lease_).ok());
  ground_.acquire("bob");
  const Words closing = {"handoff", "close", ground_.rows.resource(), "--reason", "r"};
  EXPECT_EQ(ground_.bench.run(closing).code(), "transition_open") << "what became of the commit is not recorded";
  const Answer again = commit();
  EXPECT_EQ(again.code(), version_ == "2" ? "" : "stale_lease_generation") << again.text;
  EXPECT_EQ(ground_.rows.version(), version_);
  const Answer closed = ground_.bench.run(closing);
  EXPECT_TRUE(closed.ok()) << closed.text;
}

INSTANTIATE_TEST_SUITE_P(EveryStep, KilledWhileCommittingARow,
                         testing::Values("act_before_effect", "deliver_before_receiver", "deliver_after_receiver",
                                         "deliver_after_event", "act_after_effect", "act_after_event"));

class KilledWhileCommittingAFile : public testing::TestWithParam<const char*> {};

TEST_P(KilledWhileCommittingAFile, TheFileIsOldOrNewAndTheActIsToldApart) {
  Workbench bench;
  bench.put("a.txt", "old");
  bench.serve({{"HOLDFAST_FAULT", std::string(GetParam()) + ":kill"}});
  const Lease lease = bench.acquire("a.txt", "ada");
  const Words prepare = Words{"act", "prepare", "a.txt"} + lease.keys() + Words{"--from", "-"};
  ASSERT_TRUE(bench.run(prepare + Words{"--operation-id", "op-1"}, "new").ok());
  ASSERT_TRUE(bench.run({"act", "approve", "op-1"}).ok());
  const Words commit = Words{"act", "commit", "op-1"};
  EXPECT_FALSE(bench.run(commit + lease.keys()).ok());
  ASSERT_EQ(bench.wait_for_server(), -9) << "the point was not reached";
  const std::string left = bench.get("a.txt");
  EXPECT_TRUE(left == "old" || left == "new") << left;

  bench.kill_server();
  bench.serve();
  EXPECT_EQ(bench.get("a.txt"), left);
  // The tenancy ended with its server: what was published is told, what was not is out of date for ever.
  const Lease next = bench.acquire("a.txt", "ada");
  const Answer again = bench.run(commit + lease.keys());
  EXPECT_EQ(again.code(), left == "new" ? "" : "stale_lease_generation") << again.text;
  EXPECT_EQ(bench.get("a.txt"), left);
  EXPECT_EQ(bench.run(commit + next.keys()).code(), left == "new" ? "act_consumed" : "stale_lease_generation");
  EXPECT_EQ(bench.get("a.txt"), left);
  EXPECT_EQ(bench.listing(), Words{"a.txt"});
  EXPECT_TRUE(bench.evidence_verifies());
}

INSTANTIATE_TEST_SUITE_P(EveryStep, KilledWhileCommittingAFile,
                         testing::Values("act_before_effect", "write_before_staging", "write_after_intent",
                                         "write_before_exchange", "after_exchange", "write_after_verify",
                                         "write_after_commit", "deliver_after_receiver", "act_after_effect",
                                         "act_after_event"));

class KilledDecision : public testing::Test {
 protected:
  KilledDecision() : ground_("sqlite") { ground_.bench.serve(); }
  // The verb dies with its server at that point; asked again of the next server it is done.
  void is_done_the_second_time(const Words& words, const std::string& point) {
    ground_.restart(killed_at(point));
    const Answer lost = ground_.bench.run(words);
    EXPECT_EQ(ground_.bench.wait_for_server(), -9) << point << " was not reached: " << lost.text;
    ground_.restart();
    const Answer again = ground_.bench.run(words);
    EXPECT_TRUE(again.ok()) << point << ": " << again.text;
    EXPECT_TRUE(ground_.bench.evidence_verifies());
  }
  RowWorkbench ground_;
};

TEST_F(KilledDecision, AddingAReceiverIsDoneTheSecondTime) {
  is_done_the_second_time(ground_.rows.receiver_add("accounts"), "receiver_add_after_event");
  EXPECT_TRUE(ground_.deliver(ground_.issue(ground_.acquire("ada"), "op-1", "1")).ok());
}

TEST_F(KilledDecision, ReseedingOpensNothingBeforeItIsDone) {
  ASSERT_TRUE(ground_.add().ok());
  const Lease lease = ground_.acquire("ada");
  const std::string command = ground_.issue(lease, "op-1", "1");
  for (const char* point : {"reseed_after_receiver", "reseed_after_event"}) {
    ground_.rows.run("DELETE FROM holdfast_marks");
    EXPECT_EQ(ground_.deliver(command).code(), "receiver_high_water_missing");
    is_done_the_second_time({"receiver", "reseed", "accounts", "--reason", "looked at"}, point);
  }
  EXPECT_TRUE(ground_.deliver(command).ok());
  EXPECT_TRUE(ground_.is_open());
}

TEST_F(KilledDecision, OpeningAndClosingAHandoffAreDoneTheSecondTime) {
  ASSERT_TRUE(ground_.add().ok());
  const Lease lease = ground_.acquire("ada");
  is_done_the_second_time({"handoff", "open", ground_.rows.resource(), "--reason", "r"}, "handoff_open_after_event");
  ASSERT_TRUE(ground_.bench.release(lease).ok());
  ground_.acquire("bob");
  is_done_the_second_time({"handoff", "close", ground_.rows.resource(), "--reason", "r"}, "handoff_close_after_event");
  EXPECT_NE(ground_.bench.run({"handoff", "status"}).text.find("\"closed\""), std::string::npos);
}

TEST_F(KilledDecision, AClosedReceiverThatOpensItselfIsOpenTheSecondTime) {
  ASSERT_TRUE(ground_.add().ok());
  ASSERT_TRUE(ground_.bench.release(ground_.acquire("ada")).ok());
  ASSERT_EQ(std::rename(ground_.rows.where().c_str(), (ground_.rows.where() + ".away").c_str()), 0);
  const Lease lease = ground_.acquire("bob");
  ASSERT_EQ(std::rename((ground_.rows.where() + ".away").c_str(), ground_.rows.where().c_str()), 0);
  const std::string command = ground_.issue(lease, "op-1", "1");
  EXPECT_FALSE(ground_.is_open());
  ground_.restart(killed_at("opening_after_receiver_mark"));
  EXPECT_FALSE(ground_.deliver(command).ok());
  EXPECT_EQ(ground_.bench.wait_for_server(), -9);
  ground_.restart();
  EXPECT_TRUE(ground_.deliver(command).ok());
  EXPECT_TRUE(ground_.is_open());
  EXPECT_EQ(ground_.rows.version(), "2");
}

// One command after the other, over the socket; whenever the server dies, at whichever step, the next one is asked for
// the very same. Counted at the row and in the receiver's operations, never in what anybody says.
class ManyKills : public testing::Test {
 protected:
  static int kills() {
    const char* text = std::getenv("HOLDFAST_KILLS");
    return text == nullptr ? 200 : std::atoi(text);
  }
  static constexpr std::array kPoints = {"deliver_before_receiver", "deliver_after_receiver", "deliver_after_event",
                                         "store_after_events",      "vault_before_link",      "vault_after_link",
                                         "act_before_effect",       "act_after_effect",       "act_after_event"};

  ManyKills() : ground_("sqlite") {
    ground_.bench.serve();
    EXPECT_TRUE(ground_.add().ok());
    const Lease lease = ground_.acquire("ada");
    keys_ = {{"scope", lease.scope},
             {"owner", lease.record["owner"]},
             {"task", lease.record["task_id"]},
             {"generation", lease.record["generation"]},
             {"started_at", lease.record["started_at"]},
             {"cwd", "/"}};
    next_server();
  }

  void next_server() {
    connection_.reset();
    ground_.bench.kill_server();
    const std::string point = kPoints.at(plan_() % kPoints.size());
    ground_.bench.serve({{"HOLDFAST_FAULT", point + "@" + std::to_string(1 + plan_() % 3) + ":kill"}});
    auto connected = os::connect_to_server(os::open_workspace(ground_.bench.root())->squad);
    ASSERT_TRUE(connected.ok()) << connected.refusal().message();
    connection_ = std::make_unique<os::Connection>(std::move(*connected));
  }

  // Asked until somebody answers.
  Result<Json> ask(const std::string& verb, const Json& arguments) {
    for (;;) {
      auto answer = call_server(*connection_, Json{{"verb", verb}, {"arguments", arguments}}, nullptr, {});
      const bool is_dead = !answer.ok() && (answer.refusal().code() == Code::server_answer_lost ||
                                            answer.refusal().code() == Code::server_unreachable);
      if (!is_dead) return answer;
      EXPECT_EQ(ground_.bench.wait_for_server(), -9);
      ++kills_;
      expect_nothing_between();
      next_server();
    }
  }

  void expect_nothing_between() {
    const std::string version = ground_.rows.version();
    EXPECT_TRUE(version == std::to_string(version_) || version == std::to_string(version_ + 1)) << version;
    EXPECT_EQ(ground_.rows.applied(), std::to_string(std::stoi(version) - 1)) << "effect and operation are one";
  }

  Json with(Json more) const {
    Json all = keys_;
    all.update(more);
    return all;
  }

  void deliver_one(const std::string& operation, const std::string& payload) {
    const auto issued = ask("command_issue", with({{"operation_id", operation},
                                                   {"precondition", std::to_string(version_)},
                                                   {"payload_base64", base64_encode(payload)}}));
    ASSERT_TRUE(issued.ok()) << issued.refusal().message();
    const auto answer =
        ask("deliver",
            Json{{"command", (*issued)["command"]}, {"payload_base64", (*issued)["payload_base64"]}, {"cwd", "/"}});
    ASSERT_TRUE(answer.ok()) << answer.refusal().message();
    EXPECT_EQ(text_member((*answer)["outcome"], "version"), std::to_string(version_ + 1));
  }

  void commit_one(const std::string& operation, const std::string& payload) {
    const auto prepared = ask("act_prepare", with({{"operation_id", operation},
                                                   {"precondition", std::to_string(version_)},
                                                   {"payload_base64", base64_encode(payload)}}));
    ASSERT_TRUE(prepared.ok()) << prepared.refusal().message();
    const auto approved = ask("act_approve", Json{{"operation_id", operation}, {"cwd", "/"}});
    ASSERT_TRUE(approved.ok()) << approved.refusal().message();
    const auto answer = ask("act_commit", with({{"operation_id", operation}}));
    const bool was_done = !answer.ok() && answer.refusal().code() == Code::act_consumed;
    ASSERT_TRUE(answer.ok() || was_done) << answer.refusal().message();
  }

  RowWorkbench ground_;
  std::mt19937 plan_{127};
  std::unique_ptr<os::Connection> connection_;
  Json keys_;
  int version_ = 1;
  int kills_ = 0;
};

TEST_F(ManyKills, B127LeaveEveryEffectThereOnce) {
  for (int number = 0; kills_ < kills() && !HasFatalFailure(); ++number) {
    const std::string operation = "op-" + std::to_string(number);
    const std::string payload = RowDatabase::setting(operation);
    number % 2 == 0 ? deliver_one(operation, payload) : commit_one(operation, payload);
    ++version_;
    ASSERT_EQ(ground_.rows.version(), std::to_string(version_)) << operation;
    ASSERT_EQ(ground_.rows.applied(), std::to_string(version_ - 1)) << operation;
  }
  RecordProperty("commands", version_ - 1);
  ground_.restart();
  EXPECT_TRUE(ground_.is_open());
  EXPECT_TRUE(ground_.bench.evidence_verifies());
  EXPECT_TRUE(ground_.bench.generations_verify());
}

}  // namespace
}  // namespace holdfast
