// What keeps a lease alive and what does not: the worker and who renews for it, renewals that come late, a connection
// that breaks, an answer that never comes, children, other pid namespaces (CONTRACT section 3; field reports B04, B08,
// B20 to B47, B134, M39).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>

#include "base/json.h"
#include "os/process.h"
#include "support/workbench.h"

namespace holdfast {
namespace {

using support::Answer;
using support::Child;
using support::eventually;
using support::Lease;
using support::Words;
using support::Workbench;
using support::operator+;

class LeaseLife : public testing::Test {
 protected:
  LeaseLife() { bench_.put("a.txt", "old"); }
  ~LeaseLife() override { (void)bench_.run({"stop"}); }

  static Words hold_words(const std::string& ttl, const std::string& program) {
    return {"hold", "a.txt", "--owner", "alice", "--task", "t", "--ttl", ttl, "--", "sh", "-c", program};
  }
  // A hold whose program has begun and copied its keys to `keys`.
  std::unique_ptr<Child> holding(const std::string& ttl, const std::string& then = "exec sleep 60") {
    auto child = bench_.start(hold_words(ttl, "cp $HOLDFAST_LEASE_FILE " + bench_.at("keys") + "; echo $$; " + then));
    const auto program = os::process_of_pid(std::stol("0" + child->read_line()));
    EXPECT_TRUE(program.ok());
    if (program.ok()) program_ = *program;
    return child;
  }
  bool program_runs() const { return os::liveness_of(program_) != os::Liveness::dead; }
  void kill_program() const { ::kill(static_cast<pid_t>(program_.pid), SIGKILL); }
  Json leases() const { return bench_.run({"leases"}).at("leases"); }
  bool is_free() const { return leases().empty(); }
  Answer with_keys_of(const std::string& verb, const std::string& file) const {
    return bench_.run({verb, "a.txt", "--lease", bench_.at(file)});
  }
  Answer acquire_by(const std::string& owner) const {
    return bench_.run({"acquire", "a.txt", "--owner", owner, "--task", "t"});
  }
  std::size_t events(const std::string& kind) const {
    const Answer log = bench_.run({"evidence", "log"});
    std::size_t count = 0;
    for (const Json& event : log.at("events")) count += event.at("kind") == kind ? 1U : 0U;
    return count;
  }
  std::string last_end() const {
    const Answer log = bench_.run({"evidence", "log"});
    std::string by;
    for (const Json& event : log.at("events")) {
      if (event.at("kind") == "tenancy_ended") by = text_member(event.at("facts"), "ended_by");
    }
    return by;
  }

  Workbench bench_;
  os::ProcessIdentity program_;
};

// --- the worker and who renews for it

TEST_F(LeaseLife, B20EndsWithTheWorkerThoughTheOneWhoRenewsLives) {
  const auto child = holding("10m");
  kill_program();
  EXPECT_EQ(child->wait(), 128 + SIGKILL);
  EXPECT_TRUE(is_free());
  EXPECT_TRUE(acquire_by("bob").ok());
}

TEST_F(LeaseLife, B20IsNotRenewedByAHoldThatStoppedAndWhoseWorkerIsGone) {
  const auto child = holding("2s");
  child->stop();
  kill_program();
  EXPECT_TRUE(eventually([&] { return is_free(); }));
  child->cont();
  EXPECT_NE(child->wait(), 0);
  EXPECT_TRUE(is_free());
}

TEST_F(LeaseLife, B26M39AHoldThatSleptPastItsTimeSaysSoAndTheNextTenancyIsAnother) {
  const auto child = holding("2s");
  const auto first = bench_.get("keys");
  child->stop();
  EXPECT_TRUE(eventually([&] { return is_free(); }));
  ::usleep(4'000'000);  // three times its time
  child->cont();
  EXPECT_EQ(child->wait(), 75);
  EXPECT_FALSE(program_runs()) << "no silent going on";
  // Nobody took it meanwhile, and yet it is not simply held again.
  EXPECT_EQ(with_keys_of("heartbeat", "keys").code(), "lease_expired");
  const Lease next = bench_.acquire("a.txt", "alice");
  EXPECT_GT(next.generation(), std::stoull(text_member(parse_json(first)->at("leases").at(0), "generation")));
  EXPECT_EQ(with_keys_of("heartbeat", "keys").code(), "stale_lease_generation");
}

// What was done before a sleep is known after it: the list of operations is sent again under the new tenancy.
TEST_F(LeaseLife, B28WorkThatASleepCutShortIsTakenUpWhereItEnded) {
  bench_.serve();
  const Lease before = bench_.acquire("a.txt", "alice", {"--ttl", "4s"});
  ASSERT_TRUE(bench_.write(before, "step one", {"--operation-id", "op-1"}).ok());
  EXPECT_TRUE(eventually([&] { return is_free(); }));
  const Answer late = bench_.write(before, "step two", {"--operation-id", "op-2"});
  EXPECT_EQ(late.code(), "lease_expired");
  EXPECT_EQ(bench_.get("a.txt"), "step one");
  const Lease after = bench_.acquire("a.txt", "alice");
  EXPECT_GT(after.generation(), before.generation());
  const Answer first = bench_.write(after, "step one", {"--operation-id", "op-1"});
  ASSERT_TRUE(first.ok()) << first.text;
  EXPECT_EQ(first.document.value("repeated", Json()), true);
  const Answer second = bench_.write(after, "step two", {"--operation-id", "op-2"});
  ASSERT_TRUE(second.ok()) << second.text;
  EXPECT_FALSE(second.document.contains("repeated"));
  EXPECT_EQ(bench_.get("a.txt"), "step two");
  EXPECT_EQ(bench_.release(after).at("content_mismatch"), false);
}

TEST_F(LeaseLife, B47AHoldThatIsKilledAtAnyMomentLeavesNoLeaseBehindItsProgram) {
  bench_.serve();
  for (unsigned after_ms = 0; after_ms <= 400; after_ms += 25) {
    const auto child = bench_.start(hold_words("10m", "sleep 0.2"));
    ::usleep(after_ms * 1000);
    child->kill();
    child->wait();
    EXPECT_TRUE(eventually([&] { return is_free(); })) << "killed after " << after_ms << " ms";
  }
  EXPECT_GT(events("lease_bound_to_command"), 0U) << "none came so far: this shows nothing";
  EXPECT_TRUE(bench_.evidence_verifies());
}

// --- renewals that come late

TEST_F(LeaseLife, B31ARenewalUnderWayAtTheReleaseHoldsNothingAfterIt) {
  bench_.serve({{"HOLDFAST_FAULT", "heartbeat_after_commit:sleep=1500"}});
  const Lease lease = bench_.acquire("a.txt");
  const auto renewing = bench_.start(Words{"heartbeat", lease.scope} + lease.keys());
  ASSERT_TRUE(eventually([&] { return events("lease_renewed") == 1; }));
  EXPECT_TRUE(bench_.release(lease).ok());
  EXPECT_TRUE(Workbench::answer_of(*renewing).ok()) << "it came first, and is answered when the lease is gone";
  EXPECT_TRUE(is_free());
  EXPECT_EQ(bench_.heartbeat(lease).code(), "stale_lease_generation");
  const Lease next = bench_.acquire("a.txt", "bob");
  EXPECT_EQ(bench_.heartbeat(lease).code(), "stale_lease_generation");
  EXPECT_TRUE(bench_.heartbeat(next).ok());
}

TEST_F(LeaseLife, B31AHoldWhoseRenewalIsUnderWayAtItsEndReleasesForGood) {
  bench_.serve({{"HOLDFAST_FAULT", "heartbeat_after_commit:sleep=1500"}});
  const auto child = holding("6s", "until test -e " + bench_.at("enough") + "; do sleep 0.05; done");
  ASSERT_TRUE(eventually([&] { return events("lease_renewed") == 1; }));
  bench_.put("enough", "");
  EXPECT_EQ(child->wait(), 0);
  EXPECT_TRUE(is_free());
  EXPECT_EQ(events("lease_renewed"), 1U);
  EXPECT_EQ(with_keys_of("heartbeat", "keys").code(), "stale_lease_generation");
}

TEST_F(LeaseLife, B34EachOfTheSixKeysAloneIsEnoughToRefuseALateRenewal) {
  bench_.serve();
  bench_.put("b.txt", "old");
  ASSERT_TRUE(bench_.release(bench_.acquire("a.txt", "mallory")).ok());
  const Lease lease = bench_.acquire("a.txt", "alice");
  const Words right = lease.keys();
  const std::vector<std::pair<std::string, Words>> wrong = {
      {"session://a.txt", right},
      {"b.txt", right},
      {"a.txt", {"--owner", "mallory", "--task", right[3], "--generation", right[5], "--started-at", right[7]}},
      {"a.txt", {"--owner", right[1], "--task", "other", "--generation", right[5], "--started-at", right[7]}},
      {"a.txt", {"--owner", right[1], "--task", right[3], "--generation", "1", "--started-at", right[7]}},
      {"a.txt", {"--owner", right[1], "--task", right[3], "--generation", right[5], "--started-at", right[7] + "0"}}};
  const Json before = leases().at(0);
  for (const auto& [scope, keys] : wrong) {
    EXPECT_EQ(bench_.run(Words{"heartbeat", scope} + keys).code(), "stale_lease_generation") << scope << keys[1];
    EXPECT_EQ(bench_.run(Words{"release", scope} + keys).code(), "stale_lease_generation") << scope << keys[1];
  }
  EXPECT_EQ(leases().at(0).at("deadline"), before.at("deadline"));
  EXPECT_EQ(events("lease_renewed"), 0U);
  EXPECT_TRUE(bench_.heartbeat(lease).ok());
}

// --- a connection that breaks, an answer that never comes

// Breaks every connection of a process and leaves the process alone; false where the kernel does not let us.
bool cut_connections_of(pid_t pid) {
  const os::Handle process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  bool cut = false;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd")) {
    const int number = std::stoi(entry.path().filename().string());
    const os::Handle copy(static_cast<int>(::syscall(SYS_pidfd_getfd, process.fd(), number, 0)));
    int listens = 0;
    socklen_t size = sizeof listens;
    if (!copy || ::getsockopt(copy.fd(), SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens != 0) continue;
    cut = ::shutdown(copy.fd(), SHUT_RDWR) == 0 || cut;
  }
  return cut;
}

TEST_F(LeaseLife, B29RenewalsGoOnAfterTheConnectionToALiveServerBroke) {
  bench_.serve();
  const std::string enough = bench_.at("enough");
  const auto child = holding("3s", "until test -e " + enough + "; do sleep 0.05; done");
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(cut_connections_of(bench_.server().pid()));
    const std::size_t before = events("lease_renewed");
    EXPECT_TRUE(eventually([&] { return events("lease_renewed") >= before + 3; }, 10'000)) << round;
  }
  bench_.put("enough", "");
  EXPECT_EQ(child->wait(), 0);
  EXPECT_EQ(events("lease_acquired"), 1U) << "it never lost its lease, and needed no other";
  EXPECT_TRUE(is_free());
}

TEST_F(LeaseLife, B29EachServerThatDiesIsFollowedByRenewalsOrByTheLossNeverByNeither) {
  const auto child = holding("3s", "while :; do sleep 0.1; done");
  for (int round = 0; round < 3; ++round) {
    const Json before = leases().at(0).at("generation");
    ::kill(static_cast<pid_t>(bench_.run({"status"}).at("server").at("pid").get<std::int64_t>()), SIGKILL);
    ASSERT_TRUE(eventually([&] {
      const Json now = leases();
      return !now.empty() && now.at(0).at("generation") != before && now.at(0).at("liveness").at("holder") == "alive";
    })) << round;
    const std::size_t renewals = events("lease_renewed");
    ASSERT_TRUE(eventually([&] { return events("lease_renewed") > renewals; })) << round;
    EXPECT_TRUE(program_runs());
  }
  // Where no successor may be had, it is the loss.
  ASSERT_TRUE(bench_.run({"epoch", "engage", "--reason", "test"}).ok());
  ::kill(static_cast<pid_t>(bench_.run({"status"}).at("server").at("pid").get<std::int64_t>()), SIGKILL);
  EXPECT_EQ(child->wait(), 75);
  EXPECT_FALSE(program_runs());
  EXPECT_TRUE(bench_.run({"epoch", "disengage", "--reason", "test"}).ok());
}

TEST_F(LeaseLife, B37HeldLostAndUnknownAreThreeAnswers) {
  bench_.serve();
  const Lease lease = bench_.acquire("a.txt");
  EXPECT_TRUE(bench_.heartbeat(lease).ok());
  bench_.server().stop();
  const auto began = std::chrono::steady_clock::now();
  const Answer unknown = bench_.heartbeat(lease);
  EXPECT_EQ(unknown.code(), "server_unreachable");
  EXPECT_EQ(unknown.at("error").at("effect"), "unknown") << unknown.text;
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(18)) << "asked once, and not again";
  bench_.server().cont();
  EXPECT_TRUE(eventually([&] { return events("lease_renewed") == 2; })) << "what it was asked is done when it goes on";
  ASSERT_TRUE(bench_.release(lease).ok());
  bench_.acquire("a.txt", "bob");
  const Answer lost = bench_.heartbeat(lease);
  EXPECT_EQ(lost.code(), "stale_lease_generation");
  EXPECT_EQ(lost.at("error").at("effect"), "none");
  EXPECT_EQ(lost.at("error").at("details").at("holder").at("owner"), "bob") << "lost to whom";
  EXPECT_EQ(events("lease_renewed"), 2U) << "never asked twice";
}

// --- children of a holder

TEST_F(LeaseLife, B08AChildThatOutlivesTheProgramKeepsNothing) {
  const auto child = bench_.start(hold_words("10m", "setsid sleep 60 > /dev/null 2>&1 & echo $!"));
  const auto left = os::process_of_pid(std::stol("0" + child->read_line()));
  EXPECT_EQ(child->wait(), 0);
  EXPECT_TRUE(is_free());
  EXPECT_TRUE(acquire_by("bob").ok());
  ASSERT_TRUE(left.ok());
  EXPECT_EQ(os::liveness_of(*left), os::Liveness::alive) << "else this shows nothing";
  ::kill(static_cast<pid_t>(left->pid), SIGKILL);
}

TEST_F(LeaseLife, B08AChildsDeathFreesNothing) {
  const auto child = holding("10m", "sleep 60 & echo $!; wait; exec sleep 60");
  const auto forked = static_cast<pid_t>(std::stol("0" + child->read_line()));
  ASSERT_GT(forked, 0);
  ::kill(forked, SIGKILL);
  EXPECT_TRUE(eventually([&] { return !os::process_of_pid(forked).ok(); }));
  ::usleep(500'000);  // a server that took it for its client's death would have released by now
  EXPECT_EQ(acquire_by("bob").code(), "lease_scope_conflict");
  EXPECT_TRUE(with_keys_of("heartbeat", "keys").ok());
  kill_program();
  child->wait();
}

TEST_F(LeaseLife, B08AChildDoesNotKeepTheLeaseOfAKilledHoldAndProgramNorWriteWithItsKeys) {
  bench_.serve();
  const auto child = holding("10m", "setsid sleep 60 > /dev/null 2>&1 & echo $!; exec sleep 60");
  const auto left = os::process_of_pid(std::stol("0" + child->read_line()));
  ASSERT_TRUE(left.ok());
  child->kill();
  child->wait();
  kill_program();
  EXPECT_TRUE(eventually([&] { return is_free(); }));
  EXPECT_EQ(last_end(), "client_death");
  EXPECT_EQ(os::liveness_of(*left), os::Liveness::alive) << "else this shows nothing";
  EXPECT_EQ(with_keys_of("heartbeat", "keys").code(), "stale_lease_generation");
  ::kill(static_cast<pid_t>(left->pid), SIGKILL);
}

// --- other pid namespaces, and what can be told about a holder

Words in_another_pid_namespace(const Words& command) { return Words{"unshare", "-pf", "--kill-child"} + command; }

TEST_F(LeaseLife, B04AHoldOfAnotherPidNamespaceIsUnknownAfterItsDeathAndEndsByItsDeadline) {
  bench_.serve();
  support::SpawnOptions options;
  options.folder = bench_.root();
  Child child = support::spawn(in_another_pid_namespace(Words{HOLDFAST_PROGRAM, "--workspace", bench_.root()} +
                                                        hold_words("9s", "echo begun; exec sleep 60")),
                               options);
  ASSERT_EQ(child.read_line(), "begun");
  EXPECT_EQ(acquire_by("bob").code(), "lease_scope_conflict");
  EXPECT_EQ(leases().at(0).at("liveness").at("client"), "alive");
  child.kill();
  child.wait();
  ASSERT_TRUE(eventually([&] { return leases().at(0).at("liveness").at("client") != "alive"; }, 3'000));
  EXPECT_EQ(leases().at(0).at("liveness").at("client"), "unknown");
  EXPECT_EQ(acquire_by("bob").code(), "lease_scope_conflict");
  EXPECT_TRUE(eventually([&] { return is_free(); }));
  EXPECT_EQ(last_end(), "expiry");
}

TEST_F(LeaseLife, B04B134AHolderIsSaidToBeAliveProvenDeadOrUnknown) {
  const auto said = [&] {
    const Json holder = bench_.run({"status"}).at("leases").at("holders").at(0);
    EXPECT_EQ(holder.at("liveness"), leases().at(0).at("liveness").at("holder"));
    EXPECT_GT(holder.at("pid"), 0);
    return holder.at("liveness").get<std::string>();
  };
  bench_.serve();
  bench_.acquire("a.txt");
  EXPECT_EQ(said(), "alive");
  bench_.kill_server();
  EXPECT_EQ(said(), "dead");
  bench_.serve();
  EXPECT_EQ(said(), "dead") << "its successor is another";
  const Answer again = bench_.run({"acquire", "a.txt", "--owner", "alice", "--task", "task-1"});
  ASSERT_TRUE(again.ok()) << again.text;
  EXPECT_EQ(again.at("granted"), "regrant");
  ASSERT_TRUE(bench_.release(Lease{"a.txt", again.at("leases").at(0)}).ok());
  bench_.kill_server();

  Child foreign = support::spawn(in_another_pid_namespace({HOLDFAST_PROGRAM, "--workspace", bench_.root(), "serve"}));
  ASSERT_FALSE(foreign.read_line().empty());
  const Lease lease = bench_.acquire("a.txt", "alice", {"--ttl", "8s"});
  EXPECT_EQ(said(), "alive") << "its lock says so in every namespace";
  foreign.kill();
  foreign.wait();
  EXPECT_TRUE(eventually([&] { return said() == "unknown"; }, 3'000)) << "never dead";
  bench_.serve();
  const Answer refused = bench_.run({"acquire", "a.txt", "--owner", "alice", "--task", "task-1"});
  EXPECT_EQ(refused.code(), "dead_holder_not_proven") << refused.text;
  EXPECT_EQ(refused.at("error").at("details").at("liveness"), "unknown");
  EXPECT_TRUE(eventually([&] { return acquire_by("bob").ok(); })) << "its deadline ends it";
}

}  // namespace
}  // namespace holdfast
