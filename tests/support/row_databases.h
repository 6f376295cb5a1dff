// Databases with rows for the suite of the receivers: SQLite with a rollback journal and with a write-ahead log,
// PostgreSQL directly and behind a proxy that pools transactions. Each has the table accounts(id, version, state, note)
// with a row 7 of version 1, and pairs(a, b, version, state) with the key (a, b). Every one is a scratch one.
#pragma once
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "receivers/receiver.h"
#include "support/private_postgres.h"

namespace holdfast::support {

// What a test sees of a database from outside of the receiver.
class RowDatabase {
 public:
  virtual ~RowDatabase() = default;
  virtual Json config() const = 0;  // of a receiver, without the table
  virtual void run(const std::string& sql) = 0;
  virtual std::string ask(const std::string& sql) = 0;           // one value as text
  virtual std::string blob(const std::string& hexadecimal) = 0;  // as SQL writes it
  // A consistent copy of everything, and its return. No receiver is open on it then.
  virtual bool back_up() = 0;
  virtual bool restore() = 0;
};

struct RowDatabaseKind {
  const char* name;
  std::string (*why_not)();  // "": it can be made
  std::unique_ptr<RowDatabase> (*make)();
  bool is_postgres;
};
void PrintTo(const RowDatabaseKind& kind, std::ostream* out);
const std::vector<RowDatabaseKind>& every_row_database();

// The one server of a test program, for its outside looks.
PrivatePostgres& shared_postgres();

// A receiver of `table` in the database that config() names.
Result<std::unique_ptr<receivers::Receiver>> open_row_receiver(Json config, const std::string& table,
                                                               const std::vector<std::string>& key);

}  // namespace holdfast::support
