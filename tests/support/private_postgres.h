// A PostgreSQL server of a test's own: a scratch cluster, a socket in a scratch folder, no network; run as `nobody`
// where the tests run as root, whom PostgreSQL refuses. Ends with the object. pooled() is the same server behind a
// pgbouncer of its own that pools transactions: two connections for whoever comes.
#pragma once
#include <memory>
#include <string>

#include "support/child.h"

namespace holdfast::support {

class PrivatePostgres {
 public:
  PrivatePostgres();
  ~PrivatePostgres();
  PrivatePostgres(const PrivatePostgres&) = delete;
  PrivatePostgres& operator=(const PrivatePostgres&) = delete;

  bool is_ready() const { return ready_; }
  std::string why_not() const { return why_not_; }
  std::string connection() const { return "host=" + folder_ + " user=holdfast dbname=postgres"; }
  // Starts the pgbouncer where none runs yet; "" and why_not() where it does not start.
  std::string pooled();
  // A consistent copy of every table as SQL, and its return, as an operator does it.
  bool dump(const std::string& file);
  bool restore(const std::string& file);
  // Ends it at once, as a crash does, and starts it again.
  void crash_and_restart();

 private:
  bool start();
  std::string folder_;
  std::string programs_;
  std::unique_ptr<Child> server_;
  std::unique_ptr<Child> pooler_;
  bool ready_ = false;
  std::string why_not_;
};

}  // namespace holdfast::support
