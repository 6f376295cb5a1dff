#include "receivers/sqlite/statement.h"

namespace holdfast::receivers::sqlite {

Refusal refusal_of(sqlite3* database, const std::string& doing) {
  return Refusal(Code::receiver_unreachable,
                 "receiver_unreachable: SQLite could not " + doing + ": " + sqlite3_errmsg(database),
                 Json{{"sqlite_code", sqlite3_extended_errcode(database)}});
}

std::string as_identifier(const std::string& identifier) {
  std::string text = "\"";
  for (const char one : identifier) {
    if (one == '"') text += '"';
    text += one;
  }
  return text + '"';
}

void Statement::End::operator()(sqlite3_stmt* statement) const {
  if (!is_kept) {
    sqlite3_finalize(statement);
    return;
  }
  sqlite3_reset(statement);
  sqlite3_clear_bindings(statement);
}

Result<Statement> Statement::prepare(sqlite3* database, const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database, sql.c_str(), static_cast<int>(sql.size()), &statement, nullptr) != SQLITE_OK) {
    return refusal_of(database, "prepare a statement");
  }
  return Statement(database, statement, false);
}

Result<Statement> PreparedStatements::get(const std::string& sql) {
  auto found = kept_.find(sql);
  if (found == kept_.end()) {
    sqlite3_stmt* statement = nullptr;
    const int code = sqlite3_prepare_v3(database_, sql.c_str(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT,
                                        &statement, nullptr);
    if (code != SQLITE_OK) return refusal_of(database_, "prepare a statement");
    if (kept_.size() == kMost) kept_.clear();
    found = kept_.emplace(sql, statement).first;
  }
  return Statement(database_, found->second.get(), true);
}

Result<void> PreparedStatements::run(const std::string& sql) {
  HF_TRY(Statement statement, get(sql));
  HF_CHECK(statement.step());
  return {};
}

void Statement::bind(int at, const Value& value) {
  struct Binder {
    sqlite3_stmt* statement;
    int at;
    void operator()(const Null&) const { sqlite3_bind_null(statement, at); }
    void operator()(std::int64_t number) const { sqlite3_bind_int64(statement, at, number); }
    void operator()(double number) const { sqlite3_bind_double(statement, at, number); }
    void operator()(const std::string& text) const {
      sqlite3_bind_text64(statement, at, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
    }
    void operator()(const Blob& blob) const {
      sqlite3_bind_blob64(statement, at, blob.bytes.data(), blob.bytes.size(), SQLITE_TRANSIENT);
    }
  };
  std::visit(Binder{statement_.get(), at}, value);
}

Result<bool> Statement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return refusal_of(database_, "run a statement");
}

Value Statement::column(int at) const {
  sqlite3_stmt* row = statement_.get();
  switch (sqlite3_column_type(row, at)) {
    case SQLITE_INTEGER: return static_cast<std::int64_t>(sqlite3_column_int64(row, at));
    case SQLITE_FLOAT: return sqlite3_column_double(row, at);
    case SQLITE_TEXT: return text(at);
    case SQLITE_BLOB: {
      const auto* bytes = static_cast<const char*>(sqlite3_column_blob(row, at));
      const auto size = static_cast<std::size_t>(sqlite3_column_bytes(row, at));
      return Blob{bytes == nullptr ? std::string() : std::string(bytes, size)};
    }
    default: return Null{};
  }
}

std::string Statement::text(int at) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), at));
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), at));
  return bytes == nullptr ? std::string() : std::string(bytes, size);
}

Result<void> execute(sqlite3* database, const std::string& sql) {
  if (sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) return {};
  return refusal_of(database, "run `" + sql.substr(0, 40) + "`");
}

}  // namespace holdfast::receivers::sqlite
