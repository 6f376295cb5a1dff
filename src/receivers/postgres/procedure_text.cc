#include "receivers/postgres/procedure_text.h"

#include "base/digest.h"
#include "base/json.h"

namespace holdfast::receivers::postgres {
namespace {

std::string at(std::size_t place) { return "given[" + std::to_string(place) + "]"; }

const std::string kResource = at(1);
const std::string kOperation = at(2);
constexpr std::size_t kVersionBefore = 3;
constexpr std::size_t kVersionAfter = 4;
constexpr std::size_t kFirstKey = 5;

// Where given() puts the values of a change, each cast to its column's type, without its length: one that does not fit
// is refused by the column and not cut.
Place places_of(const RowChange& like, const Types& types) {
  std::map<std::string, std::size_t> columns;
  std::size_t next = kFirstKey;
  for (const auto& [name, value] : like.key) columns[name] = next++;
  for (const auto& [name, value] : like.set) columns[name] = next++;
  return [columns, types](Part part, const std::string& column, const Value&) {
    const std::size_t place = part == Part::version_before  ? kVersionBefore
                              : part == Part::version_after ? kVersionAfter
                                                            : columns.at(column);
    return "CAST(" + at(place) + " AS " + types.at(column).name + ")";
  };
}

// What is judged, as one text: the mark, and of the row its version and what will be set.
std::string judged_text(const Statements& statements, const RowChange& like, const std::string& mark) {
  std::string row = mark + ",held." + as_identifier(statements.target().version_column);
  for (const auto& [name, value] : like.set) row += ",held." + as_identifier(name);
  return "CAST(ROW(" + row + ") AS text)";
}

// The row, if its columns are of those types still.
std::string the_row(const Statements& statements, const RowChange& like, const Types& types) {
  std::string where = statements.has_key(like, places_of(like, types));
  for (const auto& [name, type] : types) {
    where += " AND CAST(pg_typeof(held." + as_identifier(name) + ") AS oid)=" + std::to_string(type.id);
  }
  return where;
}

// Variables count where a name is a variable's and a column's; every column that is meant bears its table's alias.
std::string procedure(const std::string& statements) {
  return "\n#variable_conflict use_variable\n"
         "DECLARE given text[] := sent; mark text; changed bigint;\n"
         "BEGIN\n" +
         statements + "END ";
}

std::string reading(const Statements& statements, const RowChange& like, const Types& types) {
  return "  SELECT " + judged_text(statements, like, "marks.generation") + " INTO STRICT answer FROM " +
         statements.marks() + " AS marks, " + statements.rows() + " WHERE marks.resource=" + kResource + " AND " +
         the_row(statements, like, types) + " AND NOT EXISTS(SELECT FROM " + statements.operations() +
         " AS known WHERE known.operation_id=" + kOperation + ");\n";
}

// An operation that is known is refused by its key.
std::string writing(const Statements& statements, const RowChange& like, const Types& types) {
  const Place place = places_of(like, types);
  const std::string from_row = " FROM " + statements.rows() + " WHERE " + statements.has_key(like, place);
  const std::string written = statements.as_written(like, place);
  const std::string one_row =
      "  GET DIAGNOSTICS changed = ROW_COUNT;\n  IF changed<>1 THEN RAISE SQLSTATE 'HF001'; END IF;\n";
  return "  IF current_setting('transaction_isolation')<>'read committed' OR "
         "current_setting('transaction_read_only')<>'off' THEN\n"
         "    ROLLBACK; SET TRANSACTION ISOLATION LEVEL READ COMMITTED READ WRITE;\n"
         "  END IF;\n"
         "  answer := set_config('synchronous_commit','on',true);\n"
         "  answer := set_config('lock_timeout','10s',true);\n"
         "  SELECT marks.generation INTO STRICT mark FROM " +
         statements.marks() + " AS marks WHERE marks.resource=" + kResource + " FOR UPDATE;\n  " +
         statements.update(like, place) + " AND " + the_row(statements, like, types) + " AND " +
         judged_text(statements, like, "mark") + "=held_before;\n" + one_row + "  INSERT INTO " +
         statements.operations() + "(operation_id,resource,generation,command,outcome) SELECT " + kOperation + "," +
         kResource + ",under,command,outcome" + from_row + " HAVING count(*)=1 AND bool_and(" + written + ");\n" +
         one_row + "  IF raised IS NOT NULL THEN\n    UPDATE " + statements.marks() +
         " AS marks SET generation=raised WHERE marks.resource=" + kResource +
         ";\n    mark := raised;\n  END IF;\n"
         "  COMMIT;\n"
         "  SELECT CASE WHEN " +
         written + " THEN 't' ELSE 'f' END || " + judged_text(statements, like, "mark") + " INTO answer" + from_row +
         ";\n";
}

}  // namespace

ProcedureTexts procedure_texts(const Statements& statements, const RowChange& like, const Types& types,
                               const std::string& role) {
  ProcedureTexts texts;
  texts.read.body = procedure(reading(statements, like, types));
  texts.write.body = procedure(writing(statements, like, types));
  const std::string digest = sha256_hex(role + '\0' + texts.read.body + '\0' + texts.write.body).substr(0, 32);
  texts.read.arguments = {"sent"};
  texts.write.arguments = {"sent", "held_before", "under", "command", "outcome", "raised"};
  texts.read.name = "holdfast_read_" + digest;
  texts.write.name = "holdfast_write_" + digest;
  return texts;
}

std::vector<Value> given(const std::string& resource, const std::string& operation_id, const RowChange& change) {
  std::vector<Value> values = {resource, operation_id, change.expected_version, change.expected_version + 1};
  for (const auto& [name, value] : change.key) values.push_back(value);
  for (const auto& [name, value] : change.set) values.push_back(value);
  return values;
}

Result<std::string> as_array(const std::vector<Value>& values) {
  std::string array = "{";
  for (const Value& value : values) {
    HF_TRY(const auto text, text_form(value));
    if (array.size() > 1) array += ',';
    if (!text) {
      array += "NULL";
      continue;
    }
    array += '"';
    for (const char one : *text) {
      if (one == '"' || one == '\\') array += '\\';
      array += one;
    }
    array += '"';
  }
  return array + '}';
}

std::vector<std::optional<std::string>> columns_of(const std::string& row) {
  if (row.size() < 2 || row.front() != '(' || row.back() != ')') return {};
  std::vector<std::optional<std::string>> columns(1);
  bool is_quoted = false;
  for (std::size_t at = 1; at + 1 < row.size(); ++at) {
    const char one = row[at];
    const bool is_doubled = is_quoted && (one == '"' || one == '\\') && row[at + 1] == one;
    if (one == '"' && !is_doubled) {
      is_quoted = !is_quoted;
      if (!columns.back()) columns.back() = "";
    } else if (one == ',' && !is_quoted) {
      columns.emplace_back();
    } else {
      columns.back() = columns.back().value_or("") + one;
      if (is_doubled) ++at;
    }
  }
  return columns;
}

}  // namespace holdfast::receivers::postgres
