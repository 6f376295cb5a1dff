// The bridge and the server behind it: started once, killed, stopped, and there again (field reports M04, M22, M23).
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "base/json.h"
#include "os/process.h"
#include "support/mcp_client.h"

namespace holdfast {
namespace {

using support::Called;
using support::eventually;
using support::McpClient;
using support::Workbench;

// The pids of the servers that live, by their liveness records.
std::vector<pid_t> servers_of(const Workbench& bench) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator(bench.at(".squad/servers"))) {
    if (entry.path().extension() != ".json") continue;
    const pid_t pid = std::stoi(entry.path().stem());
    if (::kill(pid, 0) == 0) found.push_back(pid);
  }
  return found;
}

class Bridged : public testing::Test {
 protected:
  Bridged() { bench_.put("a.txt", "old"); }
  ~Bridged() override { bench_.run({"stop"}); }
  Workbench bench_;
};

TEST_F(Bridged, M23TwentyAtOnceStartOneServerAndAllOfThemWork) {
  std::vector<std::unique_ptr<McpClient>> clients;
  for (int number = 0; number < 20; ++number) clients.push_back(std::make_unique<McpClient>(bench_, ""));
  std::vector<Json> ids;
  const Json initialize = {{"protocolVersion", "2025-11-25"}, {"capabilities", Json::object()}};
  for (auto& client : clients) client->start("initialize", initialize);
  for (std::size_t number = 0; number < clients.size(); ++number) {
    ids.push_back(clients[number]->start_call(
        "lease_acquire", {{"scope", "f" + std::to_string(number)}, {"owner", std::to_string(number)}, {"task", "t"}}));
  }
  for (std::size_t number = 0; number < clients.size(); ++number) {
    EXPECT_EQ(clients[number]->called("lease_acquire", clients[number]->response_to(ids[number])).code(), "");
  }
  EXPECT_EQ(servers_of(bench_).size(), 1U);
  EXPECT_EQ(clients[0]->call("lease_list").document["total"], 20);
}

TEST_F(Bridged, AKilledServerBetweenTwoCallsIsReplacedAndTheLeaseIsTakenAgain) {
  bench_.serve();
  McpClient client(bench_);
  const Json old = client.lease("a.txt");
  bench_.kill_server();
  const Called refused = client.call("file_write", old, {{"content", "unguarded"}});
  EXPECT_EQ(refused.code(), "server_handle_required") << refused.message();
  EXPECT_EQ(bench_.get("a.txt"), "old");
  const Json fresh = client.lease("a.txt");
  EXPECT_NE(fresh["generation"], old["generation"]);
  EXPECT_EQ(client.call("file_write", fresh, {{"content", "guarded"}}).code(), "");
  EXPECT_EQ(bench_.get("a.txt"), "guarded");
  EXPECT_EQ(servers_of(bench_).size(), 1U);
}

// M04 and B127 through a bridge: wherever the server dies, the write is done once or not at all, and the client is told
// which; under the same operation_id nothing is done twice.
TEST_F(Bridged, M04AServerKilledDuringAWriteDoesItOnceOrNotAtAll) {
  int done = 0;
  int not_done = 0;
  for (const char* point :
       {"write_before_staging", "write_after_intent", "write_before_exchange", "write_after_exchange",
        "write_after_verify", "write_after_commit", "write_after_settled"}) {
    bench_.put("a.txt", "old");
    bench_.serve({{"HOLDFAST_FAULT", std::string(point) + ":kill"}});
    McpClient client(bench_);
    Json keys = client.lease("a.txt");
    const Json write = {{"content", std::string("new ") + point}, {"operation_id", std::string("op-") + point}};
    const Called first = client.call("file_write", keys, write);
    const std::string after = bench_.get("a.txt");
    EXPECT_EQ(first.code() == "", after == write["content"]) << point << " " << first.response;
    EXPECT_TRUE(first.code() == "" || after == "old") << point;
    (after == "old" ? not_done : done)++;
    keys = client.lease("a.txt");
    if (after != "old") {
      // Somebody goes on; then the lost answer is asked for once more.
      ASSERT_EQ(client.call("file_write", keys, {{"content", "later"}}).code(), "") << point;
      EXPECT_EQ(client.call("file_write", keys, write).code(), "") << point;
      EXPECT_EQ(bench_.get("a.txt"), "later") << point << ": not done twice";
    } else {
      EXPECT_EQ(client.call("file_write", keys, write).code(), "") << point;
      EXPECT_EQ(bench_.get("a.txt"), write["content"]) << point;
    }
    EXPECT_EQ(client.call("lease_release", keys).document["content_mismatch"], false) << point;
    EXPECT_EQ(bench_.listing(), support::Words{"a.txt"}) << "no temporary name remains";
    bench_.run({"stop"});
    bench_.kill_server();
  }
  EXPECT_GT(done, 0);
  EXPECT_GT(not_done, 0);
  EXPECT_TRUE(bench_.evidence_verifies());
}

TEST_F(Bridged, AStoppedServerIsNotStartedAgainUntilSomebodyServes) {
  bench_.serve();
  McpClient client(bench_);
  const Json keys = client.lease("a.txt");
  ASSERT_TRUE(bench_.run({"stop"}).ok());
  bench_.wait_for_server();
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(client.call("lease_list").code(), "server_absent");
    EXPECT_EQ(client.call("file_write", keys, {{"content", "x"}}).code(), "server_absent");
    EXPECT_EQ(client.request("resources/read", {{"uri", "holdfast://leases"}})["error"]["data"]["error"]["code"],
              "server_absent");
  }
  EXPECT_TRUE(servers_of(bench_).empty());
  EXPECT_EQ(bench_.get("a.txt"), "old");
  bench_.serve();
  EXPECT_EQ(client.call("lease_heartbeat", keys).code(), "");
  EXPECT_EQ(client.call("lease_list").document["total"], 1);
}

TEST_F(Bridged, AReleaseWhoseAnswerIsLostIsNotAskedTwice) {
  bench_.serve({{"HOLDFAST_FAULT", "release_before_guard_drops:kill"}});
  McpClient client(bench_);
  const Json keys = client.lease("a.txt");
  const Called lost = client.call("lease_release", keys);
  EXPECT_EQ(lost.code(), "server_answer_lost");
  EXPECT_EQ(lost.document["error"]["effect"], "unknown");
  EXPECT_EQ(client.call("lease_list").document["total"], 0) << "it had been released";
}

// B107: "written" is said of bytes that were read back from the name.
TEST_F(Bridged, B107AWriteWhoseBytesAreNotAtTheNameIsNeverConfirmed) {
  bench_.serve({{"HOLDFAST_FAULT", "write_after_exchange:stop"}});
  McpClient client(bench_);
  Json arguments = client.lease("a.txt");
  arguments["content"] = "new";
  const Json id = client.start_call("file_write", arguments);
  ASSERT_TRUE(eventually([&] { return os::is_stopped(bench_.server().pid()); }));
  bench_.put("foreign.txt", "foreign");
  std::filesystem::rename(bench_.at("foreign.txt"), bench_.at("a.txt"));
  bench_.server().cont();
  const Called answer = client.called("file_write", client.response_to(id));
  EXPECT_TRUE(answer.code().starts_with("destination_")) << answer.response;
  EXPECT_NE(answer.document["error"]["effect"], "none");
  EXPECT_EQ(bench_.get("a.txt"), "foreign");
  EXPECT_EQ(client.call("reconcile_list").document["total"], 1);
  arguments["generation"] = client.call("lease_list").document["leases"][0]["generation"];
  EXPECT_EQ(client.call("file_write", arguments).code(), "reconciliation_required");
}

// B103: two server processes, each with a client that only adds.
TEST_F(Bridged, B103WhatTwoBridgesAddIsAllThere) {
  bench_.put("entities.txt", "");
  McpClient one(bench_);
  McpClient two(bench_);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::pair<McpClient*, Json>> asked;
    for (McpClient* client : {&one, &two}) {
      asked.emplace_back(client, client->start_call("lease_acquire", {{"scope", "entities.txt"},
                                                                      {"owner", client == &one ? "one" : "two"},
                                                                      {"task", "add"},
                                                                      {"wait_seconds", 30}}));
    }
    // Whoever is granted first adds and releases; the other then gets its turn.
    for (int turn = 0; turn < 2; ++turn) {
      for (auto& [client, id] : asked) {
        if (id.is_null()) continue;
        const Json response = client->response_to(id, turn == 0 ? 200 : 30'000);
        if (response.is_null()) continue;
        const Called got = client->called("lease_acquire", response);
        ASSERT_EQ(got.code(), "");
        const Json keys = support::keys_of_lease(got.document["leases"][0]);
        const Json read = client->call("file_read", {{"scope", "entities.txt"}}).document;
        const std::string more = text_member(keys, "owner") + std::to_string(round) + "\n";
        ASSERT_EQ(client
                      ->call("file_write", keys,
                             {{"content", text_member(read, "content") + more}, {"preimage_sha256", read["sha256"]}})
                      .code(),
                  "");
        ASSERT_EQ(client->call("lease_release", keys).code(), "");
        id = Json();
      }
    }
  }
  const std::string all = bench_.get("entities.txt");
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 40);
  for (int round = 0; round < 20; ++round) {
    EXPECT_NE(all.find("one" + std::to_string(round) + "\n"), std::string::npos);
    EXPECT_NE(all.find("two" + std::to_string(round) + "\n"), std::string::npos);
  }
}

}  // namespace
}  // namespace holdfast
