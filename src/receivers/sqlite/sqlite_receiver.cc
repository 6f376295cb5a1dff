#include "receivers/sqlite/sqlite_receiver.h"

#include "base/json.h"
#include "receivers/row_change.h"
#include "receivers/sqlite/tables.h"

namespace holdfast::receivers {
namespace {

using sqlite::as_identifier;
using sqlite::Database;
using sqlite::execute;
using sqlite::PreparedStatements;
using sqlite::Statement;

std::string conditions(const Columns& key) {
  std::string text;
  for (const auto& [name, value] : key) text += (text.empty() ? "" : " AND ") + as_identifier(name) + "=?";
  return text;
}

// The row of `key`: the columns that a change sets, and its version last. nullopt: none.
Result<std::optional<std::pair<Columns, Value>>> read_row(PreparedStatements& statements, const RowTarget& target,
                                                          const RowChange& change) {
  std::string list;
  for (const auto& [name, value] : change.set) list += as_identifier(name) + ",";
  HF_TRY(Statement row, statements.get("SELECT " + list + as_identifier(target.version_column) + " FROM " +
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

class SqliteTransaction : public sqlite::TablesTransaction {
 public:
  SqliteTransaction(sqlite3* database, PreparedStatements& statements, const RowTarget& target)
      : TablesTransaction(database, statements), target_(target) {}

  Result<Json> apply(const Command& command, const std::string& payload, const Capture& capture) override {
    HF_TRY(const RowChange change, read_row_change(command, payload, target_));
    HF_TRY(const auto before, read_row(statements(), target_, change));
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
    if (sqlite3_changes(database()) != 1) {
      return version_changed(command, change.expected_version, "another number of rows");
    }
    const std::int64_t version = change.expected_version + 1;
    HF_TRY(const auto after, read_row(statements(), target_, change));
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

 private:
  Result<void> update(const RowChange& change) {
    std::string list;
    for (const auto& [name, value] : change.set) list += as_identifier(name) + "=?,";
    HF_TRY(Statement put,
           statements().get("UPDATE " + as_identifier(target_.table) + " SET " + list +
                            as_identifier(target_.version_column) + "=? WHERE " + conditions(change.key) + " AND " +
                            as_identifier(target_.version_column) + "=?"));
    int at = 0;
    for (const auto& [name, value] : change.set) put.bind(++at, value);
    put.bind(++at, change.expected_version + 1);
    for (const auto& [name, value] : change.key) put.bind(++at, value);
    put.bind(++at, change.expected_version);
    HF_CHECK(put.step());
    return {};
  }

  const RowTarget& target_;
};

class SqliteReceiver : public Receiver {
 public:
  SqliteReceiver(Database database, RowTarget target)
      : database_(std::move(database)), statements_(database_.get()), target_(std::move(target)) {}
  std::string kind() const override { return "sqlite"; }

  Result<std::unique_ptr<Transaction>> begin() override {
    HF_CHECK(sqlite::check_not_moved(database_.get()));
    HF_CHECK(statements_.run("BEGIN IMMEDIATE"));
    return std::unique_ptr<Transaction>(new SqliteTransaction(database_.get(), statements_, target_));
  }

  Result<Json> observe(const Command& command, const std::string& payload) override {
    HF_TRY(const RowChange change, read_row_change(command, payload, target_));
    HF_TRY(const auto row, read_row(statements_, target_, change));
    if (!row) return Json{{"present", false}};
    return Json{{"present", true}, {"version", version_text(row->second)}, {"as_written", row->first == change.set}};
  }

 private:
  Database database_;
  PreparedStatements statements_;
  RowTarget target_;
};

// Table and columns are there, and are columns: a quoted name that is none would be a string constant to SQLite.
Result<void> check_columns(sqlite3* database, const RowTarget& target) {
  const std::string table = as_identifier(target.table);
  for (const std::string& column : target.key_columns) {
    HF_CHECK(Statement::prepare(database, "SELECT " + table + "." + as_identifier(column) + " FROM " + table));
  }
  HF_CHECK(
      Statement::prepare(database, "SELECT " + table + "." + as_identifier(target.version_column) + " FROM " + table));
  return {};
}

}  // namespace

Result<std::unique_ptr<Receiver>> open_sqlite_receiver(const Json& config) {
  HF_TRY(RowTarget target, row_target_from_json(config));
  HF_TRY(Database database, sqlite::open_database(text_member(config, "database"), sqlite::Missing::is_refused));
  HF_CHECK(check_columns(database.get(), target));
  return std::unique_ptr<Receiver>(new SqliteReceiver(std::move(database), std::move(target)));
}

}  // namespace holdfast::receivers
