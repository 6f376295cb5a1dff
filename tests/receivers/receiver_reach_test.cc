// What a receiver says of a database that it cannot reach, and of a commit that was never answered.
#include <gtest/gtest.h>
#include <libpq-fe.h>
#include <sqlite3.h>

#include <chrono>
#include <cstdio>
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
const std::string kPaid =
    dump_canonical(Json{{"key", {{"id", {{"integer", "7"}}}}}, {"set", {{"state", {{"text", "paid"}}}}}});

Command paid(const std::string& id, const std::string& planned = "1") {
  return {id,           kResource,        "act", "reversible", "ada", "task", 5, 1, {"ws-1", "local"}, planned,
          std::nullopt, sha256_hex(kPaid)};
}

Current at_mark(std::uint64_t mark) {
  Current current;
  current.issuer = {"ws-1", "local"};
  current.workspace_mark = Generation{mark};
  return current;
}

Json rows(Json where) {
  where.update({{"table", "accounts"}, {"key_columns", {"id"}}, {"version_column", "version"}});
  return where;
}

std::string asked(const std::string& path, const std::string& sql) {
  sqlite3* database = nullptr;
  EXPECT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  std::string value;
  const auto take = [](void* into, int count, char** values, char**) {
    if (count > 0 && values[0] != nullptr) *static_cast<std::string*>(into) = values[0];
    return 0;
  };
  EXPECT_EQ(sqlite3_exec(database, sql.c_str(), take, &value, nullptr), SQLITE_OK) << sqlite3_errmsg(database);
  sqlite3_close(database);
  return value;
}

// B119: the file is replaced while the receiver has it open, with a log that has content. The receiver writes no byte
// to the other file. Its own log stays behind under the name of the other one, as SQLite leaves it, and whoever
// replaced the file has to take it away with it: docs/formats/receivers.md.
TEST(SqliteReceiver, IsUnreachableWhereAnotherFileBearsItsDatabasesName) {
  for (const char* journal : {"DELETE", "WAL"}) {
    const support::TemporaryFolder folder;
    for (const char* name : {"rows.db", "other.db"}) {
      asked(folder.at(name),
            "CREATE TABLE accounts(id INTEGER PRIMARY KEY, version INTEGER, state TEXT);"
            "INSERT INTO accounts VALUES(7,1,'new')");
    }
    asked(folder.at("rows.db"), std::string("PRAGMA journal_mode=") + journal);
    auto receiver = open_sqlite_receiver(rows(Json{{"database", folder.at("rows.db")}}));
    ASSERT_TRUE(granted(receiver));
    ASSERT_TRUE(granted(make_mark(**receiver, kResource, Generation{5})));
    const std::string other = folder.read("other.db");
    ASSERT_EQ(std::rename(folder.at("other.db").c_str(), folder.at("rows.db").c_str()), 0);
    EXPECT_TRUE(
        refused_with(deliver(**receiver, paid("op-1").to_json(), kPaid, at_mark(5)), Code::receiver_unreachable));
    receiver->reset();
    EXPECT_EQ(folder.read("rows.db"), other) << journal;
    for (const char* suffix : {"-wal", "-shm"}) std::remove((folder.at("rows.db") + suffix).c_str());
    EXPECT_EQ(asked(folder.at("rows.db"), "PRAGMA integrity_check"), "ok") << journal;
    EXPECT_EQ(asked(folder.at("rows.db"), "SELECT state||version FROM accounts"), "new1");
    EXPECT_EQ(asked(folder.at("rows.db"), "SELECT count(*) FROM sqlite_master WHERE name LIKE 'holdfast%'"), "0");
    EXPECT_TRUE(refused_with(open_sqlite_receiver(rows(Json{{"database", folder.at("absent.db")}})),
                             Code::receiver_unreachable));
    EXPECT_FALSE(folder.exists("absent.db")) << "nothing is made where nothing was";
  }
}

class PostgresAlone : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(server_.is_ready()) << server_.why_not();
    run("CREATE TABLE accounts(id bigint PRIMARY KEY, version bigint NOT NULL, state text)");
    run("INSERT INTO accounts VALUES(7,1,'new')");
    auto opened = open_postgres_receiver(rows(Json{{"connection", server_.connection()}}));
    ASSERT_TRUE(granted(opened));
    receiver_ = std::move(*opened);
    ASSERT_TRUE(granted(make_mark(*receiver_, kResource, Generation{5})));
  }
  std::string run(const std::string& sql) {
    PGconn* connection = PQconnectdb(server_.connection().c_str());
    PGresult* result = PQexec(connection, sql.c_str());
    const std::string value = PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : "";
    PQclear(result);
    PQfinish(connection);
    return value;
  }
  // Its connection is ended while it commits, as pg_stat_activity shows it.
  void expect_that_a_lost_commit_is_unknown(const std::string& is_committing, const std::string& planned) {
    run("CREATE FUNCTION linger() RETURNS trigger AS $$ BEGIN PERFORM pg_sleep(30); RETURN NULL; END $$ LANGUAGE "
        "plpgsql");
    run("CREATE CONSTRAINT TRIGGER lingers AFTER UPDATE ON accounts DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE "
        "FUNCTION linger()");
    std::thread killer([&] {
      const std::string committing = "state='active' AND wait_event='PgSleep' AND " + is_committing;
      while (run("SELECT count(*) FROM pg_stat_activity WHERE " + committing) != "1") {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
      run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE " + committing);
    });
    const auto lost = deliver(*receiver_, paid("op-1", planned).to_json(), kPaid, at_mark(5));
    killer.join();
    EXPECT_TRUE(refused_with(lost, Code::receiver_outcome_unknown));
    run("DROP TRIGGER lingers ON accounts");
    const auto again = deliver(*receiver_, paid("op-1", planned).to_json(), kPaid, at_mark(5));
    ASSERT_TRUE(granted(again));
    EXPECT_EQ(run("SELECT version FROM accounts"), std::to_string(std::stoi(planned) + 1)) << "once, whichever it was";
  }
  support::PrivatePostgres server_;
  std::unique_ptr<Receiver> receiver_;
};

TEST_F(PostgresAlone, IsUnreachableWhileItsServerIsGoneAndGoesOnAfterwards) {
  server_.crash_and_restart();
  ASSERT_TRUE(server_.is_ready()) << server_.why_not();
  const auto delivery = deliver(*receiver_, paid("op-1").to_json(), kPaid, at_mark(5));
  ASSERT_TRUE(granted(delivery));
  EXPECT_EQ(delivery->decision.decision, "accepted");
  EXPECT_TRUE(refused_with(open_postgres_receiver(rows(Json{{"connection", "host=/nowhere connect_timeout=2"}})),
                           Code::receiver_unreachable));
}

// Its connections were ended while it rested: nothing was sent, and so nothing is unknown, whatever it remembers.
TEST_F(PostgresAlone, GoesOnWhereItsRestingConnectionWasEnded) {
  for (int planned = 1; planned <= 4; ++planned) {
    const std::string version = std::to_string(planned);
    const auto delivery = deliver(*receiver_, paid("op-" + version, version).to_json(), kPaid, at_mark(5));
    ASSERT_TRUE(granted(delivery)) << version;
    EXPECT_EQ(delivery->decision.decision, "accepted") << version;
    const std::string others = " FROM pg_stat_activity WHERE backend_type='client backend' AND pid<>pg_backend_pid()";
    run("SELECT pg_terminate_backend(pid)" + others);
    while (run("SELECT count(*)" + others) != "0") std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (planned < 3) continue;
    server_.crash_and_restart();
    ASSERT_TRUE(server_.is_ready()) << server_.why_not();
  }
}

// B58: the own write whose answer was lost. The same command asked again tells what became of it.
TEST_F(PostgresAlone, SaysThatACommitsOutcomeIsUnknownAndTellsItWhenAskedAgain) {
  expect_that_a_lost_commit_is_unknown("query='COMMIT'", "1");
}

// The same where one call changes and commits: two changes before taught the receiver.
TEST_F(PostgresAlone, SaysThatACallsOutcomeIsUnknownAndTellsItWhenAskedAgain) {
  for (const char* planned : {"1", "2"}) {
    const auto before = deliver(*receiver_, paid(std::string("op-0") + planned, planned).to_json(), kPaid, at_mark(5));
    ASSERT_TRUE(granted(before));
    ASSERT_EQ(before->decision.decision, "accepted");
  }
  expect_that_a_lost_commit_is_unknown("query LIKE 'CALL %holdfast_write%'", "3");
}

// PostgreSQL's texts end at a NUL; what cannot be held as it was sent is refused, and not shortened.
TEST_F(PostgresAlone, RefusesATextWithANulAndGoesOn) {
  const std::string cut = dump_canonical(
      Json{{"key", {{"id", {{"integer", "7"}}}}}, {"set", {{"state", {{"text", std::string("pa\0id", 5)}}}}}});
  Command asked = paid("op-1");
  asked.payload_sha256 = sha256_hex(cut);
  const auto refused = deliver(*receiver_, asked.to_json(), cut, at_mark(5));
  ASSERT_TRUE(granted(refused));
  EXPECT_EQ(refused->decision.decision, "request_malformed");
  EXPECT_EQ(run("SELECT state FROM accounts"), "new");
  EXPECT_EQ(run("SELECT count(*) FROM holdfast_operations"), "0");
  const auto delivery = deliver(*receiver_, paid("op-2").to_json(), kPaid, at_mark(5));
  ASSERT_TRUE(granted(delivery));
  EXPECT_EQ(delivery->decision.decision, "accepted");
}

// What the database itself refuses is the effect's refusal, and leaves nothing.
TEST_F(PostgresAlone, SaysOfAConstraintThatTheEffectWasRefused) {
  run("ALTER TABLE accounts ADD CHECK (state <> 'paid')");
  const auto refused = deliver(*receiver_, paid("op-1").to_json(), kPaid, at_mark(5));
  ASSERT_TRUE(granted(refused));
  EXPECT_EQ(refused->decision.decision, "receiver_unreachable");
  EXPECT_EQ(refused->refusal->details().value("sqlstate", ""), "23514");
  EXPECT_EQ(run("SELECT count(*) FROM holdfast_operations"), "0");
}

}  // namespace
}  // namespace holdfast::receivers
