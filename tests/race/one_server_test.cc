// One authority whatever happens to the servers: they are killed and started several at once, while clients go on
// (field report B129). Nobody holds twice, no number is given twice, no lease that was granted is lost.
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include "base/json.h"
#include "support/workbench.h"

namespace holdfast {
namespace {

using support::Answer;
using support::Child;
using support::Lease;
using support::Workbench;

constexpr int kRounds = 20;
constexpr int kStartersEachTime = 3;
constexpr int kClients = 3;

class OneServer : public testing::Test {
 protected:
  OneServer() { bench_.put("shared.txt", "old"); }

  Child serving() const { return support::spawn({HOLDFAST_PROGRAM, "--workspace", bench_.root(), "--json", "serve"}); }

  // Asks until there is an answer of somebody who knows: a server that dies meanwhile is no answer.
  template <typename Verb>
  static Answer insist(const Verb& verb) {
    Answer answer;
    for (int tries = 0; tries < 200; ++tries) {
      answer = verb();
      if (answer.ok() || answer.code() == "stale_lease_generation" || answer.code() == "lease_expired") break;
    }
    return answer;
  }

  void work(int number) {
    const std::string owner = "client-" + std::to_string(number);
    while (!enough_) {
      const Answer granted =
          bench_.run({"acquire", "shared.txt", "--owner", owner, "--task", "t", "--ttl", "10m", "--fresh"});
      if (!granted.ok()) continue;
      const Lease lease{"shared.txt", granted.at("leases").at(0)};
      EXPECT_EQ(holders_.fetch_add(1), 0) << "two hold it at once";
      {
        const std::scoped_lock lock(mutex_);
        EXPECT_TRUE(generations_.insert(lease.generation()).second) << lease.generation() << " was given twice";
      }
      const Answer renewed = insist([&] { return bench_.heartbeat(lease); });
      EXPECT_TRUE(renewed.ok()) << "a granted lease was lost: " << renewed.text;
      holders_.fetch_sub(1);
      bool asked_before = false;
      const Answer released = insist([&] {
        const Answer answer = bench_.release(lease);
        if (answer.code() == "stale_lease_generation") { EXPECT_TRUE(asked_before) << answer.text; }
        asked_before = true;
        return answer;
      });
      EXPECT_TRUE(released.ok() || released.code() == "stale_lease_generation") << released.text;
    }
  }

  std::size_t grants() {
    const std::scoped_lock lock(mutex_);
    return generations_.size();
  }

  Workbench bench_;
  std::atomic<bool> enough_{false};
  std::atomic<int> holders_{0};
  std::mutex mutex_;
  std::set<std::uint64_t> generations_;
};

TEST_F(OneServer, B129OfManyThatStartAsTheLastOneDiesOneServesAndNothingIsGrantedTwiceOrLost) {
  auto current = std::make_unique<Child>(serving());
  ASSERT_FALSE(current->read_line().empty());
  std::vector<std::thread> clients;
  for (int number = 0; number < kClients; ++number) clients.emplace_back([this, number] { work(number); });
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::unique_ptr<Child>> starters;
    for (int number = 0; number < 2 * kStartersEachTime; ++number) {
      if (number == kStartersEachTime) {
        current->kill();
        current->wait();
        current.reset();
      }
      starters.push_back(std::make_unique<Child>(serving()));
    }
    for (auto& starter : starters) {
      const auto said = parse_json(starter->read_line(60'000));
      EXPECT_TRUE(said.has_value());
      if (!said) continue;
      if (said->value("ready", Json()) == Json(true)) {
        EXPECT_EQ(current, nullptr) << "two serve";
        current = std::move(starter);
      } else {
        EXPECT_EQ(said->at("error").at("code"), "server_already_serves") << *said;
        EXPECT_NE(starter->wait(), 0);
      }
    }
    EXPECT_NE(current, nullptr) << "nobody serves";
    if (!current) break;
    EXPECT_EQ(bench_.run({"status"}).at("server").at("pid"), current->pid());
    const std::size_t before = grants();
    EXPECT_TRUE(support::eventually([&] { return grants() >= before + 2; }));
  }
  enough_ = true;
  for (std::thread& client : clients) client.join();
  EXPECT_TRUE(bench_.run({"leases"}).at("leases").empty());
  EXPECT_TRUE(bench_.generations_verify());
  EXPECT_TRUE(bench_.evidence_verifies());
}

}  // namespace
}  // namespace holdfast
