#include "receivers/postgres/postgres_receiver.h"

#include "base/json.h"
#include "receivers/postgres/session.h"

namespace holdfast::receivers {
namespace {

using postgres::as_identifier;
using postgres::Rows;
using postgres::Session;

// "schema.table" or "table"; the receiver's own tables stand in the same schema.
struct Names {
  std::string table;
  std::string marks;
  std::string operations;
};

Names names_of(const std::string& table) {
  const auto dot = table.find('.');
  const std::string schema = dot == std::string::npos ? "" : as_identifier(table.substr(0, dot)) + ".";
  return {schema + as_identifier(dot == std::string::npos ? table : table.substr(dot + 1)), schema + "holdfast_marks",
          schema + "holdfast_operations"};
}

// Columns with their parameters, numbered on from `values`.
std::string numbered(const Columns& columns, const char* between, const char* compare, std::vector<Value>& values) {
  std::string text;
  for (const auto& [name, value] : columns) {
    values.push_back(value);
    text += (text.empty() ? "" : between) + as_identifier(name) + compare + "$" + std::to_string(values.size());
  }
  return text;
}

class PostgresTransaction : public Transaction {
 public:
  PostgresTransaction(Session& session, const RowTarget& target, const Names& names)
      : session_(session), target_(target), names_(names) {}
  ~PostgresTransaction() override {
    if (!ended_) static_cast<void>(session_.run("ROLLBACK"));
  }

  Result<std::optional<Generation>> mark(const std::string& resource) override {
    HF_TRY(const Rows rows,
           session_.run("SELECT generation FROM " + names_.marks + " WHERE resource=$1 FOR UPDATE", {resource}));
    if (rows.count() == 0) return std::optional<Generation>();
    const auto generation = parse_u64(rows.text(0));
    return generation ? std::optional(Generation{*generation}) : std::nullopt;
  }

  Result<void> set_mark(const std::string& resource, Generation mark) override {
    HF_CHECK(session_.run("INSERT INTO " + names_.marks +
                              "(resource,generation) VALUES($1,$2) ON CONFLICT(resource) DO "
                              "UPDATE SET generation=excluded.generation",
                          {resource, mark.text()}));
    return {};
  }

  Result<std::optional<Applied>> applied(const std::string& operation_id) override {
    HF_TRY(const Rows rows,
           session_.run("SELECT command,outcome FROM " + names_.operations + " WHERE operation_id=$1", {operation_id}));
    if (rows.count() == 0) return std::optional<Applied>();
    HF_TRY(Applied applied, applied_from_texts(operation_id, rows.text(0), rows.text(1)));
    return std::optional(std::move(applied));
  }

  Result<void> remember(const Applied& applied) override {
    HF_CHECK(session_.run(
        "INSERT INTO " + names_.operations +
            "(operation_id,resource,generation,command,outcome) VALUES($1,$2,$3,$4,$5)",
        {applied.command.operation_id, applied.command.resource, std::to_string(applied.command.generation),
         applied.command.canonical(), dump_canonical(applied.outcome)}));
    return {};
  }

  Result<Json> apply(const Command& command, const std::string& payload, const Capture& capture) override {
    HF_TRY(const RowChange change, read_row_change(command, payload, target_));
    HF_TRY(const Rows before, read_before(change));
    if (before.count() == 0) return record_missing(command, change);
    if (before.count() > 1) {
      return Refusal(Code::receiver_unreachable, "receiver_unreachable: the key columns name more than one row");
    }
    const Value version = before.value(0);
    if (version != Value(change.expected_version))
      return version_changed(command, change.expected_version, before.text(0));
    Json captured;
    if (capture) {
      Columns columns;
      int at = 0;
      for (const auto& [name, value] : change.set) columns[name] = before.value(++at);
      HF_TRY(captured, capture(Json{{"key", values_to_json(change.key)},
                                    {"values", values_to_json(columns)},
                                    {"version", std::to_string(change.expected_version)}}));
    }
    HF_TRY(const int changed, update(change));
    if (changed != 1) return version_changed(command, change.expected_version, "another number of rows");
    HF_TRY(const bool as_written, reads_back(session_, names_, target_, change));
    if (!as_written) {
      return Refusal(Code::record_version_changed,
                     "record_version_changed: the row does not read back as it was written (a trigger, or a column "
                     "that converts); nothing was committed",
                     Json{{"resource", command.resource}});
    }
    return Json{{"resource", command.resource},
                {"key", values_to_json(change.key)},
                {"version_before", std::to_string(change.expected_version)},
                {"version", std::to_string(change.expected_version + 1)},
                {"captured", captured}};
  }

  Result<void> commit() override {
    const auto committed = session_.run("COMMIT");
    ended_ = committed.ok();
    // The COMMIT of a transaction that had failed is answered with ROLLBACK.
    if (committed.ok() && committed->command() == "COMMIT") return {};
    if (committed.ok())
      return Refusal(Code::receiver_unreachable, "receiver_unreachable: the transaction was rolled back");
    if (session_.is_connected()) return committed.refusal();
    ended_ = true;
    return Refusal(Code::receiver_outcome_unknown,
                   "receiver_outcome_unknown: the connection ended before the commit was answered",
                   committed.refusal().details());
  }

  // Whether the row is of the version after the change, and holds what was set; the server compares, by its own types.
  static Result<bool> reads_back(Session& session, const Names& names, const RowTarget& target,
                                 const RowChange& change) {
    std::vector<Value> values;
    const std::string same = numbered(change.set, " AND ", " IS NOT DISTINCT FROM ", values);
    values.push_back(change.expected_version + 1);
    const std::string version = as_identifier(target.version_column) + "=$" + std::to_string(values.size());
    HF_TRY(const Rows rows, session.run("SELECT " + same + " AND " + version + " FROM " + names.table + " WHERE " +
                                            numbered(change.key, " AND ", "=", values),
                                        values));
    return rows.count() == 1 && rows.is_true(0);
  }

 private:
  Result<Rows> read_before(const RowChange& change) {
    std::string list = as_identifier(target_.version_column);
    for (const auto& [name, value] : change.set) list += "," + as_identifier(name);
    std::vector<Value> values;
    const std::string where = numbered(change.key, " AND ", "=", values);
    return session_.run("SELECT " + list + " FROM " + names_.table + " WHERE " + where + " FOR UPDATE", values);
  }

  Result<int> update(const RowChange& change) {
    std::vector<Value> values;
    std::string sql = "UPDATE " + names_.table + " SET " + numbered(change.set, ",", "=", values);
    values.push_back(change.expected_version + 1);
    sql += "," + as_identifier(target_.version_column) + "=$" + std::to_string(values.size());
    sql += " WHERE " + numbered(change.key, " AND ", "=", values);
    values.push_back(change.expected_version);
    sql += " AND " + as_identifier(target_.version_column) + "=$" + std::to_string(values.size());
    HF_TRY(const Rows rows, session_.run(sql, values));
    return rows.affected();
  }

  Session& session_;
  const RowTarget& target_;
  const Names& names_;
  bool ended_ = false;
};

class PostgresReceiver : public Receiver {
 public:
  PostgresReceiver(std::unique_ptr<Session> session, RowTarget target)
      : session_(std::move(session)), target_(std::move(target)), names_(names_of(target_.table)) {}
  std::string kind() const override { return "postgres"; }

  Result<void> prepare() {
    HF_CHECK(session_->run("CREATE TABLE IF NOT EXISTS " + names_.marks +
                           "(resource text PRIMARY KEY, generation text NOT NULL)"));
    HF_CHECK(session_->run("CREATE TABLE IF NOT EXISTS " + names_.operations +
                           "(operation_id text PRIMARY KEY, resource text NOT NULL, generation text NOT NULL, command "
                           "text NOT NULL, outcome text NOT NULL)"));
    std::string list = as_identifier(target_.version_column);
    for (const std::string& column : target_.key_columns) list += "," + as_identifier(column);
    HF_CHECK(session_->run("SELECT " + list + " FROM " + names_.table + " LIMIT 0"));
    return {};
  }

  Result<std::unique_ptr<Transaction>> begin() override {
    HF_CHECK(session_->make_ready());
    // A connection that died while it rested is noticed by its first use; nothing has begun then.
    if (!session_->run("BEGIN").ok()) {
      HF_CHECK(session_->connect_again());
      HF_CHECK(session_->run("BEGIN"));
    }
    auto transaction = std::make_unique<PostgresTransaction>(*session_, target_, names_);
    HF_CHECK(session_->run("SET LOCAL synchronous_commit TO on"));
    HF_CHECK(session_->run("SET LOCAL lock_timeout TO '30s'"));
    return std::unique_ptr<Transaction>(std::move(transaction));
  }

  Result<Json> observe(const Command& command, const std::string& payload) override {
    HF_TRY(const RowChange change, read_row_change(command, payload, target_));
    HF_CHECK(session_->make_ready());
    HF_TRY(const bool as_written, PostgresTransaction::reads_back(*session_, names_, target_, change));
    return Json{{"as_written", as_written}, {"version", std::to_string(change.expected_version + 1)}};
  }

 private:
  std::unique_ptr<Session> session_;
  RowTarget target_;
  Names names_;
};

}  // namespace

Result<std::unique_ptr<Receiver>> open_postgres_receiver(const Json& config) {
  HF_TRY(RowTarget target, row_target_from_json(config));
  const std::string connection = text_member(config, "connection");
  if (connection.empty()) return Refusal(Code::usage, "a PostgreSQL receiver needs a connection");
  HF_TRY(auto session, Session::open(connection));
  auto receiver = std::make_unique<PostgresReceiver>(std::move(session), std::move(target));
  HF_CHECK(receiver->prepare());
  return std::unique_ptr<Receiver>(std::move(receiver));
}

}  // namespace holdfast::receivers
