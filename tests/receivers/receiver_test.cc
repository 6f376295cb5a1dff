// One suite for every receiver of rows: the table of CONTRACT section 5 in its order, and what a transaction promises.
// SQLite with a rollback journal, SQLite with a write-ahead log, PostgreSQL.
#include "receivers/receiver.h"

#include <gtest/gtest.h>
#include <libpq-fe.h>
#include <sqlite3.h>

#include <atomic>
#include <functional>
#include <thread>

#include "base/digest.h"
#include "base/json.h"
#include "receivers/postgres/postgres_receiver.h"
#include "receivers/sqlite/sqlite_receiver.h"
#include "support/private_postgres.h"
#include "support/refused_with.h"
#include "support/temporary_folder.h"

namespace holdfast::receivers {
namespace {

using support::granted;
using support::refused_with;

const std::string kResource = "session://rows.records/accounts";

// What a test sees of a database from outside.
class Database {
 public:
  virtual ~Database() = default;
  virtual Json config() const = 0;
  virtual void run(const std::string& sql) = 0;
  virtual std::string ask(const std::string& sql) = 0;  // one value as text
};

class SqliteDatabase : public Database {
 public:
  explicit SqliteDatabase(const char* journal) {
    run(std::string("PRAGMA journal_mode=") + journal);
    run("CREATE TABLE accounts(id INTEGER PRIMARY KEY, version INTEGER NOT NULL, state TEXT, note BLOB)");
    run("CREATE TABLE pairs(a TEXT, b BLOB, version INTEGER NOT NULL, state TEXT, PRIMARY KEY(a,b))");
  }
  Json config() const override { return {{"database", folder_.at("rows.db")}}; }
  void run(const std::string& sql) override { static_cast<void>(ask(sql)); }
  std::string ask(const std::string& sql) override {
    sqlite3* database = nullptr;
    EXPECT_EQ(sqlite3_open(folder_.at("rows.db").c_str(), &database), SQLITE_OK);
    sqlite3_busy_timeout(database, 30'000);
    std::string value;
    char* error = nullptr;
    const auto take = [](void* into, int count, char** values, char**) {
      if (count > 0 && values[0] != nullptr) *static_cast<std::string*>(into) = values[0];
      return 0;
    };
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), take, &value, &error), SQLITE_OK) << (error == nullptr ? "" : error);
    sqlite3_free(error);
    sqlite3_close(database);
    return value;
  }

 private:
  support::TemporaryFolder folder_;
};

class PostgresDatabase : public Database {
 public:
  PostgresDatabase() {
    run("DROP TABLE IF EXISTS accounts, pairs, holdfast_marks, holdfast_operations");
    run("CREATE TABLE accounts(id bigint PRIMARY KEY, version bigint NOT NULL, state text, note bytea)");
    run("CREATE TABLE pairs(a text, b bytea, version integer NOT NULL, state text, PRIMARY KEY(a,b))");
  }
  static support::PrivatePostgres& server() {
    static support::PrivatePostgres one;
    return one;
  }
  Json config() const override { return {{"connection", server().connection()}}; }
  void run(const std::string& sql) override { static_cast<void>(ask(sql)); }
  std::string ask(const std::string& sql) override {
    PGconn* connection = PQconnectdb(server().connection().c_str());
    PQsetNoticeProcessor(
        connection, [](void*, const char*) {}, nullptr);
    PGresult* result = PQexec(connection, sql.c_str());
    const auto status = PQresultStatus(result);
    EXPECT_TRUE(status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) << PQerrorMessage(connection);
    const std::string value = PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : "";
    PQclear(result);
    PQfinish(connection);
    return value;
  }
};

struct Kind {
  const char* name;
  std::function<std::unique_ptr<Database>()> make;
  Result<std::unique_ptr<Receiver>> (*open)(const Json&);
};

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

std::string payload_of(const Json& key, const Json& set) { return dump_canonical(Json{{"key", key}, {"set", set}}); }

class RowReceiver : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    if (std::string(GetParam().name) == "Postgres") {
      ASSERT_TRUE(PostgresDatabase::server().is_ready()) << PostgresDatabase::server().why_not();
    }
    database_ = GetParam().make();
    database_->run("INSERT INTO accounts(id,version,state) VALUES(7,1,'new')");
    receiver_ = opened("accounts", {"id"});
    ASSERT_TRUE(receiver_);
    ASSERT_TRUE(granted(make_mark(*receiver_, kResource, Generation{5})));
  }

  std::unique_ptr<Receiver> opened(const std::string& table, const std::vector<std::string>& key) {
    Json config = database_->config();
    config["table"] = table;
    config["key_columns"] = key;
    config["version_column"] = "version";
    auto receiver = GetParam().open(config);
    EXPECT_TRUE(granted(receiver));
    return receiver.ok() ? std::move(*receiver) : nullptr;
  }

  static Command command(const std::string& id, std::uint64_t generation, const std::string& version,
                         const std::string& payload) {
    return {id,           kResource,          "act", "reversible",      "ada",
            "task",       generation,         1,     {"ws-1", "local"}, version,
            std::nullopt, sha256_hex(payload)};
  }
  static Current at_mark(std::uint64_t mark) {
    Current current;
    current.issuer = {"ws-1", "local"};
    current.workspace_mark = Generation{mark};
    return current;
  }
  static std::string paid() { return payload_of({{"id", {{"integer", "7"}}}}, {{"state", {{"text", "paid"}}}}); }

  Delivery sent(const Json& command, const std::string& payload, const Current& current) {
    auto delivery = deliver(*receiver_, command, payload, current);
    EXPECT_TRUE(granted(delivery));
    return delivery.ok() ? std::move(*delivery) : Delivery{};
  }
  std::string decided(const Json& command, const std::string& payload, const Current& current) {
    return sent(command, payload, current).decision.decision;
  }
  std::string state() { return database_->ask("SELECT state FROM accounts WHERE id=7"); }
  std::string version() { return database_->ask("SELECT version FROM accounts WHERE id=7"); }
  void expect_untouched() {
    EXPECT_EQ(state(), "new");
    EXPECT_EQ(version(), "1");
    EXPECT_EQ(database_->ask("SELECT count(*) FROM holdfast_operations"), "0");
  }

  std::unique_ptr<Database> database_;
  std::unique_ptr<Receiver> receiver_;
};

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
      refused_with(raise_mark(*receiver_, kResource, Generation{9}, Generation{5}), Code::receiver_high_water_missing));
  expect_untouched();
  ASSERT_TRUE(granted(reseed(*receiver_, kResource, Generation{9})));
  EXPECT_EQ(decided(command("op-1", 9, "1", paid()).to_json(), paid(), at_mark(9)), "accepted");
}

TEST_P(RowReceiver, AnswersTheSameOperationWithItsFirstOutcomeAndAnotherUnderItsIdNotAtAll) {
  const Command first = command("op-1", 5, "1", paid());
  const Delivery applied = sent(first.to_json(), paid(), at_mark(5));
  const Delivery again = sent(first.to_json(), paid(), at_mark(5));
  EXPECT_EQ(again.decision.decision, "repeated");
  EXPECT_EQ(again.outcome, applied.outcome);
  // After a takeover the first outcome still answers, and says that it was superseded.
  ASSERT_TRUE(granted(raise_mark(*receiver_, kResource, Generation{8}, Generation{5})));
  EXPECT_EQ(sent(first.to_json(), paid(), at_mark(8)).outcome.value("superseded_by", ""), "8");
  const std::string other = payload_of({{"id", {{"integer", "7"}}}}, {{"state", {{"text", "void"}}}});
  EXPECT_EQ(decided(command("op-1", 8, "2", other).to_json(), other, at_mark(8)), "operation_id_reused");
  EXPECT_EQ(state(), "paid");
  EXPECT_EQ(version(), "2");
}

// T1 to T3: an older generation is refused, whoever believes in it and however late it comes.
TEST_P(RowReceiver, RefusesAnOlderGenerationWithoutMutation) {
  ASSERT_TRUE(granted(raise_mark(*receiver_, kResource, Generation{6}, Generation{5})));
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

// B57, B59: the row that the change was planned on, or a typed refusal with what is there.
TEST_P(RowReceiver, RefusesAnotherVersionAndAMissingRow) {
  const Delivery newer = sent(command("op-1", 5, "3", paid()).to_json(), paid(), at_mark(5));
  EXPECT_EQ(newer.decision.decision, "record_version_changed");
  EXPECT_EQ(newer.refusal->details().value("current", ""), "1");
  const std::string missing = payload_of({{"id", {{"integer", "8"}}}}, {{"state", {{"text", "paid"}}}});
  EXPECT_EQ(decided(command("op-2", 5, "1", missing).to_json(), missing, at_mark(5)), "record_missing");
  expect_untouched();
}

TEST_P(RowReceiver, ChangesRowsByEveryTypeOfKey) {
  database_->run(std::string("INSERT INTO pairs(a,b,version,state) VALUES('x',") +
                 (std::string(GetParam().name) == "Postgres" ? "'\\xff00'::bytea" : "x'ff00'") + ",4,'old')");
  receiver_.reset();
  receiver_ = opened("pairs", {"a", "b"});
  ASSERT_TRUE(receiver_);
  const std::string change =
      payload_of({{"a", {{"text", "x"}}}, {"b", {{"blob", "/wA="}}}}, {{"state", {{"null", true}}}});
  EXPECT_EQ(decided(command("op-1", 5, "4", change).to_json(), change, at_mark(5)), "accepted");
  EXPECT_EQ(database_->ask("SELECT version FROM pairs"), "5");
  EXPECT_EQ(database_->ask("SELECT count(*) FROM pairs WHERE state IS NULL"), "1");
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
  if (std::string(GetParam().name) == "Postgres") {
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

INSTANTIATE_TEST_SUITE_P(
    Every, RowReceiver,
    testing::Values(Kind{"SqliteRollbackJournal", [] { return std::make_unique<SqliteDatabase>("DELETE"); },
                         open_sqlite_receiver},
                    Kind{"SqliteWal", [] { return std::make_unique<SqliteDatabase>("WAL"); }, open_sqlite_receiver},
                    Kind{"Postgres", [] { return std::make_unique<PostgresDatabase>(); }, open_postgres_receiver}),
    [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace holdfast::receivers
