// What attackers and readers found once, each as a test for its kind (docs/testing.md, track record).
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "base/digest.h"
#include "base/json.h"
#include "support/workbench.h"

namespace holdfast {
namespace {

using support::Answer;
using support::eventually;
using support::Lease;
using support::Words;
using support::Workbench;
using support::operator+;

TEST(Regrant, ThatIsRefusedLeavesTheLeaseAsItIs) {
  Workbench bench;
  bench.put("a.txt", "old");
  std::filesystem::create_directory(bench.at("d"));
  bench.serve();
  const Lease lease = bench.acquire("a.txt");
  const Words again = {"--owner", "alice", "--task", "task-1", "--fresh"};
  EXPECT_EQ(bench.run(Words{"acquire", "a.txt", "--require", "bpf_lsm"} + again).code(), "enforcement_insufficient");
  EXPECT_EQ(bench.run(Words{"acquire", "a.txt", "d", "--require", "kernel_lease"} + again).code(),
            "enforcement_insufficient");
  EXPECT_TRUE(bench.heartbeat(lease).ok());
  EXPECT_TRUE(bench.write(lease, "new").ok());
}

TEST(Regrant, KeepsWritersOutThroughout) {
  Workbench bench;
  bench.put("a.txt", "guarded");
  bench.serve();
  Lease lease = bench.acquire("a.txt");
  std::vector<std::unique_ptr<support::Child>> writers;
  for (int count = 0; count < 4; ++count) {
    writers.push_back(std::make_unique<support::Child>(
        support::spawn({"sh", "-c", "while :; do echo F >> " + bench.at("a.txt") + "; done"})));
  }
  for (int round = 0; round < 20; ++round) {
    const Answer again = bench.run({"acquire", "a.txt", "--owner", "alice", "--task", "task-1", "--fresh"});
    ASSERT_TRUE(again.ok()) << again.text;
    lease.record = again.at("leases").at(0);
    ASSERT_EQ(lease.record["pre_write"]["sha256"], sha256_hex("guarded")) << "round " << round;
  }
  for (auto& writer : writers) writer->kill();
  const Answer released = bench.release(lease);
  EXPECT_EQ(released.at("content_mismatch"), false) << released.text;
  EXPECT_EQ(released.at("guard_fault"), nullptr);
}

TEST(OneRequest, IsJudgedAgainstItself) {
  Workbench bench;
  bench.put("one", "x");
  ASSERT_EQ(::link(bench.at("one").c_str(), bench.at("two").c_str()), 0);
  for (const Words& scopes : {Words{"focus://a", "focus://b"}, Words{"session://q", "session://q/w"},
                              Words{"one", "two"}, Words{"n/m/o", "n/m"}}) {
    const Answer refused = bench.run(Words{"acquire"} + scopes + Words{"--owner", "o", "--task", "t"});
    // A file that does not exist yet may be nested in a folder that does not either.
    if (scopes[1] == "n/m") continue;
    EXPECT_EQ(refused.code(), "lease_scope_conflict") << scopes[0] << refused.text;
  }
  EXPECT_LE(bench.run({"leases"}).at("leases").size(), 2U);
}

TEST(Recover, LeavesADivertUnderWayAlone) {
  Workbench bench;
  bench.put("a.txt", "guarded");
  bench.serve({{"HOLDFAST_FAULT", "before_divert_exchange:sleep=1500"}});
  const Lease lease = bench.acquire("a.txt");
  auto writer = support::spawn({"sh", "-c", "echo FOREIGN > " + bench.at("a.txt")});
  ::usleep(500'000);
  EXPECT_TRUE(bench.run({"recover"}).ok());
  EXPECT_EQ(writer.wait(), 0);
  EXPECT_EQ(bench.get("a.txt"), "guarded");
  EXPECT_EQ(bench.release(lease).at("guard_fault"), nullptr);
}

TEST(Release, SettlesWhatAKilledServerPublished) {
  for (const char* point : {"after_exchange", "write_after_exchange", "write_after_verify"}) {
    Workbench bench;
    bench.put("a.txt", "old");
    bench.serve({{"HOLDFAST_FAULT", std::string(point) + ":kill"}});
    const Lease lease = bench.acquire("a.txt");
    EXPECT_FALSE(bench.write(lease, "gated").ok());
    bench.wait_for_server();
    EXPECT_EQ(bench.get("a.txt"), "gated");
    const Answer released = bench.release(lease);
    EXPECT_EQ(released.at("content_mismatch"), false) << point << released.text;
    EXPECT_EQ(released.at("content_check").at("baseline_source"), "gated_write_post_sha256");
    EXPECT_EQ(bench.listing(), Words{"a.txt"}) << point;
  }
}

TEST(Exchange, ALinkThatSlippedInIsAFaultWithItsPlace) {
  Workbench bench;
  bench.put("a.txt", "old");
  bench.put("new", "planned");
  bench.serve({{"HOLDFAST_FAULT", "write_before_exchange:sleep=1200"}});
  const Lease lease = bench.acquire("a.txt");
  auto writer = bench.start(Words{"write", "a.txt", "--from", bench.at("new")} + lease.keys());
  ::usleep(500'000);
  std::filesystem::create_symlink("/etc/passwd", bench.at("link"));
  std::filesystem::rename(bench.at("link"), bench.at("a.txt"));
  const Answer answer = Workbench::answer_of(*writer);
  EXPECT_EQ(answer.status, 4) << answer.text;
  EXPECT_NE(answer.at("error").at("effect"), "none");
  const Json records = bench.run({"reconcile", "list"}).at("reconcile");
  ASSERT_EQ(records.size(), 1U);
  EXPECT_TRUE(records[0].contains("displaced_at")) << records[0];
  EXPECT_EQ(bench.write(lease, "more").code(), "reconciliation_required");
}

TEST(Serve, ComesBeforeDirectChanges) {
  Workbench bench;
  std::vector<std::unique_ptr<support::Child>> clients;
  for (int number = 0; number < 6; ++number) {
    const std::string owner = "o" + std::to_string(number);
    clients.push_back(std::make_unique<support::Child>(
        support::spawn({"sh", "-c",
                        "while :; do " HOLDFAST_PROGRAM " --workspace " + bench.root() + " --json acquire session://" +
                            owner + " --owner " + owner + " --task t --fresh >/dev/null 2>&1; done"})));
  }
  ::usleep(300'000);
  bench.serve();  // asserts its ready line
  EXPECT_NE(bench.run({"status"}).at("server"), nullptr);
  for (auto& client : clients) client->kill();
}

TEST(Verbs, SayThatTheServerIsStoppedInsteadOfWaitingForIt) {
  Workbench bench;
  bench.serve();
  bench.server().stop();
  const Answer answer = bench.run({"acquire", "a", "--owner", "o", "--task", "t"});
  EXPECT_EQ(answer.code(), "server_unreachable") << answer.text;
  EXPECT_EQ(answer.at("error").at("details").at("pid"), bench.server().pid());
  EXPECT_EQ(answer.at("error").at("effect"), "unknown");
  bench.server().cont();
}

TEST(Read, SeesTheGuardedBytesUnderHammers) {
  Workbench bench;
  const std::string bytes(300'000, 'g');
  bench.put("a.txt", bytes);
  bench.serve();
  const Lease lease = bench.acquire("a.txt");
  std::vector<std::unique_ptr<support::Child>> writers;
  for (int count = 0; count < 2; ++count) {
    writers.push_back(std::make_unique<support::Child>(
        support::spawn({"sh", "-c", "while :; do echo F >> " + bench.at("a.txt") + "; done"})));
  }
  for (int round = 0; round < 30; ++round) {
    EXPECT_EQ(bench.run({"read", "a.txt"}).at("sha256"), sha256_hex(bytes)) << "round " << round;
  }
  for (auto& writer : writers) writer->kill();
  EXPECT_EQ(bench.release(lease).at("content_mismatch"), false);
}

}  // namespace
}  // namespace holdfast
