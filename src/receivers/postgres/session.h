// libpq with values that own themselves. Private to the PostgreSQL receiver.
// Errors: receiver_unreachable with details.sqlstate; request_malformed for a text with a NUL. Threads: one at a time.
#pragma once
#include <libpq-fe.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "receivers/row_change.h"

namespace holdfast::receivers::postgres {

std::string as_identifier(const std::string& identifier);
// A value in the text form that the server reads; nullopt is NULL.
Result<std::optional<std::string>> text_form(const Value& value);
// A value of that type from the text that the server wrote.
Value value_of(Oid type, const std::string& text);

class Rows {
 public:
  explicit Rows(PGresult* result) : result_(result, PQclear) {}
  int count() const { return PQntuples(result_.get()); }
  int affected() const;
  std::string text(int column) const { return text(0, column); }
  std::string text(int row, int column) const { return PQgetvalue(result_.get(), row, column); }
  bool is_true(int column) const { return text(column) == "t"; }
  Value value(int column) const;
  std::string command() const { return PQcmdStatus(result_.get()); }

 private:
  std::unique_ptr<PGresult, void (*)(PGresult*)> result_;
};

struct Query {
  std::string sql;
  std::vector<Value> parameters;
};

class Session {
 public:
  static Result<std::unique_ptr<Session>> open(const std::string& connection);
  // Parameters travel as text; the server infers their types from where they stand.
  Result<Rows> run(const std::string& sql, const std::vector<Value>& parameters = {});
  // In one round trip, one after another: each one's rows or refusal, in their order. The first that fails is the last
  // that is run; what stands behind it is refused too. Nothing is read before all is sent: what gives a large answer
  // may not stand before what is large itself.
  std::vector<Result<Rows>> run_together(const std::vector<Query>& queries);
  // A procedure of texts (nullopt is NULL), by its quoted name, as a statement of its own that may end transactions.
  // Texts that travel within a statement cost the server less than parameters do.
  Result<Rows> call(const std::string& procedure, const std::vector<std::optional<std::string>>& arguments);
  // Connected, and not inside a transaction; reconnects where the connection is known to have died, or shows it.
  Result<void> make_ready();
  Result<void> connect_again();
  // Whether, after this refusal, nobody can tell what became of what was sent: the connection ended, or a proxy says
  // that its own did.
  bool is_lost(const Refusal& why) const;
  bool is_connected() const { return is_in_step_ && PQstatus(connection_.get()) == CONNECTION_OK; }

 private:
  explicit Session(PGconn* connection) : connection_(connection, PQfinish) {}
  Refusal refusal(const std::string& doing, const char* sqlstate) const;
  Result<Rows> judged(PGresult* result, const std::string& sql) const;
  std::unique_ptr<PGconn, void (*)(PGconn*)> connection_;
  bool is_in_step_ = true;  // the end of everything asked together was answered; libpq may notice an end only later
};

}  // namespace holdfast::receivers::postgres
