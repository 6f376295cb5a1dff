// libpq with values that own themselves. Private to the PostgreSQL receiver.
// Errors: receiver_unreachable with details.sqlstate. Threads: one at a time.
#pragma once
#include <libpq-fe.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "receivers/row_change.h"

namespace holdfast::receivers::postgres {

std::string as_identifier(const std::string& identifier);

class Rows {
 public:
  explicit Rows(PGresult* result) : result_(result, PQclear) {}
  int count() const { return PQntuples(result_.get()); }
  int affected() const;
  std::string text(int column) const { return PQgetvalue(result_.get(), 0, column); }
  bool is_true(int column) const { return text(column) == "t"; }
  Value value(int column) const;
  std::string command() const { return PQcmdStatus(result_.get()); }

 private:
  std::unique_ptr<PGresult, void (*)(PGresult*)> result_;
};

class Session {
 public:
  static Result<std::unique_ptr<Session>> open(const std::string& connection);
  // Parameters travel as text; the server infers their types from where they stand.
  Result<Rows> run(const std::string& sql, const std::vector<Value>& parameters = {});
  // Connected, and not inside a transaction; reconnects where the connection is known to have died.
  Result<void> make_ready();
  Result<void> connect_again();
  bool is_connected() const { return PQstatus(connection_.get()) == CONNECTION_OK; }

 private:
  explicit Session(PGconn* connection) : connection_(connection, PQfinish) {}
  Refusal refusal(const std::string& doing, const char* sqlstate) const;
  std::unique_ptr<PGconn, void (*)(PGconn*)> connection_;
};

}  // namespace holdfast::receivers::postgres
