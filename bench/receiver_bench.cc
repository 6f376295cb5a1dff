// A fenced change of a row against the same bare one, for each database, by turns in one run. Both are as durable:
// SQLite synchronous=FULL with either journal, PostgreSQL synchronous_commit=on on a private server with fsync on. The
// bare one is a single conditional UPDATE in a transaction of its own, on its own connection, prepared once (SQLite) or
// sent with its parameters (PostgreSQL). The folder is $TMPDIR or /tmp (SQLite), /tmp (PostgreSQL).
#include <benchmark/benchmark.h>
#include <libpq-fe.h>
#include <sqlite3.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "base/digest.h"
#include "base/json.h"
#include "pairs.h"
#include "receivers/postgres/postgres_receiver.h"
#include "receivers/sqlite/sqlite_receiver.h"
#include "support/private_postgres.h"
#include "support/temporary_folder.h"

namespace holdfast {
namespace {

using bench::Pairs;

const std::string kResource = "session://rows.records/accounts";
// Row 1 is changed bare, row 2 under the fence.
constexpr const char* kTable =
    "CREATE TABLE accounts(id BIGINT PRIMARY KEY, version BIGINT NOT NULL, state TEXT);"
    "INSERT INTO accounts VALUES(1,1,'new'),(2,1,'new')";

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::abort();
}

std::unique_ptr<receivers::Receiver> opened(Result<std::unique_ptr<receivers::Receiver>> receiver) {
  if (!receiver.ok()) give_up(receiver.refusal().message());
  const auto mark = receivers::make_mark(**receiver, kResource, Generation{5});
  if (!mark.ok()) give_up(mark.refusal().message());
  return std::move(*receiver);
}

Json rows(Json where) {
  where.update({{"table", "accounts"}, {"key_columns", {"id"}}, {"version_column", "version"}});
  return where;
}

std::string state_of(std::int64_t version) { return version % 2 == 0 ? "paid" : "open"; }

// One fenced update after another, as an owner makes them: a new operation id each, the version that the last one left,
// of one row, or of each of `rows` in its turn.
class Fenced {
 public:
  explicit Fenced(receivers::Receiver& receiver, std::int64_t rows) : receiver_(receiver), rows_(rows) {
    current_.issuer = {"ws-1", "local"};
    current_.workspace_mark = Generation{5};
    current_.knows_tenancy = true;
    current_.generation = Generation{5};
    current_.owner = "ada";
    current_.task_id = "task";
    current_.epoch = Epoch{1};
  }
  void prepare() {
    const std::int64_t version = 1 + done_ / rows_;
    payload_ = dump_canonical(Json{{"key", {{"id", {{"integer", std::to_string(2 + done_ % rows_)}}}}},
                                   {"set", {{"state", {{"text", state_of(version)}}}}}});
    command_ = Command{"6b1f8f0e-55d0-4f5e-9d0b-" + std::to_string(100'000'000'000 + done_),
                       kResource,
                       "act",
                       "reversible",
                       "ada",
                       "task",
                       5,
                       1,
                       current_.issuer,
                       std::to_string(version),
                       std::nullopt,
                       sha256_hex(payload_)}
                   .to_json();
  }
  void run() {
    const auto delivery = receivers::deliver(receiver_, command_, payload_, current_);
    if (!delivery.ok()) give_up(delivery.refusal().message());
    if (delivery->decision.decision != "accepted" || !delivery->observed.value("as_written", false)) {
      give_up(delivery->decision.decision + " " + delivery->observed.dump());
    }
    ++done_;
  }

 private:
  receivers::Receiver& receiver_;
  receivers::Current current_;
  std::int64_t rows_;
  std::int64_t done_ = 0;
  std::string payload_;
  Json command_;
};

template <class Bare>
void in_pairs(benchmark::State& state, receivers::Receiver& receiver, std::int64_t rows, Bare bare) {
  Fenced fenced(receiver, rows);
  Pairs pairs;
  std::int64_t version = 1;
  for (auto _ : state) {
    fenced.prepare();
    pairs.add(
        state, [&] { bare(version++); }, [&] { fenced.run(); });
  }
  pairs.report(state);
}

sqlite3* made(const std::string& path, const std::string& journal) {
  sqlite3* database = nullptr;
  sqlite3_open(path.c_str(), &database);
  const std::string setup = "PRAGMA journal_mode=" + journal + ";PRAGMA synchronous=FULL;" + kTable;
  if (sqlite3_exec(database, setup.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) give_up(sqlite3_errmsg(database));
  return database;
}

void sqlite_update_in_pairs(benchmark::State& state, const std::string& journal) {
  const support::TemporaryFolder folder;
  // A database each: one client means that no other connection's writes empty its cache of pages.
  sqlite3_close(made(folder.at("rows.db"), journal));
  sqlite3* bare = made(folder.at("bare.db"), journal);
  const auto receiver = opened(receivers::open_sqlite_receiver(rows(Json{{"database", folder.at("rows.db")}})));
  sqlite3_stmt* update = nullptr;
  sqlite3_prepare_v2(bare, "UPDATE accounts SET state=?, version=version+1 WHERE id=1 AND version=?", -1, &update,
                     nullptr);
  in_pairs(state, *receiver, 1, [&](std::int64_t version) {
    const std::string text = state_of(version);
    sqlite3_bind_text(update, 1, text.c_str(), -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(update, 2, version);
    if (sqlite3_step(update) != SQLITE_DONE || sqlite3_changes(bare) != 1) give_up(sqlite3_errmsg(bare));
    sqlite3_reset(update);
  });
  sqlite3_finalize(update);
  sqlite3_close(bare);
}
BENCHMARK_CAPTURE(sqlite_update_in_pairs, rollback_journal, "DELETE")->UseManualTime()->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(sqlite_update_in_pairs, wal, "WAL")->UseManualTime()->Unit(benchmark::kMicrosecond);

class BareConnection {
 public:
  explicit BareConnection(const std::string& connection) : connection_(PQconnectdb(connection.c_str())) {
    run("SET synchronous_commit=on");
  }
  ~BareConnection() { PQfinish(connection_); }
  void run(const char* sql) {
    PGresult* result = PQexec(connection_, sql);
    if (PQresultStatus(result) != PGRES_COMMAND_OK) give_up(PQerrorMessage(connection_));
    PQclear(result);
  }
  void update(std::int64_t version) {
    const std::string text = state_of(version);
    const std::string planned = std::to_string(version);
    const char* values[] = {text.c_str(), planned.c_str()};
    PGresult* result =
        PQexecParams(connection_, "UPDATE accounts SET state=$1, version=version+1 WHERE id=1 AND version=$2", 2,
                     nullptr, values, nullptr, nullptr, 0);
    if (std::string(PQcmdTuples(result)) != "1") give_up(PQerrorMessage(connection_));
    PQclear(result);
  }

 private:
  PGconn* connection_;
};

// The bare one as BEGIN, UPDATE, COMMIT, each answered before the next, or as one statement that is its own
// transaction. Fenced, one row again and again, which the receiver remembers, or more rows than it does.
constexpr std::int64_t kManyRows = 2'000;
void postgres_update_in_pairs(benchmark::State& state, bool is_one_statement, std::int64_t rows_fenced) {
  const support::PrivatePostgres server;
  if (!server.is_ready()) give_up(server.why_not());
  BareConnection bare(server.connection());
  bare.run(kTable);
  bare.run(
      ("INSERT INTO accounts SELECT row,1,'new' FROM generate_series(3," + std::to_string(1 + kManyRows) + ") AS row")
          .c_str());
  const auto receiver = opened(receivers::open_postgres_receiver(rows(Json{{"connection", server.connection()}})));
  in_pairs(state, *receiver, rows_fenced, [&](std::int64_t version) {
    if (!is_one_statement) bare.run("BEGIN");
    bare.update(version);
    if (!is_one_statement) bare.run("COMMIT");
  });
}
BENCHMARK_CAPTURE(postgres_update_in_pairs, begin_update_commit, false, 1)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(postgres_update_in_pairs, one_statement, true, 1)->UseManualTime()->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(postgres_update_in_pairs, one_statement_another_row, true, kManyRows)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace holdfast

BENCHMARK_MAIN();
