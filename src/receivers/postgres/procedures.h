// Procedures of a receiver in its database, whose plans the server keeps: one that reads what is judged, one that
// changes. Two for each set of columns that is changed together. Private to the PostgreSQL receiver.
//
// Calling sequence: learn() where such a change was accepted under locks; then read() and write().
// Promises: a procedure is only used where its text, to the byte, is this one's and its owner is the role that calls it
// (SECURITY INVOKER, no settings of its own); its name carries the digest of text and role, so that versions and roles
// never clash, and of many who make it at once each finds it. read() takes no lock and refuses whatever is not the
// plain case (no mark, no row, more than one, an operation that is known): whoever asks under locks says why. Of a row
// that write() changed last, some seconds ago at most, it answers with what was looked at behind that change, and says
// so. write() locks the mark and the row, and does nothing unless both are to the byte what read() gave and the
// operation is not known; effect, verification, operation and mark are one transaction, READ COMMITTED and durable
// whatever the session was set to; behind its commit, in another one, it looks at the row. No state of a session: a
// proxy may pool transactions.
// Does not promise: that procedures of older texts are removed.
// Errors: receiver_unreachable with details.sqlstate. Nothing was done unless Session::is_lost(), or the look failed,
// which the same operation asked again tells.
// Threads: one at a time. Source: PostgreSQL documentation, "PL/pgSQL under the Hood", "Transaction Management".
#pragma once
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "receivers/postgres/effect.h"
#include "receivers/postgres/procedure_text.h"
#include "receivers/postgres/statements.h"

namespace holdfast::receivers::postgres {

// What read() found, and what write() has to find again.
struct Judged {
  std::string text;  // whole, as the server wrote it
  std::string mark;
  HeldRow row;
  bool is_remembered = false;  // of the look behind the last change of this row: nothing may be refused by it
};

struct Change {
  std::string resource;
  std::string operation_id;
  RowChange row;
};

class Procedures {
 public:
  Procedures(Session& session, const Statements& statements) : session_(session), statements_(statements) {}

  // Makes or finds the procedures for changes like this one. Without them (no privilege, another's procedure under the
  // name, a domain's column, too many sets of columns) every change goes the way that needs none.
  void learn(const RowChange& change);
  bool knows(const RowChange& change) const;
  Result<Judged> read(const Change& change);
  // Whether the look behind the commit saw the row as it was written.
  Result<bool> write(const Change& change, const Judged& judged, const Applied& applied,
                     const std::optional<Generation>& raised);
  void forget_rows() { looked_.clear(); }

 private:
  struct Known {
    std::string read, write;  // quoted names
    Types types;
  };
  Result<Known> made(const RowChange& change);
  Result<bool> are_there(const std::vector<Query>& finding);
  const Known& known(const RowChange& change) const;
  Result<Judged> judged_of(const std::string& text, const RowChange& change) const;
  Session& session_;
  const Statements& statements_;
  std::map<std::vector<std::string>, std::optional<Known>> by_columns_;  // nullopt: not to be had
  std::map<std::string, std::string> looked_;  // by resource, key and columns: what the look behind a change gave
  std::chrono::steady_clock::time_point looked_at_;
};

}  // namespace holdfast::receivers::postgres
