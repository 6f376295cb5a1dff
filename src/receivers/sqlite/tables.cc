#include "receivers/sqlite/tables.h"

#include "base/json.h"

namespace holdfast::receivers::sqlite {
namespace {

// The transition waits with it, and gives everybody else up after 30 s.
constexpr int kBusyMs = 10'000;

}  // namespace

Result<Database> open_database(const std::string& path, Missing missing) {
  if (path.empty() || path.front() != '/') return Refusal(Code::usage, "a SQLite database needs an absolute path");
  const int flags = SQLITE_OPEN_READWRITE | (missing == Missing::is_made ? SQLITE_OPEN_CREATE : 0);
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &opened, flags, nullptr);
  Database database(opened);
  if (code != SQLITE_OK) return refusal_of(opened, "open " + printable(path));
  sqlite3_db_config(opened, SQLITE_DBCONFIG_DQS_DML, 0, nullptr);
  sqlite3_busy_timeout(opened, kBusyMs);
  HF_CHECK(execute(opened, "PRAGMA synchronous=FULL"));
  HF_CHECK(execute(opened, "PRAGMA trusted_schema=OFF"));
  HF_CHECK(execute(opened,
                   "CREATE TABLE IF NOT EXISTS holdfast_marks(resource TEXT PRIMARY KEY, generation TEXT NOT NULL) "
                   "WITHOUT ROWID"));
  HF_CHECK(execute(opened,
                   "CREATE TABLE IF NOT EXISTS holdfast_operations(operation_id TEXT PRIMARY KEY, resource TEXT NOT "
                   "NULL, generation TEXT NOT NULL, command TEXT NOT NULL, outcome TEXT NOT NULL) WITHOUT ROWID"));
  return database;
}

Result<void> check_not_moved(sqlite3* database) {
  int has_moved = 0;
  const int code = sqlite3_file_control(database, "main", SQLITE_FCNTL_HAS_MOVED, &has_moved);
  if (code != SQLITE_OK || has_moved == 0) return {};
  return Refusal(Code::receiver_unreachable,
                 "receiver_unreachable: another file bears the database's name since it was opened");
}

TablesTransaction::~TablesTransaction() {
  if (!ended_) static_cast<void>(execute(database_, "ROLLBACK"));
}

Result<std::optional<Generation>> TablesTransaction::mark(const std::string& resource) {
  HF_TRY(Statement row, statements_.get("SELECT generation FROM holdfast_marks WHERE resource=?"));
  row.bind(1, resource);
  HF_TRY(const bool found, row.step());
  if (!found) return std::optional<Generation>();
  const auto generation = parse_u64(row.text(0));
  // A mark that is no number is a lost one: the receiver stays closed.
  return generation ? std::optional(Generation{*generation}) : std::nullopt;
}

Result<void> TablesTransaction::set_mark(const std::string& resource, Generation mark) {
  HF_TRY(Statement put, statements_.get("INSERT INTO holdfast_marks(resource,generation) VALUES(?,?) "
                                        "ON CONFLICT(resource) DO UPDATE SET "
                                        "generation=excluded.generation"));
  put.bind(1, resource);
  put.bind(2, mark.text());
  HF_CHECK(put.step());
  return {};
}

Result<std::optional<Applied>> TablesTransaction::applied(const std::string& operation_id) {
  HF_TRY(Statement row, statements_.get("SELECT command,outcome FROM holdfast_operations "
                                        "WHERE operation_id=?"));
  row.bind(1, operation_id);
  HF_TRY(const bool found, row.step());
  if (!found) return std::optional<Applied>();
  HF_TRY(Applied applied, applied_from_texts(operation_id, row.text(0), row.text(1)));
  return std::optional(std::move(applied));
}

Result<void> TablesTransaction::remember(const Applied& applied) {
  HF_TRY(Statement put, statements_.get("INSERT INTO holdfast_operations(operation_id,resource,"
                                        "generation,command,outcome) VALUES(?,?,?,?,?)"));
  put.bind(1, applied.command.operation_id);
  put.bind(2, applied.command.resource);
  put.bind(3, std::to_string(applied.command.generation));
  put.bind(4, applied.command.canonical());
  put.bind(5, dump_canonical(applied.outcome));
  HF_CHECK(put.step());
  return {};
}

Result<void> TablesTransaction::commit() {
  auto committed = statements_.run("COMMIT");
  if (committed.ok()) {
    ended_ = true;
    return committed;
  }
  // Still open: SQLite has not committed, and the destructor rolls back. Otherwise nobody can tell.
  if (sqlite3_get_autocommit(database_) == 0) return committed;
  ended_ = true;
  return Refusal(Code::receiver_outcome_unknown, committed.refusal().message(), committed.refusal().details());
}

}  // namespace holdfast::receivers::sqlite
