#include "support/row_databases.h"

#include <gtest/gtest.h>
#include <libpq-fe.h>
#include <sqlite3.h>

#include <filesystem>

#include "receivers/postgres/postgres_receiver.h"
#include "receivers/sqlite/sqlite_receiver.h"
#include "support/temporary_folder.h"

namespace holdfast::support {
namespace {

class SqliteDatabase : public RowDatabase {
 public:
  explicit SqliteDatabase(const char* journal) {
    run(std::string("PRAGMA journal_mode=") + journal);
    run("CREATE TABLE accounts(id INTEGER PRIMARY KEY, version INTEGER NOT NULL, state TEXT, note BLOB)");
    run("CREATE TABLE pairs(a TEXT, b BLOB, version INTEGER NOT NULL, state TEXT, PRIMARY KEY(a,b))");
    run("INSERT INTO accounts(id,version,state) VALUES(7,1,'new')");
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
  std::string blob(const std::string& hexadecimal) override { return "x'" + hexadecimal + "'"; }
  bool back_up() override {
    run("VACUUM INTO '" + folder_.at("copy.db") + "'");
    return folder_.exists("copy.db");
  }
  bool restore() override {
    namespace fs = std::filesystem;
    std::error_code error;
    for (const char* name : {"rows.db-wal", "rows.db-shm", "rows.db-journal"}) fs::remove(folder_.at(name), error);
    fs::rename(folder_.at("copy.db"), folder_.at("rows.db"), error);
    return !error;
  }

 private:
  TemporaryFolder folder_;
};

class PostgresDatabase : public RowDatabase {
 public:
  explicit PostgresDatabase(std::string connection) : connection_(std::move(connection)) {
    run("DROP TABLE IF EXISTS accounts, pairs, holdfast_marks, holdfast_operations");
    run("CREATE TABLE accounts(id bigint PRIMARY KEY, version bigint NOT NULL, state text, note bytea)");
    run("CREATE TABLE pairs(a text, b bytea, version integer NOT NULL, state text, PRIMARY KEY(a,b))");
    run("INSERT INTO accounts(id,version,state) VALUES(7,1,'new')");
  }
  Json config() const override { return {{"connection", connection_}}; }
  void run(const std::string& sql) override { static_cast<void>(ask(sql)); }
  std::string ask(const std::string& sql) override {
    PGconn* connection = PQconnectdb(shared_postgres().connection().c_str());
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
  std::string blob(const std::string& hexadecimal) override { return "'\\x" + hexadecimal + "'::bytea"; }
  bool back_up() override { return shared_postgres().dump(folder_.at("copy.sql")); }
  bool restore() override { return shared_postgres().restore(folder_.at("copy.sql")); }

 private:
  std::string connection_;
  TemporaryFolder folder_;
};

std::string nothing_missing() { return ""; }
std::string why_no_postgres() { return shared_postgres().is_ready() ? "" : shared_postgres().why_not(); }
std::string why_no_pooler() {
  const std::string why = why_no_postgres();
  return why.empty() && shared_postgres().pooled().empty() ? shared_postgres().why_not() : why;
}

}  // namespace

PrivatePostgres& shared_postgres() {
  static PrivatePostgres one;
  return one;
}

void PrintTo(const RowDatabaseKind& kind, std::ostream* out) { *out << kind.name; }

const std::vector<RowDatabaseKind>& every_row_database() {
  using Made = std::unique_ptr<RowDatabase>;
  static const std::vector<RowDatabaseKind> every = {
      {"SqliteRollbackJournal", nothing_missing, []() -> Made { return std::make_unique<SqliteDatabase>("DELETE"); },
       false},
      {"SqliteWal", nothing_missing, []() -> Made { return std::make_unique<SqliteDatabase>("WAL"); }, false},
      {"Postgres", why_no_postgres,
       []() -> Made { return std::make_unique<PostgresDatabase>(shared_postgres().connection()); }, true},
      {"PostgresPooled", why_no_pooler,
       []() -> Made { return std::make_unique<PostgresDatabase>(shared_postgres().pooled()); }, true}};
  return every;
}

Result<std::unique_ptr<receivers::Receiver>> open_row_receiver(Json config, const std::string& table,
                                                               const std::vector<std::string>& key) {
  config["table"] = table;
  config["key_columns"] = key;
  config["version_column"] = "version";
  return config.contains("connection") ? receivers::open_postgres_receiver(config)
                                       : receivers::open_sqlite_receiver(config);
}

}  // namespace holdfast::support
