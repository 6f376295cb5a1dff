// A managed SQLite session whose server died (CONTRACT section 3, re-grant): the tenancy is bound to the database's
// identity, and that, with the proof of death, is enough for the same owner and task.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>

#include "base/json.h"
#include "support/workbench.h"

namespace holdfast {
namespace {

using support::Answer;
using support::Lease;
using support::Words;
using support::Workbench;
using support::operator+;

constexpr const char* kSession = "session://sqlite.records/accounts";

void make_database(const std::string& path) {
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(database,
                         "CREATE TABLE accounts(id INTEGER PRIMARY KEY, state TEXT, version INTEGER NOT NULL);"
                         "INSERT INTO accounts VALUES(7,'new',1)",
                         nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(database);
}

class ManagedSession : public testing::Test {
 protected:
  ManagedSession() {
    make_database(bench_.at("app.db"));
    bench_.serve();
    EXPECT_TRUE(bench_
                    .run({"receiver", "add", "accounts", "--kind", "sqlite", "--database", bench_.at("app.db"),
                          "--table", "accounts", "--key", "id", "--version-column", "version"})
                    .ok());
  }
  Answer acquire_again(const char* owner = "alice", const char* scope = kSession) const {
    return bench_.run({"acquire", scope, "--owner", owner, "--task", "task-1"});
  }
  void server_dies_and_another_comes() {
    bench_.kill_server();
    bench_.serve();
  }
  Workbench bench_;
};

TEST_F(ManagedSession, IsGrantedAnewToItsOwnerWhoseServerDied) {
  const Lease before = bench_.acquire(kSession);
  EXPECT_EQ(before.record["os_lock"]["enforced"], false);
  server_dies_and_another_comes();
  const Answer again = acquire_again();
  ASSERT_TRUE(again.ok()) << again.text;
  EXPECT_EQ(again.at("granted"), "regrant");
  EXPECT_GT(exact_u64(again.at("leases")[0]["generation"]).value_or(0), before.generation());
}

TEST_F(ManagedSession, IsNotGrantedToAnotherOwner) {
  (void)bench_.acquire(kSession);
  server_dies_and_another_comes();
  EXPECT_EQ(acquire_again("bob").code(), "lease_scope_conflict");
}

TEST_F(ManagedSession, IsNotGrantedAnewWhereAnotherDatabaseBearsTheName) {
  (void)bench_.acquire(kSession);
  bench_.kill_server();
  std::filesystem::rename(bench_.at("app.db"), bench_.at("moved.db"));
  make_database(bench_.at("app.db"));
  bench_.serve();
  EXPECT_EQ(acquire_again().code(), "dead_holder_not_proven");
}

TEST_F(ManagedSession, OfNoRegisteredDatabaseWaitsForItsTimeAsBefore) {
  (void)bench_.acquire("session://build");
  server_dies_and_another_comes();
  EXPECT_EQ(acquire_again("alice", "session://build").code(), "dead_holder_not_proven");
}

}  // namespace
}  // namespace holdfast
