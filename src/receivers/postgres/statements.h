// The SQL of one receiver: its table's, and that of its own two tables in the same schema. Private to the PostgreSQL
// receiver. Values travel as parameters; names are quoted, and of the schema that they were found in when the receiver
// was opened. Threads: immutable once it is settled.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "receivers/postgres/session.h"
#include "receivers/receiver.h"
#include "receivers/row_change.h"

namespace holdfast::receivers::postgres {

// What stands in a statement in the place of a value: a parameter of it, or something of the function that it is in.
enum class Part { set, key, version_before, version_after };
using Place = std::function<std::string(Part, const std::string& column, const Value&)>;

class Statements {
 public:
  explicit Statements(const RowTarget& target);

  Query tables_exist() const;  // one boolean
  // The quoted schemas in which the rows', the marks' and the operations' table are found.
  Query schemas() const;
  void settle(const Rows& schemas);
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

  // The same for a text that puts its values elsewhere: columns are those of `held`, an alias of the row's table.
  std::string update(const RowChange& change, const Place& place) const;
  std::string has_key(const RowChange& change, const Place& place) const;
  std::string as_written(const RowChange& change, const Place& place) const;
  const std::string& marks() const { return marks_; }
  const std::string& operations() const { return operations_; }
  const std::string& rows() const { return rows_; }  // with its alias
  const std::string& schema() const { return schema_; }
  const RowTarget& target() const { return target_; }

 private:
  RowTarget target_;
  std::string schema_;  // of the marks, with its dot; "" until it is settled
  std::string table_;
  std::string rows_;
  std::string marks_;
  std::string operations_;
};

}  // namespace holdfast::receivers::postgres
