#include "receivers/postgres/statements.h"

#include "base/json.h"

namespace holdfast::receivers::postgres {
namespace {

std::string held(const std::string& column) { return "held." + as_identifier(column); }

// Values as the statement's own parameters, in the order of their numbers.
Place numbered(std::vector<Value>& values) {
  return [&values](Part, const std::string&, const Value& value) {
    values.push_back(value);
    return "$" + std::to_string(values.size());
  };
}

}  // namespace

// The table is "schema.table" or "table".
Statements::Statements(const RowTarget& target) : target_(target) {
  const auto dot = target.table.find('.');
  const std::string schema = dot == std::string::npos ? "" : as_identifier(target.table.substr(0, dot)) + ".";
  table_ = schema + as_identifier(dot == std::string::npos ? target.table : target.table.substr(dot + 1));
  rows_ = table_ + " AS held";
  marks_ = schema + "holdfast_marks";
  operations_ = schema + "holdfast_operations";
}

Query Statements::schemas() const {
  return {
      "SELECT quote_ident(t.nspname),quote_ident(m.nspname),quote_ident(o.nspname) FROM pg_namespace t, "
      "pg_namespace m, pg_namespace o WHERE t.oid=(SELECT relnamespace FROM pg_class WHERE oid=to_regclass($1)) AND "
      "m.oid=(SELECT relnamespace FROM pg_class WHERE oid=to_regclass($2)) AND o.oid=(SELECT relnamespace FROM "
      "pg_class WHERE oid=to_regclass($3))",
      {table_, marks_, operations_}};
}

void Statements::settle(const Rows& schemas) {
  const auto in = [&](int column, const std::string& name) {
    return schemas.text(column) + "." + name.substr(name.rfind('.') + 1);
  };
  // The table's own name may hold a dot; only that of an unqualified one is missing its schema.
  if (target_.table.find('.') == std::string::npos) table_ = schemas.text(0) + "." + table_;
  rows_ = table_ + " AS held";
  schema_ = schemas.text(1) + ".";
  marks_ = in(1, marks_);
  operations_ = in(2, operations_);
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
  return {
      "INSERT INTO " + marks_ +
          "(resource,generation) VALUES($1,$2) ON CONFLICT(resource) DO UPDATE SET generation=excluded.generation "
          // Two who make the first mark at once have no row to lock: never lowered. What is no number is a lost one.
          "WHERE CASE WHEN " +
          marks_ + ".generation ~ '^[0-9]{1,20}$' THEN " + marks_ +
          ".generation::numeric < excluded.generation::numeric ELSE true END",
      {resource, mark.text()}};
}

Query Statements::applied(const std::string& operation_id) const {
  return {"SELECT command,outcome FROM " + operations_ + " WHERE operation_id=$1", {operation_id}};
}

Query Statements::row(const RowChange& change) const {
  std::string list = held(target_.version_column);
  for (const auto& [name, value] : change.set) list += "," + held(name);
  Query query;
  const std::string where = has_key(change, numbered(query.parameters));
  query.sql = "SELECT " + list + " FROM " + rows_ + " WHERE " + where + " FOR UPDATE";
  return query;
}

Query Statements::update(const RowChange& change) const {
  Query query;
  query.sql = update(change, numbered(query.parameters));
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
  const std::string same = as_written(*change, numbered(query.parameters));
  query.sql += "CASE CAST(CASE WHEN count(*)=1 AND bool_and(" + same +
               ") THEN '1' ELSE 'holdfast: the row does not read back as it was written' END AS integer) WHEN 1 THEN "
               "$5 END FROM " +
               rows_ + " WHERE " + has_key(*change, numbered(query.parameters));
  return query;
}

Query Statements::reads_back(const RowChange& change) const {
  Query query;
  const std::string same = as_written(change, numbered(query.parameters));
  query.sql = "SELECT " + same + " FROM " + rows_ + " WHERE " + has_key(change, numbered(query.parameters));
  return query;
}

std::string Statements::update(const RowChange& change, const Place& place) const {
  std::string sql = "UPDATE " + rows_ + " SET ";
  for (const auto& [name, value] : change.set) sql += as_identifier(name) + "=" + place(Part::set, name, value) + ",";
  const std::string& version = target_.version_column;
  sql += as_identifier(version) + "=" + place(Part::version_after, version, change.expected_version + 1);
  return sql + " WHERE " + has_key(change, place) + " AND " + held(version) + "=" +
         place(Part::version_before, version, change.expected_version);
}

std::string Statements::has_key(const RowChange& change, const Place& place) const {
  std::string sql;
  for (const auto& [name, value] : change.key) {
    sql += (sql.empty() ? "" : " AND ") + held(name) + "=" + place(Part::key, name, value);
  }
  return sql;
}

// The server compares, by its own types.
std::string Statements::as_written(const RowChange& change, const Place& place) const {
  std::string sql;
  for (const auto& [name, value] : change.set) {
    sql += held(name) + " IS NOT DISTINCT FROM " + place(Part::set, name, value) + " AND ";
  }
  const std::string& version = target_.version_column;
  return sql + held(version) + "=" + place(Part::version_after, version, change.expected_version + 1);
}

}  // namespace holdfast::receivers::postgres
