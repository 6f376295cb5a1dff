// The handoff of work: open while anything old can still alter the outcome, each such thing named with what closes it,
// and closed by exactly that (second seed, contract 3; CONTRACT section 5).
#include <gtest/gtest.h>
#include <libpq-fe.h>

#include <filesystem>

#include "support/handoff_bench.h"
#include "support/private_postgres.h"

namespace holdfast {
namespace {

using support::Answer;
using support::Child;
using support::details_of;
using support::eventually;
using support::kDeploy;
using support::kRows;
using support::Lease;
using support::RowBench;
using support::Words;
using support::operator+;

class WorkHandoff : public support::HandoffBench {};

TEST_F(WorkHandoff, IsOpenUntilTheOldOwnerHasEndedAndTheNewOneHasAcquired) {
  const Lease old = bench_.acquire(kRows);
  const Answer opened = open(kRows, {"--reconciliation-owner", "ada", "--review-trigger", "the first alarm"});
  ASSERT_TRUE(opened.ok()) << opened.text;
  EXPECT_EQ(opened.at("handoff")["from"]["generation"], old.record["generation"]);
  EXPECT_EQ(opened.at("handoff")["reconciliation_owner"], "ada");
  EXPECT_EQ(opened.at("handoff")["review_trigger"], "the first alarm");
  EXPECT_EQ(open(kRows).code(), "target_exists");
  stays_open(kRows, {"lease_held", "no_new_owner", "receiver_unfenced"});
  bench_.release(old);
  stays_open(kRows, {"no_new_owner", "receiver_unfenced"});
  const Lease bob = bench_.acquire(kRows, "bob");
  const Json before = status(kRows);
  EXPECT_TRUE(before["in_the_way"].empty()) << before;
  EXPECT_EQ(before["old_owner_ended"]["ended_by"], "release");
  EXPECT_EQ(before["new_owner"]["generation"], bob.record["generation"]);
  EXPECT_EQ(before["new_owner"]["ready"], true);
  EXPECT_TRUE(before["first_accepted_generation"].is_null());
  bench_.receive(bench_.issue(bob, RowBench::change("theirs", "1")));
  EXPECT_EQ(status(kRows)["first_accepted_generation"], bob.record["generation"]);
  closes(kRows);
  const Json closed = bench_.events("handoff_closed").at(0);
  EXPECT_EQ(closed["facts"]["to"]["owner"], "bob");
  EXPECT_EQ(closed["facts"]["first_accepted_generation"], bob.record["generation"]);
  EXPECT_EQ(closed["facts"]["reason"], "all answered");
  EXPECT_TRUE(bench_.evidence_verifies());
}

TEST_F(WorkHandoff, OfWhatNobodyEverHeldOrOpenedIsRefused) {
  EXPECT_EQ(open("session://never").code(), "not_found");
  EXPECT_EQ(close("session://never").code(), "not_found");
  EXPECT_EQ(bench_.run({"handoff", "status", "session://never"}).code(), "not_found");
  EXPECT_TRUE(bench_.run({"handoff", "status"}).at("handoffs").empty());
  EXPECT_EQ(bench_.run({"handoff", "open", kRows}).code(), "usage");
  EXPECT_EQ(bench_.run({"handoff", "open", "../x", "--reason", "r"}).code(), "scope_parent_traversal");
}

TEST_F(WorkHandoff, CanBeOpenedAfterTheEndAndAgainAfterItWasClosed) {
  const Lease old = bench_.acquire(kRows);
  bench_.release(old);
  ASSERT_TRUE(open(kRows).ok());
  const Lease bob = bench_.acquire(kRows, "bob");
  closes(kRows);
  EXPECT_EQ(close(kRows).code(), "not_found");
  const Json shown = status(kRows);
  EXPECT_EQ(shown["state"], "closed");
  EXPECT_FALSE(shown.contains("in_the_way"));
  ASSERT_TRUE(open(kRows).ok());
  EXPECT_EQ(status(kRows)["from"]["owner"], "bob");
  EXPECT_TRUE(status(kRows)["accepted"].empty());
  stays_open(kRows, {"lease_held", "no_new_owner", "receiver_unfenced"});
  bench_.release(bob);
  bench_.acquire(kRows, "carol");
  closes(kRows);
  EXPECT_EQ(bench_.run({"handoff", "status"}).at("handoffs").size(), 1U);
}

TEST_F(WorkHandoff, HasTheOldOwnersProgramInTheWayUntilItEndsAlsoAfterItsTenancy) {
  const Lease old = bench_.acquire(kRows);
  const auto program = running(old, "op-long");
  ASSERT_TRUE(open(kRows).ok());
  taken_over(old, kRows);
  stays_open(kRows, {"command_unclassified"});
  EXPECT_EQ(status(kRows)["in_the_way"][0]["id"], "op-long");
  EXPECT_EQ(status(kRows)["inventory"]["commands"][0]["state"], "running");
  program->close_input();
  EXPECT_EQ(program->wait(), 75) << "its tenancy was gone";
  closes(kRows);
}

TEST_F(WorkHandoff, TakesAPersonsWordForAProgramThatNeverReports) {
  const Lease old = bench_.acquire(kRows);
  const auto program = running(old, "op-lost");
  program->kill();
  program->wait();
  ASSERT_TRUE(open(kRows).ok());
  taken_over(old, kRows);
  stays_open(kRows, {"command_unclassified"});
  EXPECT_EQ(close(kRows, {"--accept", "op-other"}).code(), "transition_open");
  stays_open(kRows, {"command_unclassified"});
  const Answer closed = close(kRows, {"--accept", "op-lost"});
  ASSERT_TRUE(closed.ok()) << closed.text;
  EXPECT_EQ(closed.at("handoff")["accepted"], (Json{{"op-lost", "all answered"}}));
  EXPECT_EQ(closed.at("handoff")["inventory"]["commands"][0]["classified"], "accepted by a person");
  EXPECT_EQ(bench_.events("handoff_closed").at(0)["facts"]["accepted"]["op-lost"], "all answered");
}

TEST_F(WorkHandoff, HasAWorkersProgramInTheWayUntilItsEnd) {
  const Lease old = bench_.acquire(kDeploy);
  const std::string line = bench_.issue(old, {"--from", "-", "--operation-id", "job-1"}, "payload");
  const auto worker =
      bench_.start({"receive", "--", "sh", "-c", "touch began; while [ ! -e go ]; do sleep 0.02; done"});
  worker->write(line);
  worker->close_input();
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(bench_.at("began")); }));
  ASSERT_TRUE(open(kDeploy).ok());
  taken_over(old, kDeploy);
  stays_open(kDeploy, {"command_unclassified"});
  // A second delivery is no end of the first.
  EXPECT_EQ(bench_.receive(line, {"true"}).code(), "receiver_outcome_unknown");
  stays_open(kDeploy, {"command_unclassified"});
  bench_.put("go", "");
  const auto received = RowBench::read(support::Workbench::answer_of(*worker));
  ASSERT_EQ(received.lines.size(), 1U);
  EXPECT_EQ(received.lines[0]["current"], false);
  closes(kDeploy);
}

TEST_F(WorkHandoff, HasAWorkersProgramInTheWayUntilAPersonSettlesIt) {
  const Lease old = bench_.acquire(kDeploy);
  const std::string line = bench_.issue(old, {"--from", "-", "--operation-id", "job-1"}, "payload");
  const auto worker =
      bench_.start({"receive", "--", "sh", "-c", "touch began; while [ -e began ]; do sleep 0.02; done"});
  worker->write(line);
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(bench_.at("began")); }));
  worker->kill();
  worker->wait();
  ASSERT_TRUE(open(kDeploy).ok());
  taken_over(old, kDeploy);
  stays_open(kDeploy, {"command_unclassified"});
  ASSERT_TRUE(bench_.run({"receiver", "settle", "deploy", "--operation", "job-1", "--ran", "--reason", "seen"}).ok());
  closes(kDeploy);
}

TEST_F(WorkHandoff, FencesWhatIsOnItsWayOnceTheReceiverHasTheNewMark) {
  const Lease old = bench_.acquire(kRows);
  const std::string line = bench_.issue(old, RowBench::change("late", "1") + Words{"--operation-id", "op-late"});
  ASSERT_TRUE(open(kRows).ok());
  bench_.release(old);
  stays_open(kRows, {"no_new_owner", "receiver_unfenced", "command_unclassified"});
  EXPECT_EQ(status(kRows)["inventory"]["commands"][0]["state"], "on its way");
  bench_.acquire(kRows, "bob");
  const Json fenced = status(kRows);
  EXPECT_TRUE(fenced["in_the_way"].empty()) << fenced;
  EXPECT_NE(text_member(fenced["inventory"]["commands"][0], "classified").find("fenced"), std::string::npos);
  const auto late = bench_.receive(line);
  EXPECT_EQ(late.code(), "stale_lease_generation");
  EXPECT_EQ(bench_.row(), "new 1");
  EXPECT_EQ(status(kRows)["old_owner_ended"]["refused"], late.lines.at(0)["error"]["evidence"]);
  closes(kRows);
}

// A copy whose bytes are not the command's is refused, and says nothing of the one that is still on its way.
TEST_F(WorkHandoff, ForgetsNoCommandBecauseABrokenCopyOfItWasRefused) {
  const Lease old = bench_.acquire(kRows);
  const std::string line = bench_.issue(old, RowBench::change("late", "1") + Words{"--operation-id", "op-late"});
  Json copy = *parse_json(line);
  copy["payload_base64"] = "e30=";
  EXPECT_EQ(bench_.receive(copy.dump() + "\n").code(), "content_corrupted_in_transit");
  copy = *parse_json(line);
  copy["command"]["issuer"]["workspace_id"] = "ws-other";
  EXPECT_EQ(bench_.receive(copy.dump() + "\n").code(), "generation_incomparable");
  ASSERT_TRUE(open(kRows).ok());
  bench_.release(old);
  stays_open(kRows, {"no_new_owner", "receiver_unfenced", "command_unclassified"});
}

TEST_F(WorkHandoff, CountsNothingAsOutThatNeverBegan) {
  const Lease old = bench_.acquire(kRows);
  EXPECT_EQ(bench_.run(Words{"exec", kRows} + old.keys() + Words{"--", "/no/such/program"}).code(),
            "command_not_started");
  ASSERT_TRUE(open(kRows).ok());
  taken_over(old, kRows);
  EXPECT_TRUE(close(kRows).ok());
}

TEST_F(WorkHandoff, TakesNoWordForACommandThatIsNotOut) {
  const Lease old = bench_.acquire(kRows);
  ASSERT_TRUE(open(kRows).ok());
  taken_over(old, kRows);
  EXPECT_EQ(close(kRows, {"--accept", "op-none"}).code(), "not_found");
  EXPECT_TRUE(close(kRows).ok());
}

TEST_F(WorkHandoff, StaysAsItWasClosed) {
  const Lease old = bench_.acquire(kRows);
  ASSERT_TRUE(open(kRows).ok());
  taken_over(old, kRows);
  const Json closed = close(kRows).at("handoff");
  EXPECT_TRUE(bench_.run({"acquire", kRows, "--owner", "bob", "--task", "task-1", "--fresh"}).ok());
  const Json shown = bench_.run({"handoff", "status", kRows}).at("handoffs")[0];
  EXPECT_EQ(shown["new_owner"], closed["new_owner"]);
}

TEST_F(WorkHandoff, CountsNothingAsOutThatCameBackBefore) {
  const Lease old = bench_.acquire(kRows);
  bench_.receive(bench_.issue(old, RowBench::change("done", "1")) +
                 bench_.issue(old, RowBench::change("refused", "1")));
  ASSERT_EQ(bench_.row(), "done 2");
  ASSERT_TRUE(open(kRows).ok());
  taken_over(old, kRows);
  EXPECT_TRUE(status(kRows)["inventory"]["commands"].empty());
  closes(kRows);
}

TEST_F(WorkHandoff, IsHeldOpenByAReceiverThatCannotBeReachedUntilItIs) {
  const Lease old = bench_.acquire(kRows);
  const std::string line = bench_.issue(old, RowBench::change("late", "1") + Words{"--operation-id", "op-late"});
  ASSERT_TRUE(open(kRows).ok());
  bench_.release(old);
  std::filesystem::rename(bench_.at("app.db"), bench_.at("away.db"));
  const Answer taken = bench_.run({"acquire", kRows, "--owner", "bob", "--task", "task-1"});
  ASSERT_TRUE(taken.ok()) << taken.text;
  stays_open(kRows, {"receiver_unfenced", "command_unclassified"});
  EXPECT_EQ(status(kRows)["new_owner"]["ready"], false);
  EXPECT_EQ(close(kRows, {"--accept", "accounts"}).code(), "transition_open") << "no word makes up for a mark";
  std::filesystem::rename(bench_.at("away.db"), bench_.at("app.db"));
  // Reached again, and still with the old mark: what is late would find it. The next command raises it first.
  stays_open(kRows, {"receiver_unfenced", "command_unclassified"});
  EXPECT_EQ(bench_.receive(line).code(), "stale_lease_generation");
  EXPECT_EQ(bench_.row(), "new 1");
  closes(kRows);
}

TEST_F(WorkHandoff, HasAnActInTheWayWhileItCanBeCommitted) {
  const Lease old = bench_.acquire(kRows);
  ASSERT_TRUE(bench_.prepare_row(old, "op-act", "paid", "1").ok());
  ASSERT_TRUE(bench_.approve("op-act").ok());
  ASSERT_TRUE(open(kRows).ok());
  stays_open(kRows, {"lease_held", "no_new_owner", "receiver_unfenced", "act_unclassified"});
  taken_over(old, kRows);
  EXPECT_EQ(text_member(status(kRows)["inventory"]["acts"][0], "classified"), "fenced: its generation has ended");
  closes(kRows);
  EXPECT_EQ(bench_.commit("op-act", old).code(), "stale_lease_generation");
}

TEST_F(WorkHandoff, HasAnActWhoseCommitWasCutInTheWayUntilItsReceiverTells) {
  for (const char* cut : {"act_before_effect", "act_after_effect"}) {
    const Lease old = bench_.acquire(kRows);
    const std::string id = std::string("op-") + cut;
    const bool applies = std::string(cut) == "act_after_effect";
    ASSERT_TRUE(bench_.prepare_row(old, id, "paid", "1").ok());
    ASSERT_TRUE(bench_.approve(id).ok());
    bench_.kill_server();
    bench_.serve({{"HOLDFAST_FAULT", std::string(cut) + ":kill"}});
    EXPECT_NE(bench_.commit(id, old).status, 0);
    bench_.wait_for_server();
    bench_.serve();
    ASSERT_TRUE(open(kRows).ok());
    const Lease bob = taken_over(old, kRows);
    stays_open(kRows, {"act_unclassified"});
    EXPECT_EQ(bench_.commit(id, bob).code(), applies ? "" : "stale_lease_generation");
    EXPECT_EQ(bench_.row(), applies ? "paid 2" : "new 1");
    closes(kRows);
    bench_.release(bob);
  }
}

// A refusal of the receiver, too, ends what was begun.
TEST_F(WorkHandoff, IsNotHeldOpenByACommitThatWasRefused) {
  const Lease old = bench_.acquire(kRows);
  ASSERT_TRUE(bench_.prepare_row(old, "op-act", "paid", "5").ok());
  ASSERT_TRUE(bench_.approve("op-act").ok());
  EXPECT_EQ(bench_.commit("op-act", old).code(), "record_version_changed");
  ASSERT_TRUE(open(kRows).ok());
  taken_over(old, kRows);
  closes(kRows);
}

TEST_F(WorkHandoff, IsHeldOpenByAPublishThatWaitsForAPerson) {
  bench_.put("a.txt", "before");
  const Lease old = bench_.acquire("a.txt");
  bench_.put("stranger", "foreign");
  std::filesystem::rename(bench_.at("stranger"), bench_.at("a.txt"));
  std::string id;
  ASSERT_TRUE(eventually([&] {
    const Json open = bench_.run({"reconcile", "list"}).at("reconcile");
    if (!open.empty()) id = open[0]["id"].get<std::string>();
    return !id.empty();
  }));
  ASSERT_TRUE(open("a.txt", {"--reconciliation-owner", "ada"}).ok());
  stays_open("a.txt", {"lease_held", "no_new_owner", "effect_unknown"});
  const Json unknown = status("a.txt")["ambiguous_effects"][0];
  EXPECT_EQ(unknown["id"], id);
  EXPECT_EQ(unknown["owner"], "ada");
  EXPECT_FALSE(text_member(unknown, "review_trigger").empty());
  EXPECT_EQ(kinds(details_of(close("a.txt", {"--accept", id}))["in_the_way"]),
            (std::vector<std::string>{"lease_held", "no_new_owner", "effect_unknown"}))
      << "a person's word closes no unknown effect";
  ASSERT_TRUE(bench_.run({"reconcile", "resolve", id, "--accept", "--reason", "it is right"}).ok());
  const Lease bob = taken_over(old, "a.txt");
  EXPECT_TRUE(status("a.txt")["first_accepted_generation"].is_null());
  ASSERT_TRUE(bench_.write(bob, "bob's").ok());
  EXPECT_EQ(status("a.txt")["first_accepted_generation"], bob.record["generation"]);
  closes("a.txt");
}

TEST_F(WorkHandoff, IsHeldOpenByACommitThatTheReceiverNeverAnswered) {
  support::PrivatePostgres postgres;
  ASSERT_TRUE(postgres.is_ready()) << postgres.why_not();
  const auto sql = [&](const char* text) {
    PGconn* connection = PQconnectdb(postgres.connection().c_str());
    PGresult* result = PQexec(connection, text);
    const auto status = PQresultStatus(result);
    EXPECT_TRUE(status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) << PQerrorMessage(connection);
    PQclear(result);
    PQfinish(connection);
  };
  // At the commit the server ends the session that asked for it, once.
  sql("CREATE TABLE rows(id bigint PRIMARY KEY, state text, version bigint NOT NULL);"
      "INSERT INTO rows VALUES(7,'new',1);"
      "CREATE FUNCTION hang_up() RETURNS trigger LANGUAGE plpgsql AS "
      "$$BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END$$;"
      "CREATE CONSTRAINT TRIGGER at_commit AFTER UPDATE ON rows DEFERRABLE INITIALLY DEFERRED "
      "FOR EACH ROW EXECUTE FUNCTION hang_up()");
  const std::string scope = "session://postgres.records/rows";
  const Answer added = bench_.run({"receiver", "add", "rows", "--kind", "postgres", "--database", postgres.connection(),
                                   "--table", "rows", "--key", "id", "--version-column", "version"});
  ASSERT_TRUE(added.ok()) << added.text;
  const Lease old = bench_.acquire(scope);
  const std::string line = bench_.issue(old, RowBench::change("paid", "1") + Words{"--operation-id", "op-1"});
  EXPECT_EQ(bench_.receive(line).code(), "receiver_outcome_unknown");
  sql("DROP TRIGGER at_commit ON rows");
  ASSERT_TRUE(open(scope).ok());
  taken_over(old, scope);
  const Json shown = status(scope);
  EXPECT_EQ(shown["ambiguous_effects"][0]["id"], "op-1") << shown;
  EXPECT_EQ(close(scope, {"--accept", "op-1"}).code(), "transition_open");
  // The same command again: it was not applied, and is now too late. That is an answer.
  EXPECT_EQ(bench_.receive(line).code(), "stale_lease_generation");
  closes(scope);
}

}  // namespace
}  // namespace holdfast
