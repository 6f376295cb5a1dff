// Result grants: a task receives the result of another's operation only where it was granted to it, and only under a
// current tenancy of its own (first seed, section 8; CONTRACT section 5).
#include <gtest/gtest.h>

#include "support/row_bench.h"

namespace holdfast {
namespace {

using support::Answer;
using support::details_of;
using support::eventually;
using support::kRows;
using support::Lease;
using support::RowBench;
using support::Words;
using support::operator+;

class ResultGrant : public testing::Test {
 protected:
  ResultGrant() {
    const Lease lease = bench_.acquire(kRows);
    EXPECT_TRUE(bench_.prepare_row(lease, "op-1", "paid", "1").ok());
    EXPECT_TRUE(bench_.approve("op-1").ok());
    EXPECT_TRUE(bench_.commit("op-1", lease).ok());
    bench_.release(lease);
  }
  Lease of_task(const std::string& task, const std::string& scope = "session://mine", const Words& more = {}) {
    const Answer answer = bench_.run(Words{"acquire", scope, "--owner", "bob", "--task", task} + more);
    EXPECT_TRUE(answer.ok()) << answer.text;
    return answer.ok() ? Lease{scope, answer.at("leases")[0]} : Lease{};
  }
  Answer grant(const std::string& id = "op-1", const std::string& task = "t-2") {
    return bench_.run({"result", "grant", id, "--to-task", task, "--reason", "the next stage"});
  }
  Answer get(const Lease& lease, const std::string& id = "op-1") {
    return bench_.run(Words{"result", "get", id, "--scope", lease.scope} + lease.keys());
  }
  RowBench bench_;
};

TEST_F(ResultGrant, IsReceivedByTheTaskThatItNamesUnderItsOwnTenancy) {
  ASSERT_TRUE(grant().ok());
  const Lease lease = of_task("t-2");
  const Answer got = get(lease);
  ASSERT_TRUE(got.ok()) << got.text;
  EXPECT_EQ(got.at("outcome")["outcome"]["version"], "2");
  EXPECT_EQ(got.at("received_under")["generation"], lease.record["generation"]);
  EXPECT_EQ(got.at("received_under")["task_id"], "t-2");
  EXPECT_EQ(got.at("grant")["reason"], "the next stage");
  EXPECT_EQ(bench_.events("result_received").size(), 1U);
  EXPECT_EQ(bench_.events("result_received")[0]["parents"][0], got.at("grant")["evidence"]);
  // By the lease file, too, which says the scope.
  bench_.put("lease.json", lease.record.dump());
  EXPECT_EQ(bench_.run({"result", "get", "op-1", "--lease", bench_.at("lease.json")}).at("outcome"), got.at("outcome"));
}

TEST_F(ResultGrant, IsWithheldWithoutACurrentTenancy) {
  ASSERT_TRUE(grant().ok());
  const auto withheld = [&](const Lease& lease, const char* cause) {
    const Answer answer = get(lease);
    EXPECT_EQ(answer.code(), "result_grant_tenancy_required") << answer.text;
    EXPECT_EQ(details_of(answer)["cause"]["code"], cause) << answer.text;
    EXPECT_EQ(answer.text.find("version_before"), std::string::npos) << "nothing of the result is told";
  };
  Lease never;
  never.scope = "session://never";
  never.record = {{"owner", "bob"}, {"task_id", "t-2"}, {"generation", "1"}, {"started_at", "2026-01-01T00:00:00Z"}};
  withheld(never, "stale_lease_generation");
  never.record["generation"] = "0";
  withheld(never, "stale_lease_generation");
  const Lease released = of_task("t-2");
  bench_.release(released);
  withheld(released, "stale_lease_generation");
  const Lease expired = of_task("t-2", "session://short", {"--ttl", "1s"});
  ASSERT_TRUE(eventually([&] { return bench_.run({"leases"}).at("leases").empty(); }));
  withheld(expired, "lease_expired");
  const Lease superseded = of_task("t-2");
  of_task("t-2", "session://mine", {"--fresh"});
  withheld(superseded, "stale_lease_generation");
  const Lease revoked = of_task("t-2", "session://other");
  ASSERT_TRUE(bench_.run({"epoch", "advance", "--reason", "drill"}).ok());
  withheld(revoked, "control_epoch_revoked");
  EXPECT_TRUE(bench_.events("result_received").empty());
}

TEST_F(ResultGrant, OfAnEpochThatWasRevokedHasToBeGivenAgain) {
  ASSERT_TRUE(grant().ok());
  ASSERT_TRUE(bench_.run({"epoch", "advance", "--reason", "drill"}).ok());
  const Lease lease = of_task("t-2");
  EXPECT_EQ(get(lease).code(), "result_grant_tenancy_required");
  ASSERT_TRUE(grant().ok());
  EXPECT_TRUE(get(lease).ok());
}

TEST_F(ResultGrant, IsGoodForNoOtherTaskAndNoOtherOperation) {
  EXPECT_EQ(get(of_task("t-2")).code(), "approval_required") << "not granted at all";
  ASSERT_TRUE(grant().ok());
  EXPECT_EQ(get(of_task("t-3", "session://third")).code(), "approval_required");
  // The tenancy's task counts, not the word beside it.
  Lease forged = of_task("t-3", "session://third");
  forged.record["task_id"] = "t-2";
  EXPECT_EQ(get(forged).code(), "result_grant_tenancy_required");
  EXPECT_EQ(get(of_task("t-2"), "op-other").code(), "approval_required");
}

TEST_F(ResultGrant, NeedsAnOperationThatHasAResult) {
  EXPECT_EQ(grant("op-none").code(), "not_found");
  const Lease lease = bench_.acquire(kRows);
  ASSERT_TRUE(bench_.prepare_row(lease, "op-2", "late", "2").ok());
  EXPECT_EQ(grant("op-2").code(), "not_found");
  ASSERT_TRUE(bench_.approve("op-2").ok());
  EXPECT_EQ(grant("op-2").code(), "not_found");
  ASSERT_TRUE(bench_.commit("op-2", lease).ok());
  EXPECT_TRUE(grant("op-2").ok());
  EXPECT_EQ(bench_.run({"result", "grant", "op-2", "--to-task", "t-2"}).code(), "usage") << "a grant has a reason";
}

TEST_F(ResultGrant, OfAWriteCanBeGivenToo) {
  bench_.put("a.txt", "old");
  const Lease lease = bench_.acquire("a.txt");
  ASSERT_TRUE(bench_.write(lease, "new", {"--operation-id", "op-w"}).ok());
  ASSERT_TRUE(grant("op-w").ok());
  const Answer got = get(of_task("t-2"), "op-w");
  ASSERT_TRUE(got.ok()) << got.text;
  EXPECT_EQ(got.at("outcome")["planned_sha256"], sha256_hex("new"));
  const Lease sent = bench_.acquire("b.txt");
  bench_.receive(bench_.issue(sent, {"--from", "-", "--operation-id", "op-q"}, "by queue"));
  ASSERT_EQ(bench_.get("b.txt"), "by queue");
  EXPECT_TRUE(grant("op-q").ok());
}

TEST_F(ResultGrant, WhoseRecordIsBrokenIsRefusedAndNotForgotten) {
  ASSERT_TRUE(grant().ok());
  const Lease lease = of_task("t-2");
  const std::string path = ".squad/acts/results/" + sha256_hex("op-1") + ".json";
  ASSERT_FALSE(bench_.get(path).empty());
  bench_.put(path, "{}");
  EXPECT_EQ(get(lease).code(), "state_unreadable");
  EXPECT_EQ(grant().code(), "state_unreadable");
  EXPECT_EQ(bench_.get(path), "{}");
}

}  // namespace
}  // namespace holdfast
