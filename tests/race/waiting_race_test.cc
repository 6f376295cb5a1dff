// Many who wait at once, against a real server (field reports B124, B126).
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>

#include "base/json.h"
#include "os/workspace_folder.h"
#include "server/client.h"
#include "support/workbench.h"

namespace holdfast {
namespace {

using support::Workbench;

class ManyWaiters : public testing::Test {
 protected:
  ManyWaiters() { bench_.serve(); }
  os::Connection connect() {
    return std::move(os::connect_to_server(os::open_workspace(bench_.root())->squad)).value();
  }
  static Result<Json> ask(os::Connection& connection, const std::string& verb, Json arguments,
                          const ProgressReport& progress = {}) {
    arguments["cwd"] = "/";
    return call_server(connection, Json{{"verb", verb}, {"arguments", std::move(arguments)}}, nullptr, progress);
  }
  static Json acquire_of(const std::vector<std::string>& scopes, const std::string& owner) {
    Json names = Json::array();
    for (const std::string& scope : scopes) names.push_back("file://project:/" + scope);
    return Json{{"scopes", names}, {"owner", owner}, {"task", "t"}, {"wait_seconds", 120}};
  }
  static void release_all(os::Connection& connection, const Json& answer) {
    for (const Json& lease : answer.at("leases")) {
      const Json keys = {{"scope", "file://" + lease["resource_id"].get<std::string>()},
                         {"owner", lease["owner"]},
                         {"task", lease["task_id"]},
                         {"generation", lease["generation"]},
                         {"started_at", lease["started_at"]}};
      EXPECT_TRUE(ask(connection, "release", keys).ok());
    }
  }
  Workbench bench_;
};

TEST_F(ManyWaiters, B124FiveHundredOnOneScopeAreServedInTheOrderOfTheirComing) {
  constexpr int kCount = 500;
  os::Connection holding = connect();
  const auto held = ask(holding, "acquire", acquire_of({"one"}, "holder"));
  ASSERT_TRUE(held.ok());
  std::mutex mutex;
  std::condition_variable changed;
  int queued = 0;
  std::vector<int> order;
  std::vector<std::thread> waiters;
  for (int number = 0; number < kCount; ++number) {
    waiters.emplace_back([&, number] {
      os::Connection connection = connect();
      bool counted = false;
      const auto answer =
          ask(connection, "acquire", acquire_of({"one"}, "w" + std::to_string(number)), [&](const Json& report) {
            if (counted || !report.contains("waiting")) return;
            counted = true;
            const std::scoped_lock lock(mutex);
            ++queued;
            changed.notify_all();
          });
      EXPECT_TRUE(answer.ok());
      if (!answer.ok()) return;
      {
        const std::scoped_lock lock(mutex);
        order.push_back(number);
      }
      release_all(connection, *answer);
    });
    // The next comes when this one stands in the queue: so their order is known.
    std::unique_lock lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(60), [&] { return queued == number + 1; }));
  }
  release_all(holding, *held);
  for (std::thread& waiter : waiters) waiter.join();
  ASSERT_EQ(order.size(), static_cast<std::size_t>(kCount));
  for (int number = 0; number < kCount; ++number) EXPECT_EQ(order[static_cast<std::size_t>(number)], number);
}

TEST_F(ManyWaiters, B126AThousandRandomPairsComeToAnEnd) {
  constexpr int kThreads = 20;
  constexpr int kRounds = 50;
  std::atomic<int> done{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      std::mt19937 random(static_cast<unsigned>(thread) + 1);
      os::Connection connection = connect();
      for (int round = 0; round < kRounds; ++round) {
        const unsigned first = random() % 8;
        const unsigned second = (first + 1 + random() % 7) % 8;
        const auto answer =
            ask(connection, "acquire",
                acquire_of({"s" + std::to_string(first), "s" + std::to_string(second)}, "t" + std::to_string(thread)));
        EXPECT_TRUE(answer.ok()) << answer.refusal().message();
        if (!answer.ok()) return;
        release_all(connection, *answer);
        done.fetch_add(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(done.load(), kThreads * kRounds);
  EXPECT_TRUE(bench_.run({"leases"}).at("leases").empty());
}

}  // namespace
}  // namespace holdfast
