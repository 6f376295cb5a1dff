#include "receivers/postgres/statements.h"

#include "base/json.h"

namespace holdfast::receivers::postgres {
namespace {

// Columns with their parameters, numbered on from `values`.
std::string numbered(const Columns& columns, const char* between, const char* compare, std::vector<Value>& values) {
  std::string text;
  for (const auto& [name, value] : columns) {
    values.push_back(value);
    text += (text.empty() ? "" : between) + as_identifier(name) + compare + "$" + std::to_string(values.size());
  }
  return text;
}

}  // namespace

// The table is "schema.table" or "table".
Statements::Statements(const RowTarget& target) : target_(target) {
  const auto dot = target.table.find('.');
  const std::string schema = dot == std::string::npos ? "" : as_identifier(target.table.substr(0, dot)) + ".";
  table_ = schema + as_identifier(dot == std::string::npos ? target.table : target.table.substr(dot + 1));
  marks_ = schema + "holdfast_marks";
  operations_ = schema + "holdfast_operations";
}

Query Statements::tables_exist() const {
  return {"SELECT to_regclass($1) IS NOT NULL AND to_regclass($2) IS NOT NULL", {marks_, operations_}};
}

std::vector<Query> Statements::create() const {
  return {{"CREATE TABLE IF NOT EXISTS " + marks_ + "(resource text PRIMARY KEY, generation text NOT NULL)", {}},
          {"CREATE TABLE IF NOT EXISTS " + operations_ +
               "(operation_id text PRIMARY KEY, resource text NOT NULL, generation text NOT NULL, command text NOT "
               "NULL, outcome text NOT NULL)",
           {}}};
}

Query Statements::columns() const {
  std::string list = as_identifier(target_.version_column);
  for (const std::string& column : target_.key_columns) list += "," + as_identifier(column);
  return {"SELECT " + list + " FROM " + table_ + " LIMIT 0", {}};
}

std::vector<Query> Statements::begin() {
  return {{"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", {}},
          {"SET LOCAL synchronous_commit TO on", {}},
          {"SET LOCAL lock_timeout TO '10s'", {}}};
}

Query Statements::mark(const std::string& resource) const {
  return {"SELECT generation FROM " + marks_ + " WHERE resource=$1 FOR UPDATE", {resource}};
}

Query Statements::set_mark(const std::string& resource, Generation mark) const {
  return {"INSERT INTO " + marks_ +
              "(resource,generation) VALUES($1,$2) ON CONFLICT(resource) DO UPDATE SET generation=excluded.generation",
          {resource, mark.text()}};
}

Query Statements::applied(const std::string& operation_id) const {
  return {"SELECT command,outcome FROM " + operations_ + " WHERE operation_id=$1", {operation_id}};
}

Query Statements::row(const RowChange& change) const {
  std::string list = as_identifier(target_.version_column);
  for (const auto& [name, value] : change.set) list += "," + as_identifier(name);
  Query query;
  const std::string where = numbered(change.key, " AND ", "=", query.parameters);
  query.sql = "SELECT " + list + " FROM " + table_ + " WHERE " + where + " FOR UPDATE";
  return query;
}

Query Statements::update(const RowChange& change) const {
  Query query;
  std::string sql = "UPDATE " + table_ + " SET " + numbered(change.set, ",", "=", query.parameters);
  query.parameters.push_back(change.expected_version + 1);
  sql += "," + as_identifier(target_.version_column) + "=$" + std::to_string(query.parameters.size());
  sql += " WHERE " + numbered(change.key, " AND ", "=", query.parameters);
  query.parameters.push_back(change.expected_version);
  query.sql = sql + " AND " + as_identifier(target_.version_column) + "=$" + std::to_string(query.parameters.size());
  return query;
}

Query Statements::remember(const Applied& applied, const std::optional<RowChange>& change) const {
  const Command& command = applied.command;
  Query query{"",
              {command.operation_id, command.resource, std::to_string(command.generation), command.canonical(),
               dump_canonical(applied.outcome)}};
  query.sql = "INSERT INTO " + operations_ + "(operation_id,resource,generation,command,outcome) SELECT $1,$2,$3,$4,";
  if (!change) {
    query.sql += "$5";
    return query;
  }
  // The cast stands outside of the CASE: an arm that fails by itself would already fail while it is planned. An
  // aggregate gives one row, of however many.
  const std::string same = as_written(*change, query.parameters);
  query.sql += "CASE CAST(CASE WHEN count(*)=1 AND bool_and(" + same +
               ") THEN '1' ELSE 'holdfast: the row does not read back as it was written' END AS integer) WHEN 1 THEN "
               "$5 END FROM " +
               table_ + " WHERE " + numbered(change->key, " AND ", "=", query.parameters);
  return query;
}

Query Statements::reads_back(const RowChange& change) const {
  Query query;
  const std::string same = as_written(change, query.parameters);
  query.sql = "SELECT " + same + " FROM " + table_ + " WHERE " + numbered(change.key, " AND ", "=", query.parameters);
  return query;
}

// The server compares, by its own types.
std::string Statements::as_written(const RowChange& change, std::vector<Value>& values) const {
  const std::string same = numbered(change.set, " AND ", " IS NOT DISTINCT FROM ", values);
  values.push_back(change.expected_version + 1);
  return same + " AND " + as_identifier(target_.version_column) + "=$" + std::to_string(values.size());
}

}  // namespace holdfast::receivers::postgres
