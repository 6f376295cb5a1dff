#include "receivers/postgres/procedures.h"

#include "base/json.h"

namespace holdfast::receivers::postgres {
namespace {

constexpr std::size_t kMostSets = 64;   // of columns that are changed together
constexpr std::size_t kMostRows = 256;  // that are remembered
constexpr std::size_t kLargestRow = 16'384;
constexpr auto kRememberedFor = std::chrono::seconds(5);

std::vector<std::string> columns_set(const RowChange& change) {
  std::vector<std::string> names;
  for (const auto& [name, value] : change.set) names.push_back(name);
  return names;
}

// What tells the rows apart that are remembered, and the columns that are of them.
Result<std::string> place_of(const Change& change) {
  std::vector<Value> place = {change.resource};
  for (const auto& [name, value] : change.row.key) place.push_back(value);
  for (const auto& [name, value] : change.row.set) place.emplace_back(name);
  return as_array(place);
}

Refusal not_to_be_had(const std::string& why) {
  return Refusal(Code::receiver_unreachable, "receiver_unreachable: " + why);
}

// Types by their catalog's name, which means the same whatever a session's search path, and has no length. A domain is
// left out: what the server says of its values is its base type's. And whether no operation can be kept twice.
Query types_of(const Statements& statements, const RowChange& change) {
  std::vector<Value> names = {statements.target().version_column};
  for (const auto& [name, value] : change.key) names.emplace_back(name);
  for (const auto& [name, value] : change.set) names.emplace_back(name);
  const auto array = as_array(names);
  const std::string& rows = statements.rows();
  return {
      "SELECT a.attname,quote_ident(n.nspname)||'.'||quote_ident(t.typname),a.atttypid,current_user,"
      "EXISTS(SELECT FROM pg_index i JOIN pg_attribute k ON k.attrelid=i.indrelid AND k.attnum=i.indkey[0] WHERE "
      "i.indrelid=to_regclass($3) AND k.attname='operation_id' AND i.indisunique AND i.indisvalid AND "
      "i.indimmediate AND i.indpred IS NULL AND i.indnkeyatts=1) "
      "FROM pg_attribute a JOIN pg_type t ON t.oid=a.atttypid JOIN pg_namespace n ON n.oid=t.typnamespace WHERE "
      "a.attrelid=to_regclass($1) AND a.attname=ANY($2) AND a.attnum>0 AND NOT a.attisdropped AND t.typtype<>'d'",
      {rows.substr(0, rows.rfind(" AS held")), array.ok() ? *array : "{}", statements.operations()}};
}

std::string arguments(const ProcedureText& text, bool with_names) {
  std::string list;
  for (const std::string& name : text.arguments) list += (with_names ? name + " " : "") + "text,";
  return list;
}

Query find(const std::string& schema, const ProcedureText& text) {
  return {
      "SELECT FROM pg_proc p JOIN pg_language l ON l.oid=p.prolang JOIN pg_roles r ON r.oid=p.proowner WHERE "
      "p.oid=to_regprocedure($1) AND p.prosrc=$2 AND p.prokind='p' AND l.lanname='plpgsql' AND "
      "r.rolname=current_user AND NOT p.prosecdef AND p.proconfig IS NULL",
      {schema + text.name + "(" + arguments(text, false) + "text)", text.body}};
}

// The body has no quote that could be this one: a name in it would have to know the digest of the body.
Query create(const std::string& schema, const ProcedureText& text) {
  const std::string quote = "$" + text.name + "$";
  return {"CREATE OR REPLACE PROCEDURE " + schema + text.name + "(" + arguments(text, true) +
              "INOUT answer text) LANGUAGE plpgsql SECURITY INVOKER AS " + quote + text.body + quote,
          {}};
}

}  // namespace

void Procedures::learn(const RowChange& change) {
  const auto columns = columns_set(change);
  if (by_columns_.contains(columns) || by_columns_.size() >= kMostSets) return;
  auto known = made(change);
  by_columns_[columns] = known.ok() ? std::optional(std::move(*known)) : std::nullopt;
}

bool Procedures::knows(const RowChange& change) const {
  const auto found = by_columns_.find(columns_set(change));
  return found != by_columns_.end() && found->second.has_value();
}

const Procedures::Known& Procedures::known(const RowChange& change) const {
  return by_columns_.at(columns_set(change)).value();
}

Result<bool> Procedures::are_there(const std::vector<Query>& finding) {
  bool is_each_there = true;
  for (const auto& rows : session_.run_together(finding)) {
    if (!rows.ok()) return rows.refusal();
    is_each_there = is_each_there && rows->count() == 1;
  }
  return is_each_there;
}

Result<Procedures::Known> Procedures::made(const RowChange& change) {
  HF_CHECK(session_.make_ready());
  const Query asked = types_of(statements_, change);
  HF_TRY(const Rows rows, session_.run(asked.sql, asked.parameters));
  Types types;
  for (int row = 0; row < rows.count(); ++row) {
    types[rows.text(row, 0)] = {static_cast<Oid>(std::stoul(rows.text(row, 2))), rows.text(row, 1)};
  }
  if (types.size() != change.key.size() + change.set.size() + 1)
    return not_to_be_had("a column is missing, or of a domain");
  if (rows.text(0, 4) != "t") return not_to_be_had("the operations' table has no key");
  const ProcedureTexts texts = procedure_texts(statements_, change, types, rows.text(0, 3));
  const std::string& schema = statements_.schema();
  const std::vector<Query> finding = {find(schema, texts.read), find(schema, texts.write)};
  HF_TRY(bool is_there, are_there(finding));
  if (!is_there) {
    // Of two who make one at once, PostgreSQL refuses one: what counts is what is there.
    std::vector<Query> making = Statements::begin();
    making.push_back(create(schema, texts.read));
    making.push_back(create(schema, texts.write));
    making.push_back({"COMMIT", {}});
    const auto made = session_.run_together(making);
    if (!made.back().ok()) HF_CHECK(session_.run("ROLLBACK"));
    HF_TRY(is_there, are_there(finding));
  }
  if (!is_there) return not_to_be_had("the procedures cannot be made");
  return Known{schema + texts.read.name, schema + texts.write.name, std::move(types)};
}

Result<Judged> Procedures::judged_of(const std::string& text, const RowChange& change) const {
  const auto columns = columns_of(text);
  if (columns.size() != 2 + change.set.size() || !columns[0]) return not_to_be_had("no row was read");
  const Types& types = known(change).types;
  const auto value = [&](const std::string& name, const std::optional<std::string>& held) {
    return held ? value_of(types.at(name).id, *held) : Value(Null{});
  };
  Judged judged;
  judged.text = text;
  judged.mark = *columns[0];
  judged.row = {value(statements_.target().version_column, columns[1]), columns[1].value_or(""), {}};
  std::size_t at = 2;
  for (const auto& [name, unused] : change.set) judged.row.values[name] = value(name, columns[at++]);
  return judged;
}

Result<Judged> Procedures::read(const Change& change) {
  HF_TRY(const std::string place, place_of(change));
  // A connection that died while it rested has to be noticed by something that changes nothing.
  if (std::chrono::steady_clock::now() - looked_at_ > kRememberedFor) forget_rows();
  // Used once: where it is not the current state any more, the next one is read.
  if (const auto looked = looked_.extract(place)) {
    auto judged = judged_of(looked.mapped(), change.row);
    if (judged.ok() && judged->row.version == Value(change.row.expected_version)) {
      judged->is_remembered = true;
      return judged;
    }
  }
  HF_TRY(const std::string array, as_array(given(change.resource, change.operation_id, change.row)));
  HF_TRY(const Rows rows, session_.call(known(change.row).read, {array}));
  return judged_of(rows.count() == 1 ? rows.text(0) : "", change.row);
}

Result<bool> Procedures::write(const Change& change, const Judged& judged, const Applied& applied,
                               const std::optional<Generation>& raised) {
  HF_TRY(const std::string place, place_of(change));
  HF_TRY(const std::string array, as_array(given(change.resource, change.operation_id, change.row)));
  const Command& command = applied.command;
  HF_TRY(const Rows rows,
         session_.call(known(change.row).write,
                       {array, judged.text, std::to_string(command.generation), command.canonical(),
                        dump_canonical(applied.outcome), raised ? std::optional(raised->text()) : std::nullopt}));
  const std::string looked = rows.count() == 1 ? rows.text(0) : "";
  if (!looked.starts_with('t')) return false;
  if (looked_.size() >= kMostRows) looked_.clear();
  looked_at_ = std::chrono::steady_clock::now();
  if (looked.size() <= kLargestRow) looked_[place] = looked.substr(1);
  return true;
}

}  // namespace holdfast::receivers::postgres
