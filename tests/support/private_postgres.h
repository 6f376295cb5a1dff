// A PostgreSQL server of a test's own: a scratch cluster, a socket in a scratch folder, no network; run as `nobody`
// where the tests run as root, whom PostgreSQL refuses. Ends with the object.
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
  // Ends it at once, as a crash does, and starts it again.
  void crash_and_restart();

 private:
  bool start();
  std::string folder_;
  std::string programs_;
  std::unique_ptr<Child> server_;
  bool ready_ = false;
  std::string why_not_;
};

}  // namespace holdfast::support
