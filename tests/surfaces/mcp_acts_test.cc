// The tools about acts, results and handoffs of work. Every answer is checked against its tool's output schema by the
// client (CONTRACT section 9).
#include <gtest/gtest.h>

#include "base/base64.h"
#include "support/mcp_client.h"
#include "support/row_bench.h"

namespace holdfast {
namespace {

using support::Called;
using support::kModernVersion;
using support::kRows;
using support::Lease;
using support::McpClient;
using support::RowBench;
using support::Words;
using support::operator+;

const std::string kPaid = R"({"key":{"id":{"integer":"7"}},"set":{"state":{"text":"paid"}}})";

class ActTools : public testing::Test {
 protected:
  RowBench bench_;
};

TEST_F(ActTools, PrepareApproveAndCommitARowOnceInBothEras) {
  for (const char* version : {"2025-11-25", kModernVersion}) {
    bench_.sql("UPDATE accounts SET state='new',version=1 WHERE id=7");
    McpClient client(bench_, version);
    const Json keys = client.lease(kRows);
    const Called prepared =
        client.call("act_prepare", keys, {{"content", kPaid}, {"precondition", "1"}, {"reason", "the invoice"}});
    ASSERT_EQ(prepared.code(), "") << prepared.response;
    const Json operation = {{"operation_id", prepared.document["act"]["command"]["operation_id"]}};
    EXPECT_EQ(prepared.document["act"]["reason"], "the invoice");
    EXPECT_EQ(client.call("act_commit", keys, operation).code(), "approval_required");
    EXPECT_EQ(bench_.row(), "new 1");
    McpClient approver(bench_, version);
    const Called approved = approver.call("act_approve", operation, {{"owner", "ada"}, {"reason", "read"}});
    ASSERT_EQ(approved.code(), "") << approved.response;
    EXPECT_EQ(approved.document["act"]["approval"]["by"], "ada");
    const Called committed = client.call("act_commit", keys, operation);
    ASSERT_EQ(committed.code(), "") << committed.response;
    EXPECT_EQ(committed.document["outcome"]["outcome"]["version"], "2");
    EXPECT_EQ(bench_.row(), "paid 2");
    const Called again = client.call("act_commit", keys, operation);
    EXPECT_EQ(again.code(), "act_consumed");
    EXPECT_EQ(again.document["error"]["details"]["outcome"], committed.document["outcome"]);
    EXPECT_EQ(bench_.row(), "paid 2");
    client.call("lease_release", keys);
  }
}

TEST_F(ActTools, TakeAFilesPreimageAsItsPreconditionAndTheTwoOnlyWhereTheyAgree) {
  bench_.put("a.txt", "old");
  McpClient client(bench_);
  const Json keys = client.lease("a.txt");
  const std::string old = sha256_hex("old");
  const auto prepare = [&](const Json& more) { return client.call("act_prepare", keys, more); };
  for (const Json& same : {Json::object(), Json{{"preimage_sha256", old}}, Json{{"precondition", old}},
                           Json{{"preimage_sha256", old}, {"precondition", old}}}) {
    Json more = {{"content_base64", base64_encode("\xff\xfe")}};
    more.update(same);
    const Called prepared = prepare(more);
    ASSERT_EQ(prepared.code(), "") << prepared.response;
    EXPECT_EQ(prepared.document["act"]["prepared_version"], old);
  }
  EXPECT_EQ(prepare({{"content", "x"}, {"preimage_sha256", old}, {"precondition", "absent"}}).code(), "usage");
  EXPECT_EQ(prepare({{"content", "x"}, {"content_base64", "eA=="}}).code(), "usage");
  EXPECT_EQ(prepare({{"preimage_sha256", old}}).code(), "usage");
  EXPECT_EQ(prepare({{"content", "x"}, {"preimage_sha256", "short"}}).code(), "usage");
  const Json operation = {{"operation_id", "op-1"}};
  ASSERT_EQ(prepare({{"content_base64", base64_encode("\xff\xfe")}, {"operation_id", "op-1"}}).code(), "");
  EXPECT_EQ(prepare({{"content", "other"}, {"operation_id", "op-1"}}).code(), "operation_id_reused");
  ASSERT_EQ(client.call("act_approve", operation).code(), "");
  ASSERT_EQ(client.call("act_commit", keys, operation).code(), "");
  EXPECT_EQ(bench_.get("a.txt"), "\xff\xfe");
}

TEST_F(ActTools, RefuseAStaleActAndOneThatNobodyPrepared) {
  McpClient client(bench_);
  const Json old = client.lease(kRows);
  const Json operation = {{"operation_id", "op-1"}};
  ASSERT_EQ(
      client.call("act_prepare", old, {{"content", kPaid}, {"precondition", "1"}, {"operation_id", "op-1"}}).code(),
      "");
  ASSERT_EQ(client.call("act_approve", operation).code(), "");
  client.call("lease_release", old);
  const Json theirs = client.lease(kRows, "bob");
  for (const Json& keys : {old, theirs}) {
    const Called refused = client.call("act_commit", keys, operation);
    EXPECT_EQ(refused.code(), "stale_lease_generation");
    EXPECT_TRUE(refused.is_error());
    EXPECT_EQ(refused.document["error"]["effect"], "none");
  }
  EXPECT_EQ(client.call("act_approve", {{"operation_id", "none"}}).code(), "not_found");
  EXPECT_EQ(client.call("act_commit", theirs, {{"operation_id", "none"}}).code(), "not_found");
  EXPECT_EQ(client.call("act_approve", Json::object()).code(), "usage");
  EXPECT_EQ(client.call("act_approve", {{"operation_id", "op-1"}, {"by", "ada"}}).code(), "usage");
  EXPECT_EQ(bench_.row(), "new 1");
}

TEST_F(ActTools, GiveAResultToTheTaskThatItWasGrantedTo) {
  McpClient client(bench_);
  const Json keys = client.lease(kRows);
  const Json operation = {{"operation_id", "op-1"}};
  client.call("act_prepare", keys, {{"content", kPaid}, {"precondition", "1"}, {"operation_id", "op-1"}});
  client.call("act_approve", operation);
  const Called committed = client.call("act_commit", keys, operation);
  ASSERT_EQ(committed.code(), "");
  const Json mine = client.lease("session://mine", "bob");
  EXPECT_EQ(client.call("result_get", mine, operation).code(), "approval_required");
  ASSERT_TRUE(bench_.run({"result", "grant", "op-1", "--to-task", "task-1", "--reason", "next"}).ok());
  const Called got = client.call("result_get", mine, operation);
  ASSERT_EQ(got.code(), "") << got.response;
  EXPECT_EQ(got.document["outcome"], committed.document["outcome"]);
  EXPECT_EQ(got.document["received_under"]["generation"], mine["generation"]);
  client.call("lease_release", mine);
  EXPECT_EQ(client.call("result_get", mine, operation).code(), "result_grant_tenancy_required");
  Json scopeless = mine;
  scopeless.erase("scope");
  EXPECT_EQ(client.call("result_get", scopeless, operation).code(), "usage");
}

TEST_F(ActTools, ShowWhatStandsInTheWayOfAHandoff) {
  McpClient client(bench_);
  const Called none = client.call("handoff_status");
  EXPECT_EQ(none.document, (Json{{"handoffs", Json::array()}, {"total", 0}, {"next_offset", nullptr}}));
  EXPECT_EQ(client.call("handoff_status", {{"scope", kRows}}).code(), "not_found");
  const Json old = client.lease(kRows);
  ASSERT_TRUE(bench_.run({"handoff", "open", kRows, "--reason", "shift"}).ok());
  const Called open = client.call("handoff_status", {{"scope", kRows}});
  ASSERT_EQ(open.document["handoffs"].size(), 1U) << open.response;
  EXPECT_EQ(open.document["handoffs"][0]["in_the_way"][0]["what"], "lease_held");
  EXPECT_EQ(client.call("handoff_status").document["handoffs"], open.document["handoffs"]);
  client.call("lease_release", old);
  client.lease(kRows, "bob");
  EXPECT_TRUE(client.call("handoff_status").document["handoffs"][0]["in_the_way"].empty());
  EXPECT_EQ(client.call("handoff_status", {{"scope", "../x"}}).code(), "scope_parent_traversal");
}

TEST_F(ActTools, PageHandoffsByTheirOffset) {
  for (int number = 0; number < 3; ++number) {
    const std::string scope = "session://s" + std::to_string(number);
    bench_.acquire(scope);
    ASSERT_TRUE(bench_.run({"handoff", "open", scope, "--reason", "r"}).ok());
  }
  McpClient client(bench_);
  const Json all = client.call("handoff_status").document["handoffs"];
  ASSERT_EQ(all.size(), 3U);
  const Called rest = client.call("handoff_status", {{"offset", 2}});
  EXPECT_EQ(rest.document["handoffs"], Json::array({all[2]}));
  EXPECT_EQ(rest.document["total"], 3);
  EXPECT_EQ(client.call("handoff_status", {{"offset", 9}}).document["handoffs"], Json::array());
}

// A key of a row can be megabytes of text: its answer is cut, said to be so, and fits its line.
TEST_F(ActTools, AnswerAnActThatIsLongerThanAReplyInPart) {
  bench_.sql("CREATE TABLE texts(name TEXT PRIMARY KEY, state TEXT, version INTEGER NOT NULL)");
  ASSERT_TRUE(bench_
                  .run({"receiver", "add", "texts", "--kind", "sqlite", "--database", bench_.at("app.db"), "--table",
                        "texts", "--key", "name", "--version-column", "version"})
                  .ok());
  McpClient client(bench_);
  const Json keys = client.lease("session://sqlite.records/texts");
  std::string name;
  while (name.size() < 2'000'000) name += "\u20ac\"";
  const std::string change = Json{{"key", {{"name", {{"text", name}}}}}, {"set", {{"state", {{"text", "x"}}}}}}.dump();
  const Called prepared =
      client.call("act_prepare", keys, {{"content", change}, {"precondition", "1"}, {"operation_id", "op-1"}});
  ASSERT_EQ(prepared.code(), "") << prepared.message();
  EXPECT_EQ(prepared.document["shortened"], true);
  EXPECT_EQ(prepared.document["act"]["command"]["operation_id"], "op-1");
  EXPECT_EQ(prepared.document["act"]["payload_sha256"], sha256_hex(change));
  const std::string shown = prepared.document["act"]["typed_key"]["name"]["text"];
  EXPECT_EQ(shown.substr(0, 3), "\u20ac");
  EXPECT_TRUE(shown.ends_with("..."));
  EXPECT_EQ(client.call("act_approve", {{"operation_id", "op-1"}}).document["shortened"], true);
  EXPECT_EQ(client.call("act_commit", keys, {{"operation_id", "op-1"}}).code(), "record_missing");
  EXPECT_TRUE(client.answers());
}

TEST_F(ActTools, SayThatAnyClientMayApproveAndWhatTheyChange) {
  McpClient client(bench_);
  for (const Json& tool : client.request("tools/list")["result"]["tools"]) {
    const std::string name = tool["name"];
    const Json& hints = tool["annotations"];
    if (name == "act_approve") {
      EXPECT_NE(text_member(tool, "description").find("Any client may approve"), std::string::npos);
    }
    if (name == "act_commit") { EXPECT_EQ(hints["destructiveHint"], true); }
    if (name == "handoff_status") { EXPECT_EQ(hints["readOnlyHint"], true); }
    if (name.starts_with("act_") || name == "result_get") { EXPECT_EQ(hints["readOnlyHint"], false) << name; }
    for (const char* absent : {"result_grant", "handoff_open", "handoff_close", "receiver_add"})
      EXPECT_NE(name, absent);
  }
}

// The server dies between the effect and its answer; the bridge asks the next one. It is done once, and the outcome
// told.
TEST_F(ActTools, CommitOnceThoughTheServerDiesBeforeItAnswers) {
  McpClient client(bench_);
  const Json keys = client.lease(kRows);
  const Json operation = {{"operation_id", "op-1"}};
  client.call("act_prepare", keys, {{"content", kPaid}, {"precondition", "1"}, {"operation_id", "op-1"}});
  client.call("act_approve", operation);
  bench_.kill_server();
  bench_.serve({{"HOLDFAST_FAULT", "act_after_effect:kill"}});
  const Called committed = client.call("act_commit", keys, operation);
  EXPECT_EQ(committed.code(), "") << committed.response;
  EXPECT_EQ(committed.document["outcome"]["repeated"], true);
  EXPECT_EQ(bench_.row(), "paid 2");
  client.bridge().terminate();
}

}  // namespace
}  // namespace holdfast
