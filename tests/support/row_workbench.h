// A served workspace with a receiver of rows (or of files, or of programs) in it, and what a test asks of it: commands
// issued and delivered with the program, and what has to hold of the receiver whatever happened.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/json.h"
#include "support/private_postgres.h"
#include "support/row_database.h"
#include "support/workbench.h"

namespace holdfast::support {

class RowWorkbench {
 public:
  // A server that is not served yet; the row is there, the receiver is not registered.
  explicit RowWorkbench(const std::string& kind)
      : postgres_(kind == "postgres" ? std::make_unique<PrivatePostgres>() : nullptr),
        rows(kind, kind == "postgres" ? postgres_->connection() : folder_.at("rows.db")) {
    if (postgres_) { EXPECT_TRUE(postgres_->is_ready()) << postgres_->why_not(); }
    rows.make();
  }

  Answer add() const { return bench.run(rows.receiver_add("accounts")); }
  Lease acquire(const std::string& owner, const Words& more = {}) const {
    return bench.acquire(rows.resource(), owner, more);
  }
  // The line that `issue` prints.
  std::string issue(const Lease& lease, const std::string& operation, const std::string& precondition) const {
    const Words row = {"--key", "id=integer:7", "--set", "state=text:" + operation, "--precondition", precondition};
    const Answer issued =
        bench.run(Words{"issue", rows.resource()} + lease.keys() + row + Words{"--operation-id", operation});
    EXPECT_TRUE(issued.ok()) << issued.text;
    return issued.text;
  }
  Answer deliver(const std::string& envelope) const { return bench.run({"receive"}, envelope); }
  void restart(const Environment& environment = {}) {
    bench.kill_server();
    bench.serve(environment);
  }

  void crash_postgres() {
    postgres_->crash_and_restart();
    EXPECT_TRUE(postgres_->is_ready()) << postgres_->why_not();
  }

  // The receiver is open, and the workspace's copy of its mark is one that it can show.
  testing::AssertionResult is_open() const {
    const Answer listed = bench.run({"receiver", "list"});
    for (const Json& line : listed.document.value("receivers", Json::array())) {
      if (text_member(line, "name") != "accounts") continue;
      const auto copy = exact_u64(line.at("marks").value(rows.resource(), Json()));
      const auto mark = exact_u64(line.value("receiver_mark", Json()));
      if (text_member(line, "state") == "open" && (!copy || (mark && *copy <= *mark))) {
        return testing::AssertionSuccess();
      }
      return testing::AssertionFailure() << line.dump();
    }
    return testing::AssertionFailure() << listed.text;
  }

  Workbench bench;

 private:
  TemporaryFolder folder_;
  std::unique_ptr<PrivatePostgres> postgres_;

 public:
  RowDatabase rows;
};

}  // namespace holdfast::support
