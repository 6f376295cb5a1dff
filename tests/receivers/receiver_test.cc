// One suite for every receiver of rows: the table of CONTRACT section 5 in its order, and what a transaction promises.
// SQLite with a rollback journal, SQLite with a write-ahead log, PostgreSQL, PostgreSQL behind a pooling proxy.
#include "receivers/receiver.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "support/row_receiver.h"

namespace holdfast::receivers {
namespace {

using support::granted;
using support::kAccounts;
using support::refused_with;

class RowReceiver : public support::RowReceiverTest {};

TEST_P(RowReceiver, AppliesACurrentCommandAndRaisesItsMarkWithTheEffect) {
  const Delivery delivery = sent(command("op-1", 6, "1", paid()).to_json(), paid(), at_mark(5));
  EXPECT_EQ(delivery.decision.decision, "accepted") << (delivery.refusal ? delivery.refusal->message() : "");
  EXPECT_EQ(delivery.outcome.value("version", ""), "2");
  EXPECT_EQ(delivery.observed.value("as_written", false), true);
  EXPECT_EQ(state(), "paid");
  EXPECT_EQ(version(), "2");
  EXPECT_EQ(database_->ask("SELECT generation FROM holdfast_marks"), "6");
}

TEST_P(RowReceiver, RefusesWhatHasNoOrderBeforeAnythingElse) {
  Json nothing = command("op-1", 6, "1", paid()).to_json();
  for (const Json& generation : {Json(), Json("x"), Json("0"), Json(-1), Json(1.5), Json("18446744073709551616")}) {
    nothing["generation"] = generation;
    EXPECT_EQ(decided(nothing, paid(), at_mark(5)), "generation_incomparable") << generation;
  }
  Command foreign = command("op-1", 6, "1", paid());
  foreign.issuer.workspace_id = "ws-2";
  EXPECT_EQ(decided(foreign.to_json(), paid(), at_mark(5)), "generation_incomparable");
  expect_untouched();
}

// T4: a receiver that lost its mark, or was restored from an older copy, is closed whatever comes.
TEST_P(RowReceiver, StaysClosedWithoutItsMarkOrBelowTheWorkspacesCopyUntilItIsReseeded) {
  EXPECT_EQ(decided(command("op-1", 9, "1", paid()).to_json(), paid(), at_mark(6)), "receiver_high_water_missing");
  database_->run("DELETE FROM holdfast_marks");
  EXPECT_EQ(decided(command("op-1", 9, "1", paid()).to_json(), paid(), at_mark(5)), "receiver_high_water_missing");
  EXPECT_EQ(decided(command("op-1", 9, "1", paid()).to_json(), paid(),
                    [] {
                      Current only_the_mark;
                      only_the_mark.issuer = {"ws-1", "local"};
                      return only_the_mark;
                    }()),
            "receiver_high_water_missing");
  EXPECT_TRUE(
      refused_with(raise_mark(*receiver_, kAccounts, Generation{9}, Generation{5}), Code::receiver_high_water_missing));
  expect_untouched();
  ASSERT_TRUE(granted(reseed(*receiver_, kAccounts, Generation{9})));
  EXPECT_EQ(decided(command("op-1", 9, "1", paid()).to_json(), paid(), at_mark(9)), "accepted");
}

TEST_P(RowReceiver, AnswersTheSameOperationWithItsFirstOutcomeAndAnotherUnderItsIdNotAtAll) {
  const Command first = command("op-1", 5, "1", paid());
  const Delivery applied = sent(first.to_json(), paid(), at_mark(5));
  const Delivery again = sent(first.to_json(), paid(), at_mark(5));
  EXPECT_EQ(again.decision.decision, "repeated");
  EXPECT_EQ(again.outcome, applied.outcome);
  // After a takeover the first outcome still answers, and says that it was superseded.
  ASSERT_TRUE(granted(raise_mark(*receiver_, kAccounts, Generation{8}, Generation{5})));
  EXPECT_EQ(sent(first.to_json(), paid(), at_mark(8)).outcome.value("superseded_by", ""), "8");
  const std::string other = payload_of({{"id", {{"integer", "7"}}}}, {{"state", {{"text", "void"}}}});
  EXPECT_EQ(decided(command("op-1", 8, "2", other).to_json(), other, at_mark(8)), "operation_id_reused");
  EXPECT_EQ(state(), "paid");
  EXPECT_EQ(version(), "2");
}

// T1 to T3: an older generation is refused, whoever believes in it and however late it comes.
TEST_P(RowReceiver, RefusesAnOlderGenerationWithoutMutation) {
  ASSERT_TRUE(granted(raise_mark(*receiver_, kAccounts, Generation{6}, Generation{5})));
  const Delivery late = sent(command("op-1", 5, "1", paid()).to_json(), paid(), at_mark(6));
  EXPECT_EQ(late.decision.decision, "stale_lease_generation");
  EXPECT_NE(late.refusal->message().find("expected 5, current 6"), std::string::npos);
  expect_untouched();
}

TEST_P(RowReceiver, RefusesWhatIsNotTheCurrentTenancysThoughItsMarkKnowsNoBetter) {
  Current current = at_mark(5);
  current.knows_tenancy = true;
  current.generation = Generation{6};
  current.owner = "ada";
  current.task_id = "task";
  current.epoch = Epoch{1};
  EXPECT_EQ(decided(command("op-1", 5, "1", paid()).to_json(), paid(), current), "stale_lease_generation");
  EXPECT_EQ(decided(command("op-1", 7, "1", paid()).to_json(), paid(), current), "stale_lease_generation");
  Command stranger = command("op-1", 6, "1", paid());
  stranger.owner = "bob";
  EXPECT_EQ(decided(stranger.to_json(), paid(), current), "stale_lease_generation");
  current.epoch = Epoch{2};
  EXPECT_EQ(decided(command("op-1", 6, "1", paid()).to_json(), paid(), current), "control_epoch_revoked");
  current.epoch = Epoch{1};
  current.expired = true;
  EXPECT_EQ(decided(command("op-1", 6, "1", paid()).to_json(), paid(), current), "lease_expired");
  expect_untouched();
  current.expired = false;
  EXPECT_EQ(decided(command("op-1", 6, "1", paid()).to_json(), paid(), current), "accepted");
}

// T2: an authority that was cut off says that the sender is current; what the sender is told is the receiver's number.
TEST_P(RowReceiver, NamesItsMarkWhereTheAuthorityHasNotHeardOfTheTakeover) {
  ASSERT_TRUE(granted(raise_mark(*receiver_, kAccounts, Generation{6}, Generation{5})));
  Current current = at_mark(5);
  current.knows_tenancy = true;
  current.generation = Generation{5};
  current.owner = "ada";
  current.task_id = "task";
  current.epoch = Epoch{1};
  const Delivery late = sent(command("op-1", 5, "1", paid()).to_json(), paid(), current);
  EXPECT_EQ(late.decision.decision, "stale_lease_generation");
  EXPECT_NE(late.refusal->message().find("expected 5, current 6"), std::string::npos) << late.refusal->message();
  expect_untouched();
}

// B59: the row that the change was planned on, or a typed refusal with what is there.
TEST_P(RowReceiver, RefusesAnotherVersionAndAMissingRow) {
  const Delivery newer = sent(command("op-1", 5, "3", paid()).to_json(), paid(), at_mark(5));
  EXPECT_EQ(newer.decision.decision, "record_version_changed");
  EXPECT_EQ(newer.refusal->details().value("current", ""), "1");
  const std::string missing = payload_of({{"id", {{"integer", "8"}}}}, {{"state", {{"text", "paid"}}}});
  EXPECT_EQ(decided(command("op-2", 5, "1", missing).to_json(), missing, at_mark(5)), "record_missing");
  expect_untouched();
}

TEST_P(RowReceiver, ChangesRowsByEveryTypeOfKey) {
  struct Key {
    const char* type;
    std::string sql;
    Json key;
  };
  const std::string number_type = GetParam().is_postgres ? "bigint" : "INTEGER";
  const std::string blob_type = GetParam().is_postgres ? "bytea" : "BLOB";
  const std::vector<Key> keys = {{number_type.c_str(), "-9223372036854775808", {{"integer", "-9223372036854775808"}}},
                                 {"text", "'it''s; \"7\"'", {{"text", "it's; \"7\""}}},
                                 {blob_type.c_str(), database_->blob("00ff27"), {{"blob", "AP8n"}}}};
  int at = 0;
  for (const Key& key : keys) {
    const std::string table = "keyed" + std::to_string(++at);
    database_->run("DROP TABLE IF EXISTS " + table);
    database_->run("CREATE TABLE " + table + "(k " + key.type + " PRIMARY KEY, version integer NOT NULL, state text)");
    database_->run("INSERT INTO " + table + " VALUES(" + key.sql + ",4,'old')");
    receiver_ = opened(table, {"k"});
    ASSERT_TRUE(receiver_);
    const std::string change = payload_of({{"k", key.key}}, {{"state", {{"text", "paid"}}}});
    EXPECT_EQ(decided(command("op-" + table, 5, "4", change).to_json(), change, at_mark(5)), "accepted") << key.type;
    EXPECT_EQ(database_->ask("SELECT version FROM " + table), "5");
    EXPECT_EQ(database_->ask("SELECT state FROM " + table), "paid");
  }
}

TEST_P(RowReceiver, ChangesTheRowOfACompositeKeyAndNoOtherOne) {
  database_->run("INSERT INTO pairs(a,b,version,state) VALUES('x'," + database_->blob("ff00") + ",4,'old'),('x'," +
                 database_->blob("ff") + ",4,'old'),('y'," + database_->blob("ff00") + ",4,'old')");
  receiver_ = opened("pairs", {"a", "b"});
  ASSERT_TRUE(receiver_);
  const std::string change =
      payload_of({{"a", {{"text", "x"}}}, {"b", {{"blob", "/wA="}}}}, {{"state", {{"null", true}}}});
  EXPECT_EQ(decided(command("op-1", 5, "4", change).to_json(), change, at_mark(5)), "accepted");
  EXPECT_EQ(database_->ask("SELECT count(*) FROM pairs WHERE version=5 AND state IS NULL AND a='x' AND b=" +
                           database_->blob("ff00")),
            "1");
  EXPECT_EQ(database_->ask("SELECT count(*) FROM pairs WHERE version=4 AND state='old'"), "2");
  const std::string half = payload_of({{"a", {{"text", "x"}}}}, {{"state", {{"null", true}}}});
  EXPECT_EQ(decided(command("op-2", 5, "4", half).to_json(), half, at_mark(5)), "request_malformed");
}

TEST_P(RowReceiver, RefusesAPayloadThatNamesWhatIsNotItsOwnToChange) {
  for (const std::string& payload :
       {payload_of({{"id", {{"integer", "7"}}}}, {{"version", {{"integer", "9"}}}}),
        payload_of({{"id", {{"integer", "7"}}}}, {{"id", {{"integer", "9"}}}}),
        payload_of({{"state", {{"text", "new"}}}}, {{"note", {{"null", true}}}}),
        payload_of({{"id", {{"null", true}}}}, {{"state", {{"text", "x"}}}}), std::string("{}"), std::string("x")}) {
    EXPECT_EQ(decided(command("op-1", 5, "1", payload).to_json(), payload, at_mark(5)), "request_malformed") << payload;
  }
  const std::string other = paid() + " ";
  EXPECT_EQ(decided(command("op-1", 5, "1", paid()).to_json(), other, at_mark(5)), "content_corrupted_in_transit");
  expect_untouched();
}

// A trigger that writes something else: what was confirmed is what reads back, or nothing is committed (B107).
TEST_P(RowReceiver, CommitsNothingThatDoesNotReadBackAsWritten) {
  if (GetParam().is_postgres) {
    database_->run(
        "CREATE OR REPLACE FUNCTION shout() RETURNS trigger AS $$ BEGIN NEW.state = upper(NEW.state); RETURN "
        "NEW; END $$ LANGUAGE plpgsql");
    database_->run("CREATE TRIGGER shouts BEFORE UPDATE ON accounts FOR EACH ROW EXECUTE FUNCTION shout()");
  } else {
    database_->run(
        "CREATE TRIGGER shouts AFTER UPDATE OF state ON accounts WHEN NEW.state='paid' BEGIN UPDATE accounts "
        "SET state=upper(NEW.state) WHERE id=NEW.id; END");
  }
  EXPECT_EQ(decided(command("op-1", 5, "1", paid()).to_json(), paid(), at_mark(5)), "record_version_changed");
  expect_untouched();
}

TEST_P(RowReceiver, HandsOverTheStateBeforeAndChangesNothingWhereItCannotBeKept) {
  Json kept;
  const auto keep = [&](const Json& before) -> Result<Json> {
    kept = before;
    return Json("kept");
  };
  const auto refuse = [](const Json&) -> Result<Json> { return Refusal(Code::state_persist_failed, "no space"); };
  const auto refused = deliver(*receiver_, command("op-1", 5, "1", paid()).to_json(), paid(), at_mark(5), refuse);
  ASSERT_TRUE(granted(refused));
  EXPECT_EQ(refused->decision.decision, "state_persist_failed");
  expect_untouched();
  const auto delivery = deliver(*receiver_, command("op-1", 5, "1", paid()).to_json(), paid(), at_mark(5), keep);
  ASSERT_TRUE(granted(delivery));
  EXPECT_EQ(kept["values"]["state"], Json({{"text", "new"}}));
  EXPECT_EQ(kept["version"], "1");
}

// B121: check and effect in one exclusive transaction: of many who planned on one version one is applied, the others
// are told the version; nobody is told that the database is busy.
TEST_P(RowReceiver, LetsOneOfManyWritersHaveEachVersion) {
  constexpr int kWriters = 8;
  constexpr int kRounds = 25;
  std::atomic<int> applied = 0;
  std::atomic<int> other = 0;
  std::vector<std::thread> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&, writer] {
      const auto mine = opened("accounts", {"id"});
      for (int done = 0; done < kRounds;) {
        const std::string planned = database_->ask("SELECT version FROM accounts WHERE id=7");
        const std::string payload =
            payload_of({{"id", {{"integer", "7"}}}}, {{"state", {{"text", std::to_string(writer)}}}});
        const std::string id = "op-" + std::to_string(writer) + "-" + std::to_string(done) + "-" + planned;
        const auto sent = deliver(*mine, command(id, 5, planned, payload).to_json(), payload, at_mark(5));
        if (sent.ok() && sent->decision.decision == "accepted") {
          ++applied;
          ++done;
        } else if (!sent.ok() || sent->decision.decision != "record_version_changed") {
          ++other;
          ++done;
        }
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(other, 0);
  EXPECT_EQ(version(), std::to_string(1 + applied));
  EXPECT_EQ(database_->ask("SELECT count(*) FROM holdfast_operations"), std::to_string(applied));
}

HOLDFAST_EVERY_ROW_DATABASE(RowReceiver);

}  // namespace
}  // namespace holdfast::receivers
