// Many agents at once, each with a bridge of its own (field reports B104, B111, B115, M25, M38).
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>

#include "base/json.h"
#include "support/mcp_client.h"

namespace holdfast {
namespace {

using support::Called;
using support::McpClient;
using support::Workbench;

class Agents : public testing::Test {
 protected:
  Agents() { bench_.serve(); }
  // Each agent works in a thread of its own, over a bridge of its own.
  void run(int agents, const std::function<void(McpClient& client, const std::string& owner)>& work) {
    std::vector<std::thread> threads;
    for (int number = 0; number < agents; ++number) {
      threads.emplace_back([&, number] {
        McpClient client(bench_);
        work(client, "agent-" + std::to_string(number));
      });
    }
    for (std::thread& one : threads) one.join();
  }
  static Json lease(McpClient& client, const std::string& scope, const std::string& owner) {
    return client.lease(scope, owner, {{"wait_seconds", 120}});
  }
  Workbench bench_;
};

// M25: the grant and the cancel meet in every order. Whatever happens, either the client has been told of the lease, or
// nobody holds it: never a lease that nobody knows.
TEST_F(Agents, M25ACancelThatMeetsTheGrantNeverLeavesALeaseThatNobodyKnows) {
  McpClient holder(bench_);
  McpClient client(bench_);
  constexpr int kRounds = 1000;
  int told = 0;
  for (int round = 0; round < kRounds; ++round) {
    // Waits where the server has yet to see that somebody cannot be told; a lease that nobody knows would outlast it.
    const Json keys = holder.lease("session://s", "bob", {{"wait_seconds", 10}});
    ASSERT_FALSE(keys.empty()) << "round " << round << ": a lease that nobody was told of";
    client.send(
        {{"jsonrpc", "2.0"},
         {"id", "r"},
         {"method", "tools/call"},
         {"params",
          {{"name", "lease_acquire"},
           {"arguments", {{"scope", "session://s"}, {"owner", "alice"}, {"task", "t"}, {"wait_seconds", 60}}}}}});
    const bool waits_already = round % 4 != 0;
    ASSERT_TRUE(!waits_already || client.answers());
    std::thread releasing([&] { EXPECT_EQ(holder.call("lease_release", keys).code(), ""); });
    ::usleep(static_cast<useconds_t>(round * 397 % 24'000));
    client.send({{"jsonrpc", "2.0"}, {"method", "notifications/cancelled"}, {"params", {{"requestId", "r"}}}});
    releasing.join();
    // The id is free again once the request is settled.
    Json granted;
    for (Json list; list.is_null();) {
      client.send({{"jsonrpc", "2.0"}, {"id", "r"}, {"method", "tools/call"}, {"params", {{"name", "lease_list"}}}});
      for (bool answered = false; !answered;) {
        const Json response = client.response_to("r");
        ASSERT_FALSE(response.is_null());
        const Json document = response.contains("result") ? response["result"]["structuredContent"] : Json::object();
        const bool is_grant = document.contains("granted");
        if (is_grant) granted = document;
        if (document.contains("total")) list = document;
        // The answer to a grant frees the id before it goes out: the list may overtake it.
        const bool is_late = list.is_object() && granted.is_null() && list["total"] == 1 &&
                             text_member(list["leases"][0], "owner") == "alice";
        if (is_late) {
          const Json late = client.response_to("r", 1'000);
          if (late.is_object() && late.contains("result")) granted = late["result"]["structuredContent"];
        }
        answered = !is_grant;
      }
    }
    if (!granted.is_null()) {
      ++told;
      ASSERT_EQ(client.call("lease_release", support::keys_of_lease(granted["leases"][0])).code(), "");
    }
  }
  RecordProperty("told", told);
  EXPECT_TRUE(support::eventually([&] { return client.call("lease_list").document["total"] == 0; }));
}

// M38: eight claim at once, round after round.
TEST_F(Agents, M38OfEightWhoClaimAtOnceOneWinsEachRound) {
  constexpr int kAgents = 8;
  constexpr int kRounds = 500;
  std::vector<std::unique_ptr<McpClient>> clients;
  for (int number = 0; number < kAgents; ++number) clients.push_back(std::make_unique<McpClient>(bench_));
  for (int round = 0; round < kRounds; ++round) {
    std::vector<Json> ids;
    for (int number = 0; number < kAgents; ++number) {
      ids.push_back(clients[static_cast<std::size_t>(number)]->start_call(
          "lease_acquire", {{"scope", "session://claim"}, {"owner", std::to_string(number)}, {"task", "t"}}));
    }
    int winners = 0;
    for (std::size_t number = 0; number < clients.size(); ++number) {
      const Called got = clients[number]->called("lease_acquire", clients[number]->response_to(ids[number]));
      if (got.code() != "") {
        EXPECT_EQ(got.code(), "lease_scope_conflict");
        continue;
      }
      ++winners;
      // Released only after every claim of this round was answered: the others cannot win after it.
      ids[number] = support::keys_of_lease(got.document["leases"][0]);
    }
    ASSERT_EQ(winners, 1) << "round " << round;
    for (std::size_t number = 0; number < clients.size(); ++number) {
      if (!ids[number].is_object()) continue;
      ASSERT_EQ(clients[number]->call("lease_release", ids[number]).code(), "");
    }
  }
}

// B104: eleven sessions update one JSON file. (tests/race/lease_race_test.cc does the same with verbs, 8 x 500.)
TEST_F(Agents, B104ElevenSessionsKeepOneJsonFileWholeAndItsCounterExact) {
  constexpr int kAgents = 11;
  constexpr int kUpdates = 100;
  bench_.put("state.json", R"({"counter":0})");
  std::atomic<bool> ended = false;
  std::thread reader([&] {
    while (!ended) {
      const auto state = parse_json(bench_.get("state.json"));
      EXPECT_TRUE(state && state->contains("counter")) << "a reader saw something else than whole JSON";
      ::usleep(500);
    }
  });
  run(kAgents, [&](McpClient& client, const std::string& owner) {
    for (int update = 0; update < kUpdates; ++update) {
      const Json keys = lease(client, "state.json", owner);
      const Json read = client.call("file_read", {{"scope", "state.json"}}).document;
      Json state = *parse_json(text_member(read, "content"));
      state["counter"] = state["counter"].get<int>() + 1;
      state[owner] = update;
      ASSERT_EQ(
          client.call("file_write", keys, {{"content", dump_ascii(state)}, {"preimage_sha256", read["sha256"]}}).code(),
          "");
      ASSERT_EQ(client.call("lease_release", keys).code(), "");
    }
  });
  ended = true;
  reader.join();
  const auto state = parse_json(bench_.get("state.json"));
  ASSERT_TRUE(state.has_value());
  EXPECT_EQ((*state)["counter"], kAgents * kUpdates);
  EXPECT_EQ(bench_.run({"quarantine", "list"}).at("quarantine").size(), 0U);
  EXPECT_TRUE(bench_.evidence_verifies());
}

// B111: one refresh for each expiry of a token that may be used once; the losers read again.
TEST_F(Agents, B111OfEightWhoSeeAnExpiredTokenOneRefreshesIt) {
  constexpr int kExpiries = 5;
  bench_.put("token.json", R"({"serial":0})");
  std::atomic<int> refreshes = 0;
  run(8, [&](McpClient& client, const std::string& owner) {
    for (int expiry = 0; expiry < kExpiries; ++expiry) {
      // Every agent has seen the token with this serial expire.
      const Json keys = lease(client, "token.json", owner);
      const Json read = client.call("file_read", {{"scope", "token.json"}}).document;
      if ((*parse_json(text_member(read, "content")))["serial"] == expiry) {
        ++refreshes;
        const std::string next = dump_ascii(Json{{"serial", expiry + 1}});
        ASSERT_EQ(client.call("file_write", keys, {{"content", next}, {"preimage_sha256", read["sha256"]}}).code(), "");
      }
      ASSERT_EQ(client.call("lease_release", keys).code(), "");
    }
  });
  EXPECT_EQ(refreshes, kExpiries);
}

// B115: eight agents commit at once to a repository whose lock file lets only one in and fails the others.
TEST_F(Agents, B115EightWhoCommitUnderALeaseAllSucceed) {
  bench_.put("history", "");
  const std::string commit =
      "set -C; : > index.lock || exit 9; set +C; n=$(wc -l < history); sleep 0.02; echo $((n + 1)) >> history; "
      "rm index.lock";
  std::vector<std::unique_ptr<support::Child>> agents;
  for (int number = 0; number < 8; ++number) {
    agents.push_back(bench_.start({"hold", "session://git", "--owner", "agent-" + std::to_string(number), "--task",
                                   "commit", "--wait", "120", "--", "sh", "-c", commit}));
  }
  for (auto& agent : agents) EXPECT_EQ(Workbench::answer_of(*agent).status, 0);
  EXPECT_EQ(bench_.get("history"), "1\n2\n3\n4\n5\n6\n7\n8\n");
}

}  // namespace
}  // namespace holdfast
