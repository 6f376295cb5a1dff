// B121: fifty writers at once on one row of one database, for some seconds. Check and effect are one exclusive
// transaction: nobody is told that the database is busy, or that a transaction could not be put in an order.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "support/row_receiver.h"

namespace holdfast::receivers {
namespace {

constexpr int kWriters = 50;
constexpr auto kFor = std::chrono::seconds(5);

class ManyWriters : public support::RowReceiverTest {
 protected:
  // Everybody plans on what he last saw, and learns the current version from the refusal.
  void write_until(std::chrono::steady_clock::time_point end, int writer) {
    const auto mine = support::open_row_receiver(database_->config(), "accounts", {"id"});
    if (!mine.ok()) return note(mine.refusal());
    std::string planned = "1";
    for (int turn = 0; std::chrono::steady_clock::now() < end; ++turn) {
      const std::string payload = state_set("writer " + std::to_string(writer));
      const std::string id = std::to_string(writer) + "-" + std::to_string(turn);
      const auto delivery = deliver(**mine, command(id, 5, planned, payload).to_json(), payload, at_mark(5));
      if (!delivery.ok()) {
        note(delivery.refusal());
      } else if (delivery->decision.decision == "accepted") {
        ++applied_;
        planned = delivery->outcome.value("version", "");
      } else if (delivery->decision.decision == "record_version_changed") {
        ++refused_;
        planned = delivery->refusal->details().value("current", "");
      } else {
        note(*delivery->refusal);
      }
    }
  }
  void note(const Refusal& other) {
    ++other_;
    ADD_FAILURE() << other.message();
  }
  std::atomic<int> applied_ = 0;
  std::atomic<int> refused_ = 0;
  std::atomic<int> other_ = 0;
};

TEST_P(ManyWriters, AreServedOneAfterAnotherAndNoneIsToldThatItIsBusy) {
  const auto end = std::chrono::steady_clock::now() + kFor;
  std::vector<std::thread> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([this, end, writer] { write_until(end, writer); });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(other_, 0);
  EXPECT_GT(applied_, 0);
  EXPECT_EQ(version(), std::to_string(1 + applied_)) << "each version was given once";
  EXPECT_EQ(operations(), std::to_string(applied_));
  RecordProperty("applied", applied_);
  RecordProperty("refused", refused_);
}

// Many who come to a database that has no receiver's tables yet: each of them opens.
TEST_P(ManyWriters, MayAllBeTheFirstToOpen) {
  receiver_.reset();
  for (int round = 0; round < 3; ++round) {
    database_->run("DROP TABLE holdfast_marks");
    database_->run("DROP TABLE holdfast_operations");
    std::vector<std::thread> openers;
    for (int opener = 0; opener < 16; ++opener) {
      openers.emplace_back([this] {
        const auto mine = support::open_row_receiver(database_->config(), "accounts", {"id"});
        EXPECT_TRUE(support::granted(mine));
      });
    }
    for (std::thread& opener : openers) opener.join();
  }
}

HOLDFAST_EVERY_ROW_DATABASE(ManyWriters);

}  // namespace
}  // namespace holdfast::receivers
