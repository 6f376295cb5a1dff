// The SQL of one receiver: its table's, and that of its own two tables in the same schema. Private to the PostgreSQL
// receiver. Values travel as parameters; names are quoted. Threads: immutable.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "receivers/postgres/session.h"
#include "receivers/receiver.h"
#include "receivers/row_change.h"

namespace holdfast::receivers::postgres {

class Statements {
 public:
  explicit Statements(const RowTarget& target);

  Query tables_exist() const;  // one boolean
  std::vector<Query> create() const;
  Query columns() const;  // fails where a column of the target is none of its table

  // Nothing of it outlives the transaction; what the server, the user or a pooled connection was set to does not count.
  static std::vector<Query> begin();
  Query mark(const std::string& resource) const;
  Query set_mark(const std::string& resource, Generation mark) const;
  Query applied(const std::string& operation_id) const;
  // The version, and then what `change` sets, as they are before it.
  Query row(const RowChange& change) const;
  Query update(const RowChange& change) const;
  // With a change: only where its row reads back as it was written. Elsewhere it fails with kDoesNotReadBack, so that a
  // COMMIT that was sent behind it is not run.
  Query remember(const Applied& applied, const std::optional<RowChange>& change) const;
  static constexpr const char* kDoesNotReadBack = "22P02";
  // For each row of the key, which is one, whether it is of the version after the change and holds what was set.
  Query reads_back(const RowChange& change) const;

 private:
  std::string as_written(const RowChange& change, std::vector<Value>& values) const;
  RowTarget target_;
  std::string table_;
  std::string marks_;
  std::string operations_;
};

}  // namespace holdfast::receivers::postgres
