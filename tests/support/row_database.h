// The database of a receiver of rows, looked at and changed from outside: SQLite or PostgreSQL, one table `accounts`
// with the row 7 at version 1. Beside it how a workspace registers it, and what a change of that row looks like.
//
//   const RowDatabase rows("sqlite", folder.at("rows.db"));  rows.make();
//   bench.run(rows.receiver_add("accounts"));  rows.one("SELECT version FROM accounts WHERE id=7")
//
// Every call opens the database anew and closes it again. Threads: any.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

namespace holdfast::support {

class RowDatabase {
 public:
  using Row = std::vector<std::string>;  // NULL is ""

  // `where` is a path, or a libpq connection string.
  RowDatabase(std::string kind, std::string where) : kind_(std::move(kind)), where_(std::move(where)) {}

  void make() const;
  std::vector<Row> run(const std::string& sql) const;  // a failure is a failure of the test, and answers nothing
  std::string one(const std::string& sql) const;       // the first value; "" where there is no row
  std::string version() const { return one("SELECT version FROM accounts WHERE id=7"); }
  std::string state() const { return one("SELECT state FROM accounts WHERE id=7"); }
  std::string applied() const { return one("SELECT count(*) FROM holdfast_operations"); }
  std::string mark() const { return one("SELECT generation FROM holdfast_marks"); }

  const std::string& kind() const { return kind_; }
  const std::string& where() const { return where_; }
  std::string resource() const { return "session://" + kind_ + ".records/accounts"; }
  std::vector<std::string> receiver_add(const std::string& name) const;

  // The bytes of a command that sets the row's state.
  static std::string setting(const std::string& state);

 private:
  std::vector<Row> run_sqlite(const std::string& sql) const;
  std::vector<Row> run_postgres(const std::string& sql) const;
  std::string kind_;
  std::string where_;
};

// The processes of a server's receivers, as the system lists them.
std::vector<pid_t> receiver_processes_of(pid_t server);

}  // namespace holdfast::support
