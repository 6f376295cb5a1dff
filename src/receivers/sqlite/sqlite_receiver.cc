#include "receivers/sqlite/sqlite_receiver.h"

#include "base/json.h"
#include "receivers/row_change.h"
#include "receivers/sqlite/statement.h"

namespace holdfast::receivers {
namespace {

using sqlite::as_identifier;
using sqlite::Database;
using sqlite::execute;
using sqlite::Statement;

constexpr int kBusyMs = 30'000;

std::string conditions(const Columns& key) {
  std::string text;
  for (const auto& [name, value] : key) text += (text.empty() ? "" : " AND ") + as_identifier(name) + "=?";
  return text;
}

// The row of `key`: the columns that a change sets, and its version last. nullopt: none.
Result<std::optional<std::pair<Columns, Value>>> read_row(sqlite3* database, const RowTarget& target,
                                                          const RowChange& change) {
  std::string list;
  for (const auto& [name, value] : change.set) list += as_identifier(name) + ",";
  HF_TRY(Statement row,
         Statement::prepare(database, "SELECT " + list + as_identifier(target.version_column) + " FROM " +
                                          as_identifier(target.table) + " WHERE " + conditions(change.key)));
  int at = 0;
  for (const auto& [name, value] : change.key) row.bind(++at, value);
  HF_TRY(const bool found, row.step());
  if (!found) return std::optional<std::pair<Columns, Value>>();
  Columns columns;
  at = 0;
  for (const auto& [name, value] : change.set) columns[name] = row.column(at++);
  const Value version = row.column(at);
  HF_TRY(const bool another, row.step());
  if (another) {
    return Refusal(Code::receiver_unreachable, "receiver_unreachable: the key columns name more than one row",
                   Json{{"key", values_to_json(change.key)}});
  }
  return std::optional(std::pair(std::move(columns), version));
}

std::string version_text(const Value& version) {
  const auto* number = std::get_if<std::int64_t>(&version);
  return number != nullptr ? std::to_string(*number) : values_to_json({{"version", version}})["version"].dump();
}

class SqliteTransaction : public Transaction {
 public:
  SqliteTransaction(sqlite3* database, const RowTarget& target) : database_(database), target_(target) {}
  ~SqliteTransaction() override {
    if (!ended_) static_cast<void>(execute(database_, "ROLLBACK"));
  }

  Result<std::optional<Generation>> mark(const std::string& resource) override {
    HF_TRY(Statement row, Statement::prepare(database_, "SELECT generation FROM holdfast_marks WHERE resource=?"));
    row.bind(1, resource);
    HF_TRY(const bool found, row.step());
    if (!found) return std::optional<Generation>();
    const auto generation = parse_u64(row.text(0));
    // A mark that is no number is a lost one: the receiver stays closed.
    return generation ? std::optional(Generation{*generation}) : std::nullopt;
  }

  Result<void> set_mark(const std::string& resource, Generation mark) override {
    HF_TRY(Statement put, Statement::prepare(database_,
                                             "INSERT INTO holdfast_marks(resource,generation) VALUES(?,?) "
                                             "ON CONFLICT(resource) DO UPDATE SET "
                                             "generation=excluded.generation"));
    put.bind(1, resource);
    put.bind(2, mark.text());
    HF_CHECK(put.step());
    return {};
  }

  Result<std::optional<Applied>> applied(const std::string& operation_id) override {
    HF_TRY(Statement row, Statement::prepare(database_,
                                             "SELECT command,outcome FROM holdfast_operations "
                                             "WHERE operation_id=?"));
    row.bind(1, operation_id);
    HF_TRY(const bool found, row.step());
    if (!found) return std::optional<Applied>();
    HF_TRY(Applied applied, applied_from_texts(operation_id, row.text(0), row.text(1)));
    return std::optional(std::move(applied));
  }

  Result<void> remember(const Applied& applied) override {
    HF_TRY(Statement put, Statement::prepare(database_,
                                             "INSERT INTO holdfast_operations(operation_id,resource,"
                                             "generation,command,outcome) VALUES(?,?,?,?,?)"));
    put.bind(1, applied.command.operation_id);
    put.bind(2, applied.command.resource);
    put.bind(3, std::to_string(applied.command.generation));
    put.bind(4, applied.command.canonical());
    put.bind(5, dump_canonical(applied.outcome));
    HF_CHECK(put.step());
    return {};
  }

  Result<Json> apply(const Command& command, const std::string& payload, const Capture& capture) override {
    HF_TRY(const RowChange change, read_row_change(command, payload, target_));
    HF_TRY(const auto before, read_row(database_, target_, change));
    if (!before) return record_missing(command, change);
    if (before->second != Value(change.expected_version)) {
      return version_changed(command, change.expected_version, version_text(before->second));
    }
    Json captured;
    if (capture) {
      HF_TRY(captured, capture(Json{{"key", values_to_json(change.key)},
                                    {"values", values_to_json(before->first)},
                                    {"version", std::to_string(change.expected_version)}}));
    }
    HF_CHECK(update(change));
    if (sqlite3_changes(database_) != 1) {
      return version_changed(command, change.expected_version, "another number of rows");
    }
    const std::int64_t version = change.expected_version + 1;
    HF_TRY(const auto after, read_row(database_, target_, change));
    if (!after || after->second != Value(version) || after->first != change.set) {
      return Refusal(Code::record_version_changed,
                     "record_version_changed: the row does not read back as it was written (a trigger, or a column "
                     "that converts); nothing was committed",
                     Json{{"resource", command.resource}});
    }
    return Json{{"resource", command.resource},
                {"key", values_to_json(change.key)},
                {"version_before", std::to_string(change.expected_version)},
                {"version", std::to_string(version)},
                {"captured", captured}};
  }

  Result<void> commit() override {
    auto committed = execute(database_, "COMMIT");
    if (committed.ok()) {
      ended_ = true;
      return committed;
    }
    // Still open: SQLite has not committed, and the destructor rolls back. Otherwise nobody can tell.
    if (sqlite3_get_autocommit(database_) == 0) return committed;
    ended_ = true;
    return Refusal(Code::receiver_outcome_unknown, committed.refusal().message(), committed.refusal().details());
  }

 private:
  Result<void> update(const RowChange& change) {
    std::string list;
    for (const auto& [name, value] : change.set) list += as_identifier(name) + "=?,";
    HF_TRY(Statement put, Statement::prepare(database_, "UPDATE " + as_identifier(target_.table) + " SET " + list +
                                                            as_identifier(target_.version_column) + "=? WHERE " +
                                                            conditions(change.key) + " AND " +
                                                            as_identifier(target_.version_column) + "=?"));
    int at = 0;
    for (const auto& [name, value] : change.set) put.bind(++at, value);
    put.bind(++at, change.expected_version + 1);
    for (const auto& [name, value] : change.key) put.bind(++at, value);
    put.bind(++at, change.expected_version);
    HF_CHECK(put.step());
    return {};
  }

  sqlite3* database_;
  const RowTarget& target_;
  bool ended_ = false;
};

class SqliteReceiver : public Receiver {
 public:
  SqliteReceiver(Database database, RowTarget target) : database_(std::move(database)), target_(std::move(target)) {}
  std::string kind() const override { return "sqlite"; }

  Result<std::unique_ptr<Transaction>> begin() override {
    HF_CHECK(still_the_same_file());
    HF_CHECK(execute(database_.get(), "BEGIN IMMEDIATE"));
    return std::unique_ptr<Transaction>(new SqliteTransaction(database_.get(), target_));
  }

  Result<Json> observe(const Command& command, const std::string& payload) override {
    HF_TRY(const RowChange change, read_row_change(command, payload, target_));
    HF_TRY(const auto row, read_row(database_.get(), target_, change));
    if (!row) return Json{{"present", false}};
    return Json{{"present", true}, {"version", version_text(row->second)}, {"as_written", row->first == change.set}};
  }

 private:
  // A database that was moved away or replaced since it was opened takes writes that nobody will ever read.
  Result<void> still_the_same_file() {
    int has_moved = 0;
    const int code = sqlite3_file_control(database_.get(), "main", SQLITE_FCNTL_HAS_MOVED, &has_moved);
    if (code != SQLITE_OK || has_moved == 0) return {};
    return Refusal(Code::receiver_unreachable,
                   "receiver_unreachable: another file bears the database's name since it was opened");
  }
  Database database_;
  RowTarget target_;
};

Result<void> prepare(sqlite3* database, const RowTarget& target) {
  sqlite3_busy_timeout(database, kBusyMs);
  HF_CHECK(execute(database, "PRAGMA synchronous=FULL"));
  HF_CHECK(execute(database, "PRAGMA trusted_schema=OFF"));
  HF_CHECK(execute(database,
                   "CREATE TABLE IF NOT EXISTS holdfast_marks(resource TEXT PRIMARY KEY, generation TEXT NOT NULL) "
                   "WITHOUT ROWID"));
  HF_CHECK(execute(database,
                   "CREATE TABLE IF NOT EXISTS holdfast_operations(operation_id TEXT PRIMARY KEY, resource TEXT NOT "
                   "NULL, generation TEXT NOT NULL, command TEXT NOT NULL, outcome TEXT NOT NULL) WITHOUT ROWID"));
  // Table and columns are there, and are columns: a quoted name that is none would be a string constant to SQLite.
  for (const std::string& column : target.key_columns) {
    HF_CHECK(Statement::prepare(database, "SELECT " + as_identifier(target.table) + "." + as_identifier(column) +
                                              " FROM " + as_identifier(target.table)));
  }
  HF_CHECK(Statement::prepare(database, "SELECT " + as_identifier(target.table) + "." +
                                            as_identifier(target.version_column) + " FROM " +
                                            as_identifier(target.table)));
  return {};
}

}  // namespace

Result<std::unique_ptr<Receiver>> open_sqlite_receiver(const Json& config) {
  HF_TRY(RowTarget target, row_target_from_json(config));
  const std::string path = text_member(config, "database");
  if (path.empty() || path.front() != '/') return Refusal(Code::usage, "a SQLite receiver needs an absolute database");
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READWRITE, nullptr);
  Database database(opened);
  if (code != SQLITE_OK) return sqlite::refusal_of(opened, "open " + printable(path));
  sqlite3_db_config(opened, SQLITE_DBCONFIG_DQS_DML, 0, nullptr);
  HF_CHECK(prepare(opened, target));
  return std::unique_ptr<Receiver>(new SqliteReceiver(std::move(database), std::move(target)));
}

}  // namespace holdfast::receivers
