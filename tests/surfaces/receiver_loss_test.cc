// Attacks on what a receiver stands on: its database is deleted, replaced, locked, made read-only, filled up or
// corrupted; PostgreSQL is stopped; the workspace's record of it is spoilt; its process is killed. Nothing is lost or
// applied twice, every answer is one of the catalogue, and once the cause is gone the work goes on.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "support/mounted.h"
#include "support/row_workbench.h"

namespace holdfast {
namespace {

using support::Answer;
using support::Lease;
using support::PrivatePostgres;
using support::RowDatabase;
using support::RowWorkbench;
using support::Words;
using support::Workbench;
using support::operator+;

class LostDatabase : public testing::Test {
 protected:
  LostDatabase() : ground_("sqlite") {
    ground_.bench.serve();
    EXPECT_TRUE(ground_.add().ok());
    lease_ = ground_.acquire("ada");
    command_ = ground_.issue(lease_, "op-1", "1");
  }
  std::string database() const { return ground_.rows.where(); }
  std::string code_of_delivery() const { return ground_.deliver(command_).code(); }
  void goes_on() {
    const Answer answer = ground_.deliver(command_);
    EXPECT_TRUE(answer.ok()) << answer.text;
    EXPECT_EQ(ground_.rows.version(), "2");
    EXPECT_EQ(ground_.rows.applied(), "1");
    EXPECT_TRUE(ground_.is_open());
    EXPECT_TRUE(ground_.bench.evidence_verifies());
  }
  RowWorkbench ground_;
  Lease lease_;
  std::string command_;
};

TEST_F(LostDatabase, DeletedAndPutBackIsReachableAgain) {
  std::filesystem::rename(database(), database() + ".away");
  for (int time = 0; time < 3; ++time) EXPECT_EQ(code_of_delivery(), "receiver_unreachable");
  EXPECT_FALSE(std::filesystem::exists(database())) << "nothing is made where nothing was";
  std::filesystem::rename(database() + ".away", database());
  goes_on();
}

TEST_F(LostDatabase, ReplacedByAnOlderCopyStaysClosedUntilItIsReseeded) {
  std::filesystem::copy_file(database(), database() + ".old");
  ASSERT_TRUE(ground_.bench.release(lease_).ok());
  lease_ = ground_.acquire("bob");
  std::filesystem::rename(database() + ".old", database());
  command_ = ground_.issue(lease_, "op-1", "1");
  EXPECT_EQ(code_of_delivery(), "receiver_unreachable") << "it has the file open that bore the name";
  for (int time = 0; time < 2; ++time) EXPECT_EQ(code_of_delivery(), "receiver_high_water_missing");
  ASSERT_TRUE(ground_.bench.run({"receiver", "reseed", "accounts", "--reason", "looked at"}).ok());
  goes_on();
}

// `receiver reseed` is what a person asks for first of all.
TEST_F(LostDatabase, ReplacedIsReseededWithoutADeliveryBetween) {
  std::filesystem::copy_file(database(), database() + ".other");
  RowDatabase("sqlite", database() + ".other").run("DELETE FROM holdfast_marks");
  std::filesystem::rename(database() + ".other", database());
  Answer answer;
  for (int time = 0; time < 2 && !answer.ok(); ++time) {
    answer = ground_.bench.run({"receiver", "reseed", "accounts", "--reason", "looked at"});
  }
  EXPECT_TRUE(answer.ok()) << answer.text;
  goes_on();
}

TEST_F(LostDatabase, LockedForEverIsUnreachableAndKeepsNobodyElseOut) {
  ground_.bench.put("b.txt", "old");
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(database().c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr), SQLITE_OK);
  const auto delivering = ground_.bench.start({"receive"});
  delivering->write(command_);
  delivering->close_input();
  // Others wait while it does, and are served before their own limit.
  const Answer beside = ground_.bench.run({"acquire", "b.txt", "--owner", "eve", "--task", "t"});
  EXPECT_TRUE(beside.ok()) << beside.text;
  EXPECT_EQ(Workbench::answer_of(*delivering).code(), "receiver_unreachable");
  ASSERT_EQ(sqlite3_exec(other, "ROLLBACK", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(other);
  goes_on();
}

TEST_F(LostDatabase, CorruptedIsUnreachable) {
  ground_.restart();
  std::filesystem::copy_file(database(), database() + ".good");
  const int file = ::open(database().c_str(), O_WRONLY | O_CLOEXEC);
  const std::string noise(static_cast<std::size_t>(std::filesystem::file_size(database())), 'X');
  ASSERT_EQ(::pwrite(file, noise.data(), noise.size(), 0), static_cast<ssize_t>(noise.size()));
  ::close(file);
  for (int time = 0; time < 2; ++time) EXPECT_EQ(code_of_delivery(), "receiver_unreachable");
  std::filesystem::rename(database() + ".good", database());
  goes_on();
}

TEST_F(LostDatabase, WhoseOperationsAreSpoiltAppliesNothingByThem) {
  ASSERT_TRUE(ground_.deliver(command_).ok());
  ground_.rows.run("UPDATE holdfast_operations SET outcome='garbage'");
  EXPECT_EQ(code_of_delivery(), "receiver_unreachable");
  ground_.rows.run("UPDATE holdfast_marks SET generation='garbage'");
  EXPECT_EQ(code_of_delivery(), "receiver_high_water_missing");
  EXPECT_EQ(ground_.rows.version(), "2");
}

class ReceiversRecord : public LostDatabase {
 protected:
  std::string record() const { return ".squad/receivers/accounts.json"; }
};

TEST_F(ReceiversRecord, SpoiltIsUnreadableAndOpensNothing) {
  const std::string good = ground_.bench.get(record());
  const Json document = *parse_json(good);
  const auto spoilt = [&](const std::string& member, const Json& value) {
    Json other = document;
    other[member] = value;
    return other.dump();
  };
  for (const std::string& bytes :
       {std::string(), std::string("garbage"), good.substr(0, good.size() / 2), std::string("[]"),
        spoilt("closed", "text"), spoilt("closed", 7), spoilt("config", "text"), spoilt("config", Json::array()),
        spoilt("marks", Json::array()), spoilt("marks", {{"session://sqlite.records/accounts", 1.5}}),
        spoilt("name", "another"), spoilt("name", "../accounts"), spoilt("resource", nullptr),
        spoilt("protocol", "other")}) {
    ground_.bench.put(record(), bytes);
    EXPECT_EQ(code_of_delivery(), "state_unreadable") << bytes;
    EXPECT_EQ(ground_.bench.run({"receiver", "list"}).code(), "state_unreadable") << bytes;
  }
  EXPECT_EQ(ground_.rows.version(), "1");
  ground_.bench.put(record(), good);
  goes_on();
}

TEST_F(ReceiversRecord, ThatIsALinkIsNotFollowed) {
  const std::string good = ground_.bench.get(record());
  ground_.bench.put("elsewhere.json", good);
  std::filesystem::remove(ground_.bench.at(record()));
  std::filesystem::create_symlink(ground_.bench.at("elsewhere.json"), ground_.bench.at(record()));
  const Answer answer = ground_.deliver(command_);
  EXPECT_FALSE(answer.code().empty()) << answer.text;
  EXPECT_EQ(ground_.rows.version(), "1");
  std::filesystem::remove(ground_.bench.at(record()));
  ground_.bench.put(record(), good);
  goes_on();
}

// What was opened under a name is not used for another database that is added under it.
TEST_F(ReceiversRecord, DeletedAndAddedAgainForAnotherDatabaseUsesThatOne) {
  const RowDatabase other("sqlite", ground_.bench.at("other.db"));
  other.make();
  std::filesystem::remove(ground_.bench.at(record()));
  EXPECT_EQ(code_of_delivery(), "not_found");
  ASSERT_TRUE(ground_.bench.run(other.receiver_add("accounts")).ok());
  lease_ = ground_.acquire("ada");
  EXPECT_TRUE(ground_.deliver(ground_.issue(lease_, "op-2", "1")).ok());
  EXPECT_EQ(other.version(), "2");
  EXPECT_EQ(ground_.rows.version(), "1");
}

TEST_F(ReceiversRecord, OfASecondReceiverOfTheSameRowsIsNotMade) {
  EXPECT_EQ(ground_.bench.run(ground_.rows.receiver_add("twin")).code(), "target_exists");
  std::filesystem::create_symlink(database(), database() + ".link");
  EXPECT_EQ(ground_.bench.run(RowDatabase("sqlite", database() + ".link").receiver_add("twin")).code(),
            "target_exists");
}

TEST_F(LostDatabase, ReceiverThatIsKilledBetweenTwoCommandsIsNotMissed) {
  ASSERT_TRUE(ground_.deliver(command_).ok());
  for (int number = 2; number < 6; ++number) {
    const auto processes = support::receiver_processes_of(ground_.bench.server().pid());
    ASSERT_EQ(processes.size(), 1U);
    ::kill(processes.front(), SIGKILL);
    ASSERT_TRUE(
        support::eventually([&] { return support::receiver_processes_of(ground_.bench.server().pid()).empty(); }));
    const Answer answer =
        ground_.deliver(ground_.issue(lease_, "op-" + std::to_string(number), std::to_string(number)));
    EXPECT_TRUE(answer.ok()) << answer.text;
  }
  EXPECT_EQ(ground_.rows.version(), "6");
  EXPECT_EQ(ground_.rows.applied(), "5");
}

// It is given up before those who wait for the same transition give up themselves.
TEST_F(LostDatabase, ReceiverThatHangsIsGivenUpAndItsOutcomeIsUnknownUntilAskedAgain) {
  ground_.bench.put("b.txt", "old");
  const auto processes = support::receiver_processes_of(ground_.bench.server().pid());
  ASSERT_EQ(processes.size(), 1U);
  ::kill(processes.front(), SIGSTOP);
  const auto delivering = ground_.bench.start({"receive"});
  delivering->write(command_);
  delivering->close_input();
  const Answer beside = ground_.bench.run({"acquire", "b.txt", "--owner", "eve", "--task", "t"});
  EXPECT_TRUE(beside.ok()) << beside.text;
  EXPECT_EQ(Workbench::answer_of(*delivering).code(), "receiver_outcome_unknown");
  goes_on();
}

// An SQLite receiver's folder on a small file system of its own: full, and read-only.
TEST(SmallDisk, FullOrReadOnlyIsUnreachableAndLeavesRowAndOperationsTogether) {
  const support::TemporaryFolder disk;
  ASSERT_EQ(::mount("none", disk.path().c_str(), "tmpfs", 0, "size=256k"), 0);
  const support::Mounted mounted(disk.path());
  const RowDatabase rows("sqlite", disk.at("rows.db"));
  rows.make();
  Workbench bench;
  bench.serve();
  ASSERT_TRUE(bench.run(rows.receiver_add("accounts")).ok());
  const Lease lease = bench.acquire(rows.resource(), "ada");
  const auto issued = [&](const std::string& operation, const std::string& state) {
    const Words row = {"--key", "id=integer:7", "--set", "state=text:" + state, "--precondition", rows.version()};
    return bench.run(Words{"issue", rows.resource()} + lease.keys() + row + Words{"--operation-id", operation}).text;
  };
  const std::string large = issued("op-1", std::string(60'000, 'x'));
  {
    disk.write("filler", "");
    const int filler = ::open(disk.at("filler").c_str(), O_WRONLY | O_CLOEXEC);
    const std::string page(4096, 'f');
    while (::write(filler, page.data(), page.size()) > 0) {}
    ::close(filler);
  }
  EXPECT_EQ(bench.run({"receive"}, large).code(), "receiver_unreachable");
  EXPECT_EQ(rows.version(), "1");
  EXPECT_EQ(rows.applied(), "0");
  std::filesystem::remove(disk.at("filler"));
  bench.kill_server();  // what is open for writing keeps a file system from being made read-only
  EXPECT_EQ(::mount(nullptr, disk.path().c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr), 0);
  bench.serve();
  EXPECT_EQ(bench.run({"receive"}, large).code(), "receiver_unreachable");
  EXPECT_EQ(::mount(nullptr, disk.path().c_str(), nullptr, MS_REMOUNT, nullptr), 0);
  const Answer answer = bench.run({"receive"}, large);
  EXPECT_TRUE(answer.ok()) << answer.text;
  EXPECT_EQ(rows.version(), "2");
  EXPECT_EQ(rows.applied(), "1");
}

// A server that reaches none of its receivers grants all the same, and says that this one is closed.
TEST_F(LostDatabase, AtATakeoverLeavesTheReceiverClosedUntilACommandOpensIt) {
  ASSERT_TRUE(ground_.bench.release(lease_).ok());
  std::filesystem::rename(database(), database() + ".away");
  const Words taking = {"acquire", ground_.rows.resource(), "--owner", "bob", "--task", "t"};
  const Answer taken = ground_.bench.run(taking);
  ASSERT_TRUE(taken.ok()) << taken.text;
  EXPECT_EQ(taken.at("receivers").at(0).at("state"), "closed") << taken.text;
  const std::string late = command_;
  lease_ = Lease{ground_.rows.resource(), taken.at("leases").at(0)};
  command_ = ground_.issue(lease_, "op-2", "1");
  EXPECT_EQ(code_of_delivery(), "receiver_unreachable");
  std::filesystem::rename(database() + ".away", database());
  EXPECT_EQ(ground_.deliver(late).code(), "stale_lease_generation");
  goes_on();
}

TEST(LostPostgres, StoppedInTheMiddleOrWronglyNamedIsUnreachableAndGoesOn) {
  RowWorkbench ground("postgres");
  ground.bench.serve();
  const RowDatabase nowhere("postgres", "host=/nowhere connect_timeout=2");
  EXPECT_EQ(ground.bench.run(nowhere.receiver_add("accounts")).code(), "receiver_unreachable");
  EXPECT_EQ(ground.bench.run(RowDatabase("postgres", "no connection at all").receiver_add("accounts")).code(),
            "receiver_unreachable");
  EXPECT_EQ(ground.bench.run(RowDatabase("postgres", "user=a password=b").receiver_add("accounts")).code(), "usage");
  ASSERT_TRUE(ground.add().ok()) << "what failed before left nothing of itself";
  const Lease lease = ground.acquire("ada");
  const std::string command = ground.issue(lease, "op-1", "1");
  ground.rows.run(
      "CREATE FUNCTION linger() RETURNS trigger AS $$ BEGIN PERFORM pg_sleep(20); RETURN NULL; END $$ LANGUAGE "
      "plpgsql");
  ground.rows.run(
      "CREATE CONSTRAINT TRIGGER lingers AFTER UPDATE ON accounts DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE "
      "FUNCTION linger()");
  const auto delivering = ground.bench.start({"receive"});
  delivering->write(command);
  delivering->close_input();
  const std::string committing = "SELECT count(*) FROM pg_stat_activity WHERE state='active' AND query='COMMIT'";
  ASSERT_TRUE(support::eventually([&] { return ground.rows.one(committing) == "1"; }));
  ground.crash_postgres();
  EXPECT_EQ(Workbench::answer_of(*delivering).code(), "receiver_outcome_unknown");
  ground.rows.run("DROP TRIGGER lingers ON accounts");
  const std::string version = ground.rows.version();
  const Answer again = ground.deliver(command);
  ASSERT_TRUE(again.ok()) << again.text;
  EXPECT_EQ(again.at("repeated"), version == "2");
  EXPECT_EQ(ground.rows.version(), "2");
  EXPECT_EQ(ground.rows.applied(), "1");
  EXPECT_TRUE(ground.is_open());
}

}  // namespace
}  // namespace holdfast
