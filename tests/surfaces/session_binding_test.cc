// A managed session and the files behind it exclude each other, though their namespaces differ (CONTRACT section 5;
// first seed, section 1).
#include <gtest/gtest.h>

#include <filesystem>

#include "support/row_bench.h"
#include "support/temporary_folder.h"

namespace holdfast {
namespace {

using support::Answer;
using support::details_of;
using support::eventually;
using support::kDeploy;
using support::kRows;
using support::Lease;
using support::RowBench;
using support::Words;
using support::operator+;

class SessionBinding : public testing::Test {
 protected:
  Answer ask(const std::string& scope, const Words& more = {}) {
    return bench_.run(Words{"acquire", scope, "--owner", "bob", "--task", "t"} + more);
  }
  RowBench bench_;
  const Words files_ = {"app.db", "app.db-wal", "app.db-shm", "app.db-journal"};
};

TEST_F(SessionBinding, ALeaseOnTheSessionKeepsEveryFileBehindItAndTheFolderAbove) {
  const Lease session = bench_.acquire(kRows);
  for (const std::string& file : files_ + Words{bench_.root()}) {
    const Answer refused = ask(file);
    EXPECT_EQ(refused.code(), "lease_scope_conflict") << file << refused.text;
    EXPECT_NE(refused.text.find("alice"), std::string::npos) << "it says who holds it";
  }
  // Whoever holds the session is no exception, and neither is one request for both.
  EXPECT_EQ(bench_.run({"acquire", "app.db", "--owner", "alice", "--task", "task-1"}).code(), "lease_scope_conflict");
  bench_.release(session);
  for (const std::string& file : files_) EXPECT_TRUE(bench_.release(bench_.acquire(file)).ok()) << file;
}

TEST_F(SessionBinding, ALeaseOnAnyFileBehindItOrTheFolderAboveKeepsTheSession) {
  for (const std::string& file : files_ + Words{bench_.root()}) {
    const Lease held = bench_.acquire(file);
    EXPECT_EQ(ask(kRows).code(), "lease_scope_conflict") << file;
    // What is below the session is the session's.
    EXPECT_EQ(ask(std::string(kRows) + "/7").code(), "lease_scope_conflict") << file;
    bench_.release(held);
  }
  EXPECT_TRUE(ask(kRows).ok());
}

TEST_F(SessionBinding, OneRequestForBothIsNotGranted) {
  const Answer both = bench_.run({"acquire", kRows, "app.db", "--owner", "bob", "--task", "t"});
  EXPECT_EQ(both.code(), "lease_scope_conflict") << both.text;
  EXPECT_TRUE(bench_.run({"leases"}).at("leases").empty());
}

// What is never leased for writing, or governs the task, is not reached through the session either.
TEST_F(SessionBinding, IsNoWayAroundAnExclusionOrAGoverningSource) {
  const Lease lease = bench_.acquire(kRows);
  const std::string line = bench_.issue(lease, RowBench::change("law", "1"));
  ASSERT_TRUE(bench_.run({"task", "set", "task-1", "--source", "app.db"}).ok());
  EXPECT_EQ(bench_.receive(line).code(), "governing_source_is_destination");
  EXPECT_EQ(bench_.prepare_row(lease, "op-1", "law", "1").code(), "governing_source_is_destination");
  ASSERT_TRUE(bench_.run({"task", "set", "task-1", "--source", kRows}).ok());
  bench_.release(lease);
  const Lease file = bench_.acquire("app.db");
  EXPECT_EQ(bench_.write(file, "x").code(), "governing_source_is_destination");
  bench_.release(file);
  bench_.put(".squad/control/exclusions.json", R"({"sources":["app.db"]})");
  EXPECT_EQ(ask(kRows).code(), "source_excluded");
  bench_.put(".squad/control/exclusions.json", R"({"packages":["session://sqlite.records/accounts"]})");
  EXPECT_EQ(ask("app.db").code(), "package_excluded");
  EXPECT_EQ(bench_.row(), "new 1");
}

TEST(SessionBindings, OfALeaseThatRanOutKeepNothingThoughNoServerEndedIt) {
  RowBench bench(false);
  for (const auto& [held, wanted] : {std::pair<std::string, std::string>{kRows, "app.db"}, {"app.db", kRows}}) {
    bench.acquire(held, "alice", {"--ttl", "1s"});
    ASSERT_TRUE(eventually([&, &wanted = wanted] {
      return bench.run({"acquire", wanted, "--owner", "bob", "--task", "t", "--ttl", "1s"}).ok();
    })) << held;
    ASSERT_TRUE(eventually([&, &held = held] {
      return bench.run({"acquire", held, "--owner", "carol", "--task", "t", "--ttl", "1s"}).ok();
    }));
    ASSERT_TRUE(eventually([&] { return bench.run({"recover"}).ok() && bench.run({"leases"}).at("leases").empty(); }));
  }
}

TEST_F(SessionBinding, BindsNothingElse) {
  bench_.acquire(kRows);
  for (const char* other : {"app.db2", "other.db", "app.db-wal2", "session://sqlite.records/others", kDeploy}) {
    EXPECT_TRUE(ask(other).ok()) << other;
  }
}

TEST_F(SessionBinding, WhoWaitsForTheOneIsGrantedWhenTheOtherIsReleased) {
  for (const auto& [held, wanted] : {std::pair<std::string, std::string>{kRows, "app.db"}, {"app.db", kRows}}) {
    const Lease lease = bench_.acquire(held);
    const auto waiting = bench_.start({"acquire", wanted, "--owner", "bob", "--task", "t", "--wait", "60"});
    EXPECT_EQ(ask(wanted, {"--wait", "1"}).code(), "lease_scope_conflict");
    bench_.release(lease);
    const Answer granted = support::Workbench::answer_of(*waiting);
    ASSERT_TRUE(granted.ok()) << granted.text;
    EXPECT_EQ(bench_.run({"acquire", held, "--owner", "carol", "--task", "t"}).code(), "lease_scope_conflict");
    bench_.release(Lease{wanted, granted.at("leases")[0]});
  }
}

TEST_F(SessionBinding, NobodyOvertakesAWaiterByTheOtherName) {
  const std::string rows = kRows;
  struct Case {
    std::string held, waited, overtaking;
  };
  for (const Case& one : {Case{"app.db", rows, "app.db-wal"}, {rows + "/7", "app.db", rows + "/8"}}) {
    const Lease lease = bench_.acquire(one.held, "carol");
    const auto waiting = bench_.start({"acquire", one.waited, "--owner", "alice", "--task", "t", "--wait", "60"});
    Answer refused;
    EXPECT_TRUE(eventually([&] {
      refused = ask(one.overtaking, {"--ttl", "1s"});
      if (refused.ok()) bench_.release(Lease{one.overtaking, refused.at("leases")[0]});
      return refused.code() == "lease_scope_conflict";
    })) << one.overtaking
        << refused.text;
    EXPECT_EQ(details_of(refused)["waiting"], 1) << refused.text;
    bench_.release(lease);
    const Answer granted = support::Workbench::answer_of(*waiting);
    ASSERT_TRUE(granted.ok()) << granted.text;
    bench_.release(Lease{one.waited, granted.at("leases")[0]});
  }
}

TEST_F(SessionBinding, ALinkToTheDatabaseIsTheDatabase) {
  std::filesystem::create_symlink("app.db", bench_.at("link.db"));
  const Lease session = bench_.acquire(kRows);
  EXPECT_EQ(ask("link.db").code(), "lease_scope_conflict");
  bench_.release(session);
  bench_.acquire("link.db");
  EXPECT_EQ(ask(kRows).code(), "lease_scope_conflict");
}

TEST_F(SessionBinding, ADatabaseOutsideOfTheWorkspaceBindsNoFileInIt) {
  const support::TemporaryFolder outside;
  std::filesystem::copy_file(bench_.at("app.db"), outside.at("app.db"));
  const Answer added = bench_.run({"receiver", "add", "far", "--kind", "sqlite", "--database", outside.at("app.db"),
                                   "--table", "accounts", "--key", "id", "--version-column", "version"});
  ASSERT_TRUE(added.ok()) << added.text;
  const Lease far = bench_.acquire("session://sqlite.records/far");
  EXPECT_TRUE(ask("app.db").ok());
  EXPECT_EQ(bench_.receive(bench_.issue(far, RowBench::change("there", "1"))).code(), "");
  EXPECT_EQ(bench_.row(), "new 1");
}

}  // namespace
}  // namespace holdfast
