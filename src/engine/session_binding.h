// Managed sessions and the files behind them: a lease on session://sqlite.records/TARGET and one on its database's
// files exclude each other, though their namespaces differ.
//
// Promises: every registered receiver with a database in the workspace counts, with its -wal, -shm and -journal.
// Does not promise: anything about a database that no receiver is registered for, or outside of the workspace.
// Errors: state_unreadable. Source: CONTRACT section 5; first seed, section 1 ("must bind their path").
#pragma once
#include "engine/context.h"

namespace holdfast::engine {

// For one judgement of many pairs: the receivers are read once, and only where a session meets a file.
class SessionBindings {
 public:
  explicit SessionBindings(Context& context) : context_(context) {}
  // Whether a lease on one and a lease on the other exclude each other because one is the session on the other's file.
  Result<bool> bound(const Scope& one, const Scope& other);

 private:
  struct Bound {
    Scope session;
    std::vector<Scope> files;
  };
  Result<void> read();
  Context& context_;
  std::optional<std::vector<Bound>> all_;
};

// The scopes and, of each session among them, the files behind it: what the queue of those who wait is asked about, so
// that nobody overtakes a waiter by the other name. Where no receiver can be read, the scopes alone.
std::vector<Scope> with_files_behind(Context& context, std::vector<Scope> scopes);

// The object that a managed SQLite session is bound to: its database, where that lies in the workspace; unknown
// otherwise. A session's tenancy records it, and where the server is proven gone the same owner and task are granted
// the session anew only while it is that very object (CONTRACT section 3, re-grant).
os::Identity database_identity(Context& context, const Scope& session);

}  // namespace holdfast::engine
