// What every receiver keeps in an SQLite database: its marks and the operations that it applied.
//
// Calling sequence: open_database(), once; a TablesTransaction after BEGIN IMMEDIATE, once for each delivery.
// Promises: synchronous=FULL; busy databases are waited for (10 s); a transaction that is dropped is rolled back; a
// commit of which SQLite did not say how it went is receiver_outcome_unknown.
// Errors: receiver_unreachable (details.sqlite_code), receiver_outcome_unknown, usage. Threads: one at a time.
// Source: docs/formats/receivers.md; sqlite.org "Locking And Concurrency".
#pragma once
#include "receivers/receiver.h"
#include "receivers/sqlite/statement.h"

namespace holdfast::receivers::sqlite {

enum class Missing { is_refused, is_made };
Result<Database> open_database(const std::string& path, Missing missing);
// A database that was moved away or replaced since it was opened takes writes that nobody will ever read.
Result<void> check_not_moved(sqlite3* database);

class TablesTransaction : public Transaction {
 public:
  TablesTransaction(sqlite3* database, PreparedStatements& statements) : database_(database), statements_(statements) {}
  ~TablesTransaction() override;

  Result<std::optional<Generation>> mark(const std::string& resource) override;
  Result<void> set_mark(const std::string& resource, Generation mark) override;
  Result<std::optional<Applied>> applied(const std::string& operation_id) override;
  Result<void> remember(const Applied& applied) override;
  Result<void> commit() override;

 protected:
  sqlite3* database() const { return database_; }
  PreparedStatements& statements() const { return statements_; }

 private:
  sqlite3* database_;
  PreparedStatements& statements_;
  bool ended_ = false;
};

}  // namespace holdfast::receivers::sqlite
