#include "receivers/sqlite/scratch_rows.h"

#include "receivers/sqlite/tables.h"

namespace holdfast::receivers {
namespace {

using sqlite::Database;
using sqlite::execute;
using sqlite::Missing;
using sqlite::open_database;
using sqlite::Statement;

constexpr int kBackupPauseMs = 5;
constexpr int kBackupTurnsMax = 2'000;

// SQLite's own backup: a consistent copy, whoever else has the database open.
Result<void> copy_database(const std::string& from, const std::string& to) {
  HF_TRY(const Database source, open_database(from, Missing::is_refused));
  HF_TRY(const Database target, open_database(to, Missing::is_made));
  sqlite3_backup* copy = sqlite3_backup_init(target.get(), "main", source.get(), "main");
  if (copy == nullptr) return sqlite::refusal_of(target.get(), "begin a backup");
  int code = SQLITE_OK;
  for (int turn = 0; turn < kBackupTurnsMax; ++turn) {
    code = sqlite3_backup_step(copy, -1);
    if (code != SQLITE_BUSY && code != SQLITE_LOCKED) break;
    sqlite3_sleep(kBackupPauseMs);
  }
  const int finished = sqlite3_backup_finish(copy);
  if (code == SQLITE_DONE && finished == SQLITE_OK) return {};
  return sqlite::refusal_of(target.get(), "copy a database");
}

class SqliteScratch : public ScratchRows {
 public:
  SqliteScratch(std::string path, bool has_rows) : path_(std::move(path)), has_rows_(has_rows) {}

  Json config() const override {
    if (!has_rows_) return Json{{"state", path_}};
    return Json{{"database", path_}, {"table", kScratchTable}, {"key_columns", {"id"}}, {"version_column", "version"}};
  }

  Result<Json> look() override {
    HF_TRY(const Database database, open_database(path_, Missing::is_refused));
    Json seen = {{"rows", Json::array()}, {"marks", Json::object()}, {"operations", Json::array()}};
    if (has_rows_) {
      HF_TRY(Statement rows, Statement::prepare(database.get(), "SELECT id,state,version FROM accounts ORDER BY id"));
      for (;;) {
        HF_TRY(const bool found, rows.step());
        if (!found) break;
        seen["rows"].push_back({{"id", rows.text(0)}, {"state", rows.text(1)}, {"version", rows.text(2)}});
      }
    }
    HF_TRY(Statement marks, Statement::prepare(database.get(), "SELECT resource,generation FROM holdfast_marks"));
    for (;;) {
      HF_TRY(const bool found, marks.step());
      if (!found) break;
      seen["marks"][marks.text(0)] = marks.text(1);
    }
    HF_TRY(Statement applied,
           Statement::prepare(database.get(), "SELECT operation_id FROM holdfast_operations ORDER BY 1"));
    for (;;) {
      HF_TRY(const bool found, applied.step());
      if (!found) break;
      seen["operations"].push_back(applied.text(0));
    }
    return seen;
  }

  Result<void> keep() override { return copy_database(path_, path_ + ".kept"); }
  Result<void> restore() override { return copy_database(path_ + ".kept", path_); }
  Result<void> lose_marks() override {
    HF_TRY(const Database database, open_database(path_, Missing::is_refused));
    return execute(database.get(), "DELETE FROM holdfast_marks");
  }

 private:
  std::string path_;
  bool has_rows_;
};

}  // namespace

Result<std::unique_ptr<ScratchRows>> make_scratch_sqlite(const std::string& path) {
  HF_TRY(const Database database, open_database(path, Missing::is_made));
  HF_CHECK(execute(database.get(),
                   "CREATE TABLE accounts(id INTEGER PRIMARY KEY, state TEXT, version INTEGER NOT NULL); "
                   "INSERT INTO accounts VALUES(" +
                       std::to_string(kScratchRow) + ",'new',1)"));
  return std::unique_ptr<ScratchRows>(new SqliteScratch(path, true));
}

std::unique_ptr<ScratchRows> scratch_command_state(const std::string& path) {
  return std::make_unique<SqliteScratch>(path, false);
}

}  // namespace holdfast::receivers
