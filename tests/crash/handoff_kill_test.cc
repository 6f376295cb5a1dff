// SIGKILL of either image at each named step of a handoff: afterwards one server serves, or none and a restart is
// clean; every lease is accounted for, and what is called enforced is enforced (field reports B129, B127).
#include <gtest/gtest.h>

#include "support/handoff_ground.h"

namespace holdfast {
namespace {

using support::Answer;
using support::Lease;

enum class After { old_serves, new_serves, nobody_serves };

struct Step {
  const char* point;
  After after;
};
void PrintTo(const Step& step, std::ostream* out) { *out << step.point; }

class KilledInAHandoff : public testing::TestWithParam<Step>, public support::HandoffGround {
 protected:
  KilledInAHandoff() {
    bench.put("a.txt", "old a");
    bench.put("b.txt", "old b");
    bench.serve({{"HOLDFAST_FAULT", std::string(GetParam().point) + ":kill"}});
    a = bench.acquire("a.txt");
    b = bench.acquire("b.txt", "bob");
    session = bench.acquire("session://desk/1", "carol");
  }
  Lease a;
  Lease b;
  Lease session;
};

TEST_P(KilledInAHandoff, LeavesOneServerOrACleanRestartAndEveryLeaseAccountedFor) {
  const std::int64_t old_pid = bench.server().pid();
  const Answer answer = replace();
  ASSERT_TRUE(support::eventually([&] { return server_pids().size() <= 1; }));
  const After after = GetParam().after;
  if (after == After::old_serves) {
    EXPECT_EQ(answer.code(), "handoff_failed") << answer.text;
    ASSERT_EQ(server_pids(), std::vector<std::int64_t>{old_pid});
  } else {
    bench.wait_for_server();
  }
  if (after == After::new_serves) {
    ASSERT_TRUE(support::eventually([&] { return server_pids().size() == 1 && is_served(); })) << answer.text;
    EXPECT_TRUE(answer.ok()) << answer.text;
    EXPECT_EQ(answer.document.value("pid", std::int64_t{0}), server_pids().front());
  }
  if (after == After::nobody_serves) {
    ASSERT_TRUE(support::eventually([&] { return server_pids().empty() && !is_served(); })) << answer.text;
    bench.kill_server();
    bench.serve();
    for (const Json& lease : leases()) EXPECT_NE(lease.at("os_lock").at("enforced"), true) << lease;
    // Whoever held them finds them again, under a later generation where the guard was lost.
    for (const Lease* lease : {&a, &b}) {
      const Answer again = bench.run(
          {"acquire", lease->scope, "--owner", lease->record.at("owner").get<std::string>(), "--task", "task-1"});
      ASSERT_TRUE(again.ok()) << again.text;
      EXPECT_EQ(again.at("granted"), "regrant");
    }
    EXPECT_TRUE(bench.heartbeat(session).ok());
    EXPECT_FALSE(lets_hostile_bytes_in("a.txt"));
  } else {
    const Json now = leases();
    ASSERT_EQ(now.size(), 3U);
    for (const Json& lease : now) {
      EXPECT_EQ(lease.at("holder").at("pid"), server_pids().front());
      EXPECT_EQ(lease.at("liveness").at("holder"), "alive");
    }
    EXPECT_EQ(now.at(0).at("os_lock").at("enforced"), true);
    EXPECT_FALSE(lets_hostile_bytes_in("a.txt"));
    EXPECT_FALSE(lets_hostile_bytes_in("b.txt"));
    EXPECT_TRUE(bench.write(a, "new a").ok());
    EXPECT_EQ(bench.get("a.txt"), "new a");
    for (const Lease& lease : {a, b, session}) {
      const Answer released = bench.release(lease);
      EXPECT_TRUE(released.ok()) << released.text;
      EXPECT_EQ(released.document.value("content_mismatch", Json(false)), Json(false)) << released.text;
    }
  }
  EXPECT_TRUE(bench.evidence_verifies());
  EXPECT_TRUE(bench.generations_verify());
  EXPECT_EQ(bench.listing(), (support::Words{"a.txt", "b.txt"}));
  // The old image still has the order that kills each new one.
  const Answer next = replace();
  EXPECT_EQ(next.code(), after == After::old_serves ? "handoff_failed" : "") << next.text;
}

INSTANTIATE_TEST_SUITE_P(
    EveryStep, KilledInAHandoff,
    testing::Values(
        Step{"adopt_before_authenticate", After::old_serves}, Step{"adopt_after_authenticate", After::old_serves},
        Step{"adopt_before_guards", After::old_serves}, Step{"adopt_after_guards", After::old_serves},
        Step{"adopt_before_serving", After::old_serves}, Step{"adopt_after_serving", After::nobody_serves},
        Step{"handoff_before_spawn", After::nobody_serves}, Step{"handoff_before_secret", After::nobody_serves},
        Step{"handoff_before_guards", After::nobody_serves}, Step{"handoff_before_transfer", After::new_serves},
        Step{"transfer_before_commit", After::new_serves}, Step{"store_after_batch", After::new_serves},
        Step{"handoff_after_transfer", After::new_serves}, Step{"handoff_before_withdraw", After::new_serves},
        Step{"handoff_after_withdraw", After::new_serves}));

}  // namespace
}  // namespace holdfast
