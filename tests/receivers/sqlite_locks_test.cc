// B117: whoever opens and closes a file of a database in a process that has it open drops SQLite's locks on it. Nothing
// of a delivery does: another process sees them all the time.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "support/child.h"
#include "support/row_receiver.h"

namespace holdfast::receivers {
namespace {

using support::granted;

// The locks of sqlite3's "Locking And Concurrency" and "WAL-mode File Format".
constexpr off_t kReservedByte = 0x40000001;
constexpr off_t kWalWriteByte = 120;

const support::RegisterRole kLockProbe("lock-probe", [](const std::vector<std::string>& arguments) {
  const int file = ::open(arguments.at(0).c_str(), O_RDWR | O_CLOEXEC);
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = std::stol(arguments.at(1));
  lock.l_len = 1;
  if (file < 0 || ::fcntl(file, F_GETLK, &lock) != 0) return 1;
  support::say(lock.l_type == F_UNLCK ? "free" : std::to_string(lock.l_pid));
  ::close(file);
  return 0;
});

class SqliteLocks : public support::RowReceiverTest {
 protected:
  std::string path() const { return database_->config()["database"].get<std::string>(); }
  // Who holds the writer's lock of the database.
  std::string writer() const {
    const bool is_wal = std::string(GetParam().name) == "SqliteWal";
    support::Child probe = support::spawn_as(
        "lock-probe", {is_wal ? path() + "-shm" : path(), std::to_string(is_wal ? kWalWriteByte : kReservedByte)});
    return probe.read_line();
  }
  // Inside of a delivery's transaction, before anything changes.
  std::string delivered(const std::string& id, const std::function<void()>& within) {
    const auto capture = [&](const Json&) -> Result<Json> {
      within();
      return Json("kept");
    };
    const auto delivery = deliver(*receiver_, command(id, 5, version(), paid()).to_json(), paid(), at_mark(5), capture);
    EXPECT_TRUE(granted(delivery));
    return delivery.ok() ? delivery->decision.decision : "";
  }
  const std::string self_ = std::to_string(::getpid());
};

TEST_P(SqliteLocks, AreHeldThroughoutADeliveryWhateverElseOfOursLooksAtTheDatabase) {
  EXPECT_EQ(writer(), "free");
  EXPECT_EQ(delivered("op-1",
                      [&] {
                        EXPECT_EQ(writer(), self_);
                        // Another receiver of the same database is opened, looks, and is closed; so does this one.
                        const auto other = opened("accounts", {"id"});
                        ASSERT_TRUE(other);
                        EXPECT_TRUE(granted(other->observe(command("op-1", 5, "1", paid()), paid())));
                        EXPECT_TRUE(granted(receiver_->observe(command("op-1", 5, "1", paid()), paid())));
                        EXPECT_EQ(writer(), self_);
                      }),
            "accepted");
  EXPECT_EQ(writer(), "free");
  EXPECT_EQ(database_->ask("PRAGMA integrity_check"), "ok");
}

// The attack, which shows that the probe would see it: one open and close of the file itself, and the lock is gone.
TEST_P(SqliteLocks, AreGoneWhereThisProcessItselfOpensAndClosesTheFile) {
  std::string left;
  delivered("op-1", [&] {
    const std::string file = std::string(GetParam().name) == "SqliteWal" ? path() + "-shm" : path();
    ::close(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
    left = writer();
  });
  EXPECT_EQ(left, "free");
}

INSTANTIATE_TEST_SUITE_P(Every, SqliteLocks,
                         testing::Values(support::every_row_database()[0], support::every_row_database()[1]),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace holdfast::receivers
