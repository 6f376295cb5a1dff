// SQLite's C API with values that own themselves. Private to the SQLite receiver. A Statement of PreparedStatements is
// reset where it is dropped, and kept for the next time; one of them lives at a time.
// Errors: receiver_unreachable with details.sqlite_code. Threads: one at a time on a database.
#pragma once
#include <sqlite3.h>

#include <map>
#include <memory>
#include <string>

#include "receivers/row_change.h"

namespace holdfast::receivers::sqlite {

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;

Refusal refusal_of(sqlite3* database, const std::string& doing);
std::string as_identifier(const std::string& identifier);

class Statement {
 public:
  static Result<Statement> prepare(sqlite3* database, const std::string& sql);
  void bind(int at, const Value& value);
  // true: a row is there; false: done.
  Result<bool> step();
  Value column(int at) const;
  std::string text(int at) const;

 private:
  friend class PreparedStatements;
  struct End {
    bool is_kept;
    void operator()(sqlite3_stmt* statement) const;
  };
  Statement(sqlite3* database, sqlite3_stmt* statement, bool is_kept)
      : database_(database), statement_(statement, End{is_kept}) {}
  sqlite3* database_;
  std::unique_ptr<sqlite3_stmt, End> statement_;
};

// Prepared once each, for as long as the connection. SQLite prepares one again by itself where the schema has changed.
class PreparedStatements {
 public:
  explicit PreparedStatements(sqlite3* database) : database_(database) {}
  Result<Statement> get(const std::string& sql);
  Result<void> run(const std::string& sql);  // of one that gives no rows

 private:
  static constexpr std::size_t kMost = 64;  // which columns are set is the senders' choice: no end of texts
  sqlite3* database_;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  std::map<std::string, std::unique_ptr<sqlite3_stmt, Finalize>> kept_;
};

Result<void> execute(sqlite3* database, const std::string& sql);

}  // namespace holdfast::receivers::sqlite
