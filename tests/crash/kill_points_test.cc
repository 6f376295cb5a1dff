// SIGKILL of the server, and of the client, at each named step of acquire, write and release. After a restart and
// `recover`: an old or a new content, generations and evidence verify, nothing unlisted is left, a higher generation is
// given next (field reports B10, B47, B56, B81, B127, M04).
#include <gtest/gtest.h>

#include <algorithm>

#include "support/workbench.h"

namespace holdfast {
namespace {

using support::Answer;
using support::Lease;
using support::Words;
using support::Workbench;
using support::operator+;

struct Point {
  const char* name;
  int passage;
};

void PrintTo(const Point& point, std::ostream* out) { *out << point.name << "@" << point.passage; }

std::string order(const Point& point) {
  return std::string(point.name) + "@" + std::to_string(point.passage) + ":kill";
}

// What has to hold after any crash, once a server has started again (which recovers).
void expect_sound(const Workbench& bench, const Words& expected_names) {
  const Answer recovered = bench.run({"recover"});
  EXPECT_TRUE(recovered.status == 0 || recovered.status == 4) << recovered.text;
  EXPECT_TRUE(bench.generations_verify());
  EXPECT_TRUE(bench.evidence_verifies());
  const std::string listed =
      recovered.text + bench.run({"reconcile", "list"}).text + bench.run({"quarantine", "list"}).text;
  for (const std::string& name : bench.listing()) {
    const bool expected = std::find(expected_names.begin(), expected_names.end(), name) != expected_names.end();
    EXPECT_TRUE(expected || listed.find(name) != std::string::npos) << "unlisted: " << name;
  }
}

// The next generation is above everything that was given out.
void expect_later_generation(const Workbench& bench, std::uint64_t last) {
  const Lease next = bench.acquire("probe.txt", "probe");
  EXPECT_GT(next.generation(), last);
  EXPECT_TRUE(bench.release(next).ok());
}

class KilledWhileAcquiring : public testing::TestWithParam<Point> {};

TEST_P(KilledWhileAcquiring, NobodyOrOneHoldsItAndNoNumberComesBack) {
  Workbench bench;
  bench.put("a.txt", "old");
  const Lease before = bench.acquire("other.txt", "other");
  bench.serve({{"HOLDFAST_FAULT", order(GetParam())}});
  const Answer lost = bench.run({"acquire", "a.txt", "--owner", "alice", "--task", "task-1"});
  ASSERT_EQ(bench.wait_for_server(), -9) << "the point was not reached: " << lost.text;
  EXPECT_FALSE(lost.ok());
  bench.kill_server();
  bench.serve();
  expect_sound(bench, {"a.txt"});
  EXPECT_EQ(bench.get("a.txt"), "old");
  expect_later_generation(bench, before.generation());
  // Whatever the crash left of it, its owner gets to work again.
  const Answer again = bench.run({"acquire", "a.txt", "--owner", "alice", "--task", "task-1"});
  EXPECT_TRUE(again.ok()) << again.text;
}

INSTANTIATE_TEST_SUITE_P(EveryStep, KilledWhileAcquiring,
                         testing::Values(Point{"acquire_after_guard", 1}, Point{"acquire_after_capture", 1},
                                         Point{"vault_before_link", 1}, Point{"vault_after_link", 1},
                                         Point{"acquire_before_commit", 1}, Point{"generation_after_staged", 1},
                                         Point{"generation_after_marker", 1}, Point{"generation_after_store", 1},
                                         Point{"store_after_generations", 1}, Point{"store_after_events", 1},
                                         Point{"store_after_change", 1}, Point{"acquire_after_commit", 1}));

class KilledWhileWriting : public testing::TestWithParam<Point> {};

TEST_P(KilledWhileWriting, TheFileIsOldOrNewAndTheIntentIsSettledOrClassified) {
  Workbench bench;
  bench.put("a.txt", "old bytes");
  bench.serve({{"HOLDFAST_FAULT", order(GetParam())}});
  const Lease lease = bench.acquire("a.txt");
  const Answer lost = bench.write(lease, "new bytes", {"--operation-id", "op-1"});
  ASSERT_EQ(bench.wait_for_server(), -9) << "the point was not reached: " << lost.text;
  EXPECT_FALSE(lost.ok());
  const std::string left = bench.get("a.txt");
  EXPECT_TRUE(left == "old bytes" || left == "new bytes") << left;
  bench.kill_server();
  bench.serve();
  expect_sound(bench, {"a.txt"});
  EXPECT_EQ(bench.get("a.txt"), left) << "recover invents no rollback";
  EXPECT_EQ(bench.listing(), Words{"a.txt"});
  EXPECT_EQ(bench.run({"reconcile", "list"}).at("reconcile").size(), 0U);
  const Answer regrant = bench.run({"acquire", "a.txt", "--owner", "alice", "--task", "task-1"});
  ASSERT_TRUE(regrant.ok()) << regrant.text;
  const Lease again{"file://project:/a.txt", regrant.at("leases").at(0)};
  EXPECT_GT(again.generation(), lease.generation());
  // The effect happened once or not at all, and the operation id tells which (field reports B58, B127).
  const Answer repeated = bench.write(again, "new bytes", {"--operation-id", "op-1"});
  EXPECT_TRUE(repeated.ok()) << repeated.text;
  EXPECT_EQ(bench.get("a.txt"), "new bytes");
  EXPECT_EQ(repeated.document.contains("repeated"), left == "new bytes");
  const Answer released = bench.release(again);
  EXPECT_TRUE(released.ok()) << released.text;
  EXPECT_TRUE(bench.evidence_verifies());
}

INSTANTIATE_TEST_SUITE_P(EveryStep, KilledWhileWriting,
                         testing::Values(Point{"write_before_staging", 1}, Point{"write_after_staging", 1},
                                         Point{"write_after_intent", 1}, Point{"before_temporary_name", 1},
                                         Point{"after_temporary_name", 1}, Point{"write_before_exchange", 1},
                                         Point{"after_exchange", 1}, Point{"after_folder_flush", 1},
                                         Point{"write_after_exchange", 1}, Point{"write_after_verify", 1},
                                         Point{"write_after_displaced_dropped", 1}, Point{"store_after_events", 2},
                                         Point{"store_after_change", 2}, Point{"write_after_commit", 1},
                                         Point{"write_after_settled", 1}));

class KilledWhileReleasing : public testing::TestWithParam<Point> {};

TEST_P(KilledWhileReleasing, TheTenancyIsHeldOrEndedAndItsContentCheckHappened) {
  Workbench bench;
  bench.put("a.txt", "old");
  bench.serve({{"HOLDFAST_FAULT", order(GetParam())}});
  const Lease lease = bench.acquire("a.txt");
  const Answer lost = bench.release(lease);
  ASSERT_EQ(bench.wait_for_server(), -9) << "the point was not reached: " << lost.text;
  EXPECT_FALSE(lost.ok());
  bench.kill_server();
  bench.serve();
  expect_sound(bench, {"a.txt"});
  EXPECT_EQ(bench.get("a.txt"), "old");
  // An ambiguous release is asked again: it is done now, or was done then (field report B39).
  const Answer again = bench.release(lease);
  EXPECT_TRUE(again.ok() || again.code() == "stale_lease_generation") << again.text;
  EXPECT_EQ(bench.run({"leases"}).at("leases").size(), 0U);
  const std::string log = bench.log();
  EXPECT_NE(log.find("\"ended_by\""), std::string::npos);
  expect_later_generation(bench, lease.generation());
}

INSTANTIATE_TEST_SUITE_P(EveryStep, KilledWhileReleasing,
                         testing::Values(Point{"release_after_archive", 1}, Point{"store_after_resource", 1},
                                         Point{"store_after_events", 2}, Point{"store_after_change", 2},
                                         Point{"store_after_change", 3}, Point{"release_before_guard_drops", 1}));

TEST(KilledInADivert, LeavesTheGoodBytesAtTheNameAndNothingBesideIt) {
  Workbench bench;
  bench.put("a.txt", "good");
  bench.serve({{"HOLDFAST_FAULT", "before_divert_exchange:kill"}});
  const Lease lease = bench.acquire("a.txt");
  support::Child writer = support::spawn({"sh", "-c", "echo EVIL > \"$1\"", "sh", bench.at("a.txt")});
  ASSERT_EQ(bench.wait_for_server(), -9);
  writer.wait();  // nobody keeps it out any more
  bench.kill_server();
  bench.serve();
  EXPECT_EQ(bench.listing(), Words{"a.txt"});
  EXPECT_TRUE(bench.evidence_verifies());
  // What it wrote without a guard is found at the end of the tenancy.
  EXPECT_EQ(bench.release(lease).document["content_mismatch"], true);
}

TEST(KilledClient, LeavesALeaseThatItsOwnerFindsAgain) {
  Workbench bench;
  bench.put("a.txt", "old");
  bench.serve();
  const auto client = bench.start({"acquire", "a.txt", "--owner", "alice", "--task", "task-1"});
  client->kill();
  client->wait();
  const Answer again = bench.run({"acquire", "a.txt", "--owner", "alice", "--task", "task-1"});
  EXPECT_TRUE(again.ok()) << again.text;
  EXPECT_TRUE(bench.evidence_verifies());
}

TEST(KilledClient, BeforeTheEndOfItsContentPublishesNothing) {
  Workbench bench;
  bench.put("a.txt", "old");
  bench.serve();
  const Lease lease = bench.acquire("a.txt");
  const auto client = bench.start(Words{"write", "a.txt"} + lease.keys() + Words{"--from", "-"});
  client->write("half of the bytes");
  client->kill();
  client->wait();
  EXPECT_TRUE(bench.heartbeat(lease).ok());
  EXPECT_EQ(bench.get("a.txt"), "old");
  EXPECT_EQ(bench.listing(), Words{"a.txt"});
  EXPECT_TRUE(bench.write(lease, "new").ok());
}

TEST(KilledInit, IsFinishedByTheNextInit) {
  for (const char* point : {"init_before_store", "init_before_config"}) {
    Workbench bench(false);
    const auto child = bench.start({"init"}, {{"HOLDFAST_FAULT", std::string(point) + ":kill"}});
    EXPECT_EQ(child->wait(), -9) << point;
    EXPECT_EQ(bench.run({"leases"}).code(), "workspace_config_invalid") << point;
    EXPECT_TRUE(bench.run({"init"}).ok()) << point;
    EXPECT_TRUE(bench.generations_verify()) << point;
    bench.acquire("a.txt");
  }
}

}  // namespace
}  // namespace holdfast
