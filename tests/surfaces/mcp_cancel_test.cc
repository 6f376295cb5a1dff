// Progress and cancelling: what is told on the way, what stops, and what is carried to its end (field report M25).
#include <gtest/gtest.h>

#include "base/json.h"
#include "support/mcp_client.h"

namespace holdfast {
namespace {

using support::Called;
using support::eventually;
using support::kModernVersion;
using support::McpClient;
using support::Workbench;

constexpr const char* kProgress = "notifications/progress";
constexpr int kNothingMs = 400;

class Conversing : public testing::Test {
 protected:
  Conversing() {
    bench_.put("a.txt", "old");
    bench_.serve();
  }
  static Json waiting(const std::string& owner = "alice") {
    return Json{{"scope", "a.txt"}, {"owner", owner}, {"task", "t"}, {"wait_seconds", 60}};
  }
  static Json cancelled(const Json& id) {
    return Json{
        {"jsonrpc", "2.0"}, {"method", "notifications/cancelled"}, {"params", {{"requestId", id}, {"reason", "r"}}}};
  }
  static void expect_growing(const std::vector<Json>& progress, const Json& token) {
    Json last = -1;
    for (const Json& one : progress) {
      EXPECT_EQ(one["params"]["progressToken"], token);
      EXPECT_GT(one["params"]["progress"], last);
      last = one["params"]["progress"];
    }
  }
  Workbench bench_;
};

TEST_F(Conversing, ProgressOfAWaitingAcquireNamesTheHolderAndEndsWithTheAnswer) {
  for (const char* version : {"2025-11-25", kModernVersion}) {
    McpClient client(bench_, version);
    McpClient holder(bench_);
    const Json keys = holder.lease("a.txt", "bob");
    const Json id = client.start_call("lease_acquire", waiting(), {{"progressToken", "p"}});
    const Json first = client.receive_notification(kProgress);
    EXPECT_NE(text_member(first["params"], "message").find("bob"), std::string::npos) << first;
    ASSERT_EQ(holder.call("lease_release", keys).code(), "");
    const Called got = client.called("lease_acquire", client.response_to(id));
    ASSERT_EQ(got.code(), "");
    std::vector<Json> all = {first};
    for (const Json& one : client.heard(kProgress)) all.push_back(one);
    expect_growing(all, "p");
    EXPECT_TRUE(client.receive(kNothingMs).is_null()) << "nothing after the answer";
    client.call("lease_release", support::keys_of_lease(got.document["leases"][0]));
  }
}

TEST_F(Conversing, ProgressOfALargeWriteGrowsStrictly) {
  McpClient client(bench_);
  const Json keys = client.lease("a.txt");
  Json arguments = keys;
  arguments["content"] = std::string(7U << 20U, 'w');
  const Json id = client.start_call("file_write", arguments, {{"progressToken", 9007199254740991}});
  EXPECT_EQ(client.called("file_write", client.response_to(id)).code(), "");
  expect_growing(client.heard(kProgress), 9007199254740991);
  EXPECT_TRUE(client.receive(kNothingMs).is_null());
}

TEST_F(Conversing, ProgressComesOnlyWithAToken) {
  McpClient holder(bench_);
  const Json keys = holder.lease("a.txt", "bob");
  for (const Json& meta : {Json{{"other", 1}}, Json{{"progressToken", nullptr}}, Json{{"progressToken", 1.5}}}) {
    McpClient client(bench_);
    const Json id = client.start_call("lease_acquire", waiting(), meta);
    EXPECT_TRUE(client.receive(kNothingMs).is_null()) << meta;
    client.send(cancelled(id));
  }
}

// The array that answers a batch is no place for what is to be seen before it.
TEST_F(Conversing, ProgressOfABatchComesBeforeItsAnswer) {
  McpClient client(bench_, "2025-03-26");
  McpClient holder(bench_);
  const Json keys = holder.lease("a.txt", "bob");
  const Json call = {
      {"jsonrpc", "2.0"},
      {"id", 1},
      {"method", "tools/call"},
      {"params", {{"name", "lease_acquire"}, {"arguments", waiting()}, {"_meta", {{"progressToken", 5}}}}}};
  client.send(Json::array({call}));
  const Json progress = client.receive();
  EXPECT_EQ(text_member(progress, "method"), kProgress) << progress;
  ASSERT_EQ(holder.call("lease_release", keys).code(), "");
  Json answer = client.receive();
  while (answer.is_object() && text_member(answer, "method") == kProgress) answer = client.receive();
  ASSERT_TRUE(answer.is_array()) << answer;
  ASSERT_EQ(answer.size(), 1U);
  EXPECT_EQ(answer[0]["id"], 1);
}

TEST_F(Conversing, M25AWaitingAcquireThatIsCancelledIsNeverGrantedLater) {
  for (const char* version : {"2025-11-25", kModernVersion}) {
    McpClient client(bench_, version);
    McpClient holder(bench_);
    const Json keys = holder.lease("a.txt", "bob");
    const Json id = client.start_call("lease_acquire", waiting());
    ASSERT_TRUE(client.answers());
    client.send(cancelled(id));
    EXPECT_TRUE(client.answers());
    ASSERT_EQ(holder.call("lease_release", keys).code(), "");
    EXPECT_TRUE(client.receive(kNothingMs).is_null()) << "a cancelled request is not answered";
    EXPECT_TRUE(eventually([&] { return client.call("lease_list").document["total"] == 0; }));
  }
}

TEST_F(Conversing, M25TheIdOfACancelledRequestCanBeUsedAgain) {
  McpClient client(bench_);
  McpClient holder(bench_);
  holder.lease("a.txt", "bob");
  const Json line = {{"jsonrpc", "2.0"},
                     {"id", "again"},
                     {"method", "tools/call"},
                     {"params", {{"name", "lease_acquire"}, {"arguments", waiting()}}}};
  for (int round = 0; round < 5; ++round) {
    client.send(line);
    client.send(cancelled("again"));
    Json probe = {{"jsonrpc", "2.0"}, {"id", "again"}, {"method", "tools/call"}, {"params", {{"name", "lease_list"}}}};
    EXPECT_TRUE(eventually([&] {
      client.send(probe);
      return client.response_to("again").contains("result");
    }));
  }
}

// What changes something is carried to its end: its outcome is what the client has to know.
TEST_F(Conversing, M25AWriteThatIsCancelledIsAnsweredAllTheSame) {
  McpClient client(bench_);
  Json arguments = client.lease("a.txt");
  arguments["content"] = std::string(5U << 20U, 'w');
  const Json id = client.start_call("file_write", arguments);
  client.send(cancelled(id));
  EXPECT_EQ(client.called("file_write", client.response_to(id)).code(), "");
  EXPECT_EQ(bench_.get("a.txt").size(), std::size_t{5} << 20U);
}

TEST_F(Conversing, CancellingWhatIsNoneOfOursChangesNothing) {
  McpClient client(bench_);
  for (const Json& id : {Json(1), Json("1"), Json(nullptr), Json(1.5), Json::array(), Json("no such")}) {
    client.send(cancelled(id));
  }
  client.send({{"jsonrpc", "2.0"}, {"method", "notifications/cancelled"}});
  client.send({{"jsonrpc", "2.0"}, {"method", "notifications/cancelled"}, {"params", Json::array()}});
  EXPECT_TRUE(client.answers());
  EXPECT_TRUE(client.heard().empty());
}

// An id as text is another than the same as a number.
TEST_F(Conversing, CancellingTheTextOfANumberLeavesTheNumberAlone) {
  McpClient client(bench_);
  McpClient holder(bench_);
  const Json keys = holder.lease("a.txt", "bob");
  const Json id = client.start_call("lease_acquire", waiting());
  client.send(cancelled(std::to_string(id.get<int>())));
  ASSERT_TRUE(client.answers());
  ASSERT_EQ(holder.call("lease_release", keys).code(), "");
  EXPECT_EQ(client.called("lease_acquire", client.response_to(id)).code(), "");
}

}  // namespace
}  // namespace holdfast
