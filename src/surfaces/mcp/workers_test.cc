// Threads for requests: how many, in which order, and when they rest.
#include "surfaces/mcp/workers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "support/child.h"

namespace holdfast::mcp {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLong{20'000};

// Tasks stay here until it is opened.
class Gate {
 public:
  void open() {
    const std::scoped_lock scoped(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

TEST(Workers, RunAtMostTheirNumberAtOnceAndTheRestInOrder) {
  Workers workers;
  Gate gate;
  std::atomic<int> running = 0;
  std::mutex mutex;
  std::vector<int> late;
  for (int number = 0; number < Workers::kThreads; ++number) {
    workers.submit([&] { ++running, gate.pass(); }, 1);
  }
  ASSERT_TRUE(support::eventually([&] { return running == Workers::kThreads; }));
  std::atomic<bool> began = false;
  workers.submit([&] { began = true; }, 1);
  EXPECT_FALSE(workers.wait_until_idle(milliseconds(50)));
  EXPECT_FALSE(began) << "all of them are busy";
  gate.open();
  EXPECT_TRUE(workers.wait_until_idle(kLong));
  EXPECT_TRUE(began);
}

TEST(Workers, AreIdleOnlyOnceWhatATaskHoldsIsGone) {
  Workers workers;
  std::atomic<bool> gone = false;
  struct Held {
    std::atomic<bool>& gone;
    ~Held() {
      std::this_thread::sleep_for(milliseconds(30));
      gone = true;
    }
  };
  workers.submit([held = std::make_shared<Held>(gone)] {}, 1);
  ASSERT_TRUE(workers.wait_until_idle(kLong));
  EXPECT_TRUE(gone);
  gone = false;
  ASSERT_TRUE(workers.submit_to_own_thread([held = std::make_shared<Held>(gone)] {}));
  ASSERT_TRUE(workers.wait_until_idle(kLong));
  EXPECT_TRUE(gone);
}

TEST(Workers, MakeAClientThatOnlySendsWait) {
  Workers workers;
  Gate gate;
  std::atomic<int> submitted = 0;
  for (int number = 0; number < Workers::kThreads; ++number) workers.submit([&] { gate.pass(); }, 0);
  std::thread sender([&] {
    for (int number = 0; number < 8; ++number) {
      workers.submit([] {}, Workers::kQueuedBytes / 4);
      ++submitted;
    }
  });
  ASSERT_TRUE(support::eventually([&] { return submitted == 4; }));
  std::this_thread::sleep_for(milliseconds(30));
  EXPECT_EQ(submitted, 4) << "more would fill the memory";
  gate.open();
  sender.join();
  EXPECT_TRUE(workers.wait_until_idle(kLong));
}

TEST(Workers, TakeATaskLargerThanAllThatMayWait) {
  Workers workers;
  std::atomic<bool> ran = false;
  workers.submit([&] { ran = true; }, 2 * Workers::kQueuedBytes);
  EXPECT_TRUE(workers.wait_until_idle(kLong));
  EXPECT_TRUE(ran);
}

TEST(Workers, WithAThreadOfTheirOwnTakeNoOthersTurnAndAreBounded) {
  Workers workers;
  Gate gate;
  for (int number = 0; number < Workers::kOwnThreads; ++number) {
    ASSERT_TRUE(workers.submit_to_own_thread([&] { gate.pass(); })) << number;
  }
  EXPECT_FALSE(workers.submit_to_own_thread([] {}));
  std::atomic<bool> ran = false;
  workers.submit([&] { ran = true; }, 1);
  EXPECT_TRUE(support::eventually([&] { return ran.load(); }));
  gate.open();
  EXPECT_TRUE(workers.wait_until_idle(kLong));
  EXPECT_TRUE(workers.submit_to_own_thread([] {})) << "their places are free again";
  EXPECT_TRUE(workers.wait_until_idle(kLong));
}

}  // namespace
}  // namespace holdfast::mcp
