// SQLite's C API with values that own themselves. Private to the SQLite receiver.
// Errors: receiver_unreachable with details.sqlite_code. Threads: one at a time on a database.
#pragma once
#include <sqlite3.h>

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
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  Statement(sqlite3* database, sqlite3_stmt* statement) : database_(database), statement_(statement) {}
  sqlite3* database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

Result<void> execute(sqlite3* database, const std::string& sql);

}  // namespace holdfast::receivers::sqlite
