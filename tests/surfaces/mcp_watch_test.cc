// Who is told when a resource changes, in each era's own form.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/json.h"
#include "support/mcp_client.h"

namespace holdfast {
namespace {

using support::kModernVersion;
using support::kSubscriptionKey;
using support::McpClient;
using support::Workbench;

constexpr const char* kUpdated = "notifications/resources/updated";
constexpr const char* kAcknowledged = "notifications/subscriptions/acknowledged";
constexpr const char* kLeases = "holdfast://leases";
constexpr int kNothingMs = 1'000;  // several looks

class Watching : public testing::Test {
 protected:
  Watching() { bench_.serve(); }
  void change() { bench_.acquire("session://" + std::to_string(++changes_)); }
  static Json filter(const Json& uris) { return Json{{"notifications", {{"resourceSubscriptions", uris}}}}; }
  static Json cancelled(const Json& id) {
    return Json{{"jsonrpc", "2.0"}, {"method", "notifications/cancelled"}, {"params", {{"requestId", id}}}};
  }
  Workbench bench_;
  int changes_ = 0;
};

TEST_F(Watching, ALegacySubscriberIsToldOfAChangeUntilItUnsubscribes) {
  McpClient client(bench_);
  EXPECT_TRUE(client.request("resources/subscribe", {{"uri", kLeases}}).contains("result"));
  EXPECT_TRUE(client.receive(kNothingMs).is_null()) << "nothing has changed";
  for (int round = 0; round < 2; ++round) {
    change();
    const Json told = client.receive_notification(kUpdated);
    EXPECT_EQ(told["params"]["uri"], kLeases);
    EXPECT_FALSE(told["params"].contains("_meta"));
  }
  EXPECT_TRUE(client.request("resources/unsubscribe", {{"uri", kLeases}}).contains("result"));
  while (!client.receive(kNothingMs).is_null()) {}
  change();
  EXPECT_TRUE(client.receive(kNothingMs).is_null());
}

TEST_F(Watching, WhatDoesNotExistCannotBeSubscribedTo) {
  McpClient client(bench_);
  EXPECT_EQ(client.request("resources/subscribe", {{"uri", "holdfast://evidence/none"}})["error"]["code"], -32002);
  EXPECT_EQ(client.request("resources/subscribe", {{"uri", "file:///etc/passwd"}})["error"]["code"], -32002);
  EXPECT_EQ(client.request("resources/subscribe")["error"]["code"], -32602);
  EXPECT_EQ(client.request("resources/subscribe", {{"uri", 7}})["error"]["code"], -32602);
  EXPECT_TRUE(client.request("resources/unsubscribe", {{"uri", "holdfast://evidence/none"}}).contains("result"));
}

TEST_F(Watching, AModernListenerIsAcknowledgedFirstAndToldUnderItsId) {
  McpClient client(bench_, kModernVersion);
  const Json id = client.start("subscriptions/listen", filter({kLeases, "holdfast://evidence/none"}));
  const Json first = client.receive();
  EXPECT_EQ(text_member(first, "method"), kAcknowledged) << first;
  EXPECT_EQ(first["params"]["_meta"][kSubscriptionKey], id);
  EXPECT_EQ(first["params"]["notifications"], (Json{{"resourceSubscriptions", {kLeases}}})) << "only what is agreed to";
  change();
  const Json told = client.receive_notification(kUpdated);
  EXPECT_EQ(told["params"]["uri"], kLeases);
  EXPECT_EQ(told["params"]["_meta"][kSubscriptionKey], id);
  client.send(cancelled(id));
  ASSERT_TRUE(client.answers());
  while (!client.receive(kNothingMs).is_null()) {}
  change();
  EXPECT_TRUE(client.receive(kNothingMs).is_null());
}

TEST_F(Watching, AListenerThatIsCancelledAtOnceIsNeverTold) {
  McpClient client(bench_, kModernVersion);
  for (int round = 0; round < 20; ++round) {
    const Json id = client.start("subscriptions/listen", filter({kLeases}));
    client.send(cancelled(id));
  }
  ASSERT_TRUE(client.answers());
  while (!client.receive(kNothingMs).is_null()) {}
  change();
  EXPECT_TRUE(client.receive(kNothingMs).is_null());
}

TEST_F(Watching, EachOpenSubscriptionEndsWithAResultAtTheEndOfInput) {
  McpClient client(bench_, kModernVersion);
  const Json one = client.start("subscriptions/listen", filter({kLeases}));
  const Json two = client.start("subscriptions/listen", {{"notifications", {{"toolsListChanged", true}}}});
  const Json gone = client.start("subscriptions/listen", filter({kLeases}));
  for (int number = 0; number < 3; ++number) EXPECT_EQ(text_member(client.receive(), "method"), kAcknowledged);
  client.send(cancelled(gone));
  client.bridge().close_input();
  std::vector<Json> ended;
  for (Json message = client.receive(); !message.is_null(); message = client.receive()) {
    if (!message.contains("id")) continue;
    EXPECT_EQ(message["result"]["resultType"], "complete");
    EXPECT_EQ(message["result"]["_meta"][kSubscriptionKey], message["id"]);
    ended.push_back(message["id"]);
  }
  EXPECT_EQ(ended.size(), 2U);
  EXPECT_EQ(std::count(ended.begin(), ended.end(), one), 1);
  EXPECT_EQ(std::count(ended.begin(), ended.end(), two), 1);
  EXPECT_EQ(client.bridge().wait(), 0);
}

TEST_F(Watching, TwoSubscriptionsOfOneIdAreToldApart) {
  McpClient client(bench_, kModernVersion);
  Json message = {{"jsonrpc", "2.0"},
                  {"id", "same"},
                  {"method", "subscriptions/listen"},
                  {"params",
                   {{"notifications", {{"resourceSubscriptions", {kLeases}}}},
                    {"_meta",
                     {{"io.modelcontextprotocol/protocolVersion", kModernVersion},
                      {"io.modelcontextprotocol/clientCapabilities", Json::object()}}}}}};
  client.send(message);
  EXPECT_EQ(text_member(client.receive(), "method"), kAcknowledged);
  client.send(message);
  const Json refused = client.receive();
  EXPECT_EQ(refused["id"], "same");
  EXPECT_EQ(refused["error"]["code"], -32600) << refused;
}

TEST_F(Watching, AFilterThatIsNoneIsRefused) {
  McpClient client(bench_, kModernVersion);
  for (const Json& params : {Json::object(), Json{{"notifications", 7}}, filter(7), filter(Json::array({7}))}) {
    EXPECT_EQ(client.request("subscriptions/listen", params)["error"]["code"], -32602) << params;
  }
}

TEST_F(Watching, MethodsOfTheOtherEraAreUnknown) {
  McpClient legacy(bench_);
  McpClient modern(bench_, kModernVersion);
  EXPECT_EQ(legacy.request("subscriptions/listen", filter({kLeases}))["error"]["code"], -32601);
  for (const char* method :
       {"initialize", "ping", "resources/subscribe", "resources/unsubscribe", "logging/setLevel"}) {
    EXPECT_EQ(modern.request(method, {{"uri", kLeases}})["error"]["code"], -32601) << method;
  }
}

// A server that died and came back: the subscription goes on.
TEST_F(Watching, GoesOnWithTheNextServer) {
  McpClient client(bench_);
  EXPECT_TRUE(client.request("resources/subscribe", {{"uri", kLeases}}).contains("result"));
  bench_.kill_server();
  bench_.serve();
  change();
  EXPECT_EQ(client.receive_notification(kUpdated)["params"]["uri"], kLeases);
}

}  // namespace
}  // namespace holdfast
