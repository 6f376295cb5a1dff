// `hold`, `run` and `exec` as a person and a script meet them (CONTRACT sections 3 and 8; field reports B08, B15, B20
// to B47, B112): what ends the lease, what ends the program, and what each says.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

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

class Held : public testing::Test {
 protected:
  Held() { bench_.put("a.txt", "old"); }

  Words hold(const Words& program, const Words& more = {}, const std::string& owner = "alice") const {
    return Words{"hold", "a.txt", "--owner", owner, "--task", "t"} + more + Words{"--"} + program;
  }
  // A hold whose program has begun; its pid is in `pid`.
  std::unique_ptr<Child> holding(const Words& more = {}, const std::string& program = "exec sleep 60") {
    std::filesystem::remove(bench_.at("pid"));
    auto child = bench_.start(hold({"sh", "-c",
                                    "echo $$ > " + bench_.at("pid") + ".new; mv " + bench_.at("pid") + ".new " +
                                        bench_.at("pid") + "; " + program},
                                   more));
    EXPECT_TRUE(eventually([&] { return std::filesystem::exists(bench_.at("pid")); }));
    program_ = std::stol("0" + bench_.get("pid"));
    return child;
  }
  bool program_runs() const {
    std::ifstream status("/proc/" + std::to_string(program_) + "/stat");
    std::string line;
    std::getline(status, line);
    return status && line.find(") Z ") == std::string::npos;
  }
  bool is_free() const { return bench_.run({"leases"}).at("leases").empty(); }
  long server() const { return std::stol(bench_.run({"status"}).at("server").at("pid").dump()); }
  void stop_server() const { (void)bench_.run({"stop"}); }
  ~Held() override { stop_server(); }

  Workbench bench_;
  long program_ = 0;
};

TEST_F(Held, RunsTheProgramUnderTheLeaseAndPassesItsStatusOn) {
  EXPECT_EQ(bench_.run(hold({"true"})).status, 0);
  EXPECT_EQ(bench_.run(hold({"sh", "-c", "exit 7"})).status, 7);
  EXPECT_EQ(bench_.run(hold({"sh", "-c", "kill -TERM $$"})).status, 128 + SIGTERM);
  EXPECT_TRUE(is_free());
}

TEST_F(Held, StartsAServerWhereNoneRunsAndUsesItsGuard) {
  const auto child = holding();
  const Json lease = bench_.run({"leases"}).at("leases").at(0);
  EXPECT_EQ(lease.at("os_lock").at("enforced"), true) << lease;
  EXPECT_EQ(lease.at("bound"), true);
  child->kill();
  ::kill(static_cast<pid_t>(program_), SIGKILL);
  child->wait();
}

TEST_F(Held, ItsProgramWritesWithTheKeysOfItsEnvironment) {
  bench_.put("new", "by the program");
  const Answer run =
      bench_.run(hold({HOLDFAST_PROGRAM, "--workspace", bench_.root(), "write", "a.txt", "--from", bench_.at("new")}));
  EXPECT_EQ(run.status, 0) << run.text;
  EXPECT_EQ(bench_.get("a.txt"), "by the program");
}

TEST_F(Held, AProgramThatWritesInPlaceIsKeptOutAndTold) {
  const Answer run = bench_.run(hold({"sh", "-c", "echo direct > " + bench_.at("a.txt")}));
  EXPECT_EQ(run.status, 1) << run.text;
  EXPECT_EQ(bench_.get("a.txt"), "old");
}

TEST_F(Held, WithoutGuardTheProgramWritesInPlaceAndItsBytesAreNamed) {
  const Answer run = bench_.run(hold({"sh", "-c", "echo direct > " + bench_.at("a.txt")}, {"--no-guard"}));
  EXPECT_EQ(run.status, 0) << run.text;
  EXPECT_EQ(bench_.get("a.txt"), "direct\n");
  EXPECT_EQ(bench_.run({"quarantine", "list"}).at("quarantine").size(), 1U);
}

TEST_F(Held, WhatIsRefusedRunsNothing) {
  bench_.serve();
  bench_.acquire("a.txt", "bob");
  const Answer refused = bench_.run(hold({"touch", bench_.at("ran")}));
  EXPECT_EQ(refused.code(), "lease_scope_conflict");
  EXPECT_FALSE(std::filesystem::exists(bench_.at("ran")));
  EXPECT_EQ(bench_.run({"hold", "a.txt", "--owner", "o", "--task", "t", "--", "/no/such/program"}).code(),
            "lease_scope_conflict");
}

TEST_F(Held, AProgramThatCannotBeStartedLeavesNoLease) {
  const Answer refused = bench_.run(hold({"/no/such/program"}));
  EXPECT_EQ(refused.code(), "command_not_started") << refused.text;
  EXPECT_TRUE(is_free());
}

TEST_F(Held, B20TwoOfOneOwnerNeverShareALease) {
  const auto first = holding();
  EXPECT_EQ(bench_.run(hold({"true"})).code(), "lease_scope_conflict");
  EXPECT_EQ(bench_.run({"acquire", "a.txt", "--owner", "alice", "--task", "t"}).code(), "lease_scope_conflict");
  auto second = bench_.start(hold({"true"}, {"--wait", "20"}));
  ::usleep(300'000);
  ::kill(static_cast<pid_t>(program_), SIGTERM);
  EXPECT_EQ(second->wait(), 0);
  first->wait();
}

TEST_F(Held, BothKilledFreeTheLeaseAtOnce) {
  const auto child = holding();
  child->kill();
  child->wait();
  EXPECT_FALSE(is_free()) << "its program still runs";
  ::kill(static_cast<pid_t>(program_), SIGKILL);
  EXPECT_TRUE(eventually([&] { return is_free(); }));
}

TEST_F(Held, ALostLeaseEndsTheProgramAndItsChildrenThatIgnoreIt) {
  const auto child = holding({}, "trap '' TERM; sleep 60 & sleep 60; sleep 60");
  ASSERT_TRUE(bench_.run({"epoch", "advance", "--reason", "test"}).ok());
  EXPECT_EQ(child->wait(), 75);
  EXPECT_TRUE(eventually([&] { return !program_runs(); }));
}

TEST_F(Held, AKilledServerIsReplacedAndTheProgramFindsItsNewKeys) {
  const auto child =
      holding({}, "cp $HOLDFAST_LEASE_FILE " + bench_.at("first") + "; until cmp -s $HOLDFAST_LEASE_FILE " +
                      bench_.at("first") + "; do sleep 0.05; done; while cmp -s $HOLDFAST_LEASE_FILE " +
                      bench_.at("first") + "; do sleep 0.05; done; " HOLDFAST_PROGRAM " --workspace " + bench_.root() +
                      " write a.txt --from " + bench_.at("first"));
  ASSERT_TRUE(eventually([&] { return !bench_.get("first").empty(); }));
  const long before = server();
  ::kill(static_cast<pid_t>(before), SIGKILL);
  EXPECT_EQ(child->wait(), 0);
  EXPECT_NE(server(), before);
  EXPECT_EQ(bench_.get("a.txt"), bench_.get("first"));
  EXPECT_TRUE(bench_.evidence_verifies());
}

TEST_F(Held, AServerThatWasStoppedIsNotStartedAgainAndTheLeaseStays) {
  const auto child = holding({"--ttl", "2s"}, "sleep 4");
  stop_server();
  EXPECT_EQ(child->wait(), 0);
  EXPECT_EQ(bench_.run({"status"}).at("server"), nullptr);
  EXPECT_TRUE(is_free());
}

TEST_F(Held, B08AForkedCopyOfTheProgramEndsNothing) {
  const Answer run = bench_.run(hold({"sh", "-c", "(exit 3) & wait; exit 0"}));
  EXPECT_EQ(run.status, 0);
  EXPECT_TRUE(is_free());
}

TEST_F(Held, SignalsReachTheProgram) {
  const auto child = holding({}, "trap 'exit 9' USR1; touch " + bench_.at("ready") + "; while :; do sleep 0.05; done");
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(bench_.at("ready")); }));
  ::kill(child->pid(), SIGUSR1);
  EXPECT_EQ(child->wait(), 9);
  EXPECT_TRUE(is_free());
}

TEST_F(Held, AStoppedHoldWhoseLeaseWentOnEndsItsProgram) {
  const auto child = holding({"--ttl", "2s"}, "sleep 60");
  ::kill(child->pid(), SIGSTOP);
  EXPECT_TRUE(eventually([&] { return is_free(); }));
  const Lease other = bench_.acquire("a.txt", "bob");
  ::kill(child->pid(), SIGCONT);
  EXPECT_EQ(child->wait(), 75);
  EXPECT_FALSE(program_runs());
  EXPECT_TRUE(bench_.heartbeat(other).ok());
}

TEST_F(Held, B21B37B40AServerThatAnswersNobodyEndsTheProgramByTheDeadline) {
  const auto child = holding({"--ttl", "3s"}, "trap '' TERM; while :; do sleep 0.1; done");
  const auto pid = static_cast<pid_t>(server());
  ::kill(pid, SIGSTOP);
  EXPECT_TRUE(eventually([&] { return !program_runs(); }, 12'000)) << "TERM is ignored; KILL follows";
  ::kill(pid, SIGCONT);
  EXPECT_EQ(child->wait(), 75);
  EXPECT_TRUE(eventually([&] { return is_free(); }));
}

TEST_F(Held, B47EveryEarlyExitLeavesNoLease) {
  EXPECT_EQ(bench_.run(hold({"/no/such/program"})).code(), "command_not_started");
  EXPECT_EQ(bench_.run({"run", "project:/", "--owner", "o", "--task", "t", "--", "true"}).code(),
            "enforcement_insufficient");
  EXPECT_EQ(bench_.run(hold({"true"}, {"--require", "bpf_lsm"})).code(), "enforcement_insufficient");
  EXPECT_EQ(bench_.run(hold({"true"}, {"--ttl", "0"})).code(), "lease_ttl_invalid");
  EXPECT_TRUE(is_free());
}

TEST_F(Held, SeveralScopesAreHeldAllOrNone) {
  bench_.serve();
  const Lease taken = bench_.acquire("b.txt", "bob");
  EXPECT_EQ(bench_.run({"hold", "a.txt", "b.txt", "--owner", "o", "--task", "t", "--", "true"}).code(),
            "lease_scope_conflict");
  bench_.release(taken);
  EXPECT_EQ(bench_.run({"hold", "a.txt", "b.txt", "--owner", "o", "--task", "t", "--", "true"}).status, 0);
  EXPECT_TRUE(is_free());
}

// The boot clock counts a suspend: a process of a time namespace that is two hours ahead sees what a machine sees that
// slept so long.
TEST_F(Held, ASuspendOfHoursHasEndedEveryLease) {
  const Lease lease = bench_.acquire("a.txt");
  const Words asleep = {"unshare",        "--time",      "--boottime",  "7200",
                        HOLDFAST_PROGRAM, "--workspace", bench_.root(), "--json"};
  support::Child beat = support::spawn(asleep + Words{"heartbeat", "project:/a.txt"} + lease.keys());
  const auto refused = parse_json(beat.read_all());
  ASSERT_TRUE(refused);
  EXPECT_EQ((*refused)["error"]["code"], "lease_expired") << *refused;
}

class Confined : public Held {};

TEST_F(Confined, AProgramWritesOnlyBelowTheFoldersThatItLeases) {
  std::filesystem::create_directory(bench_.at("mine"));
  bench_.put("other", "keep");
  const Answer run = bench_.run({"run", "mine", "--owner", "o", "--task", "t", "--", "sh", "-c",
                                 "cd " + bench_.root() +
                                     "; echo x > mine/ok; echo x > other; rm -f other; echo x > new; "
                                     "echo t > $TMPDIR/t && cat $TMPDIR/t > mine/t; true"});
  EXPECT_EQ(run.status, 0) << run.text;
  EXPECT_EQ(bench_.get("other"), "keep");
  EXPECT_FALSE(std::filesystem::exists(bench_.at("new")));
  EXPECT_EQ(bench_.get("mine/t"), "t\n");
  EXPECT_TRUE(bench_.run({"quarantine", "list"}).at("quarantine").empty());
  EXPECT_NE(bench_.log().find("\"how\":\"confined\""), std::string::npos);
}

TEST_F(Confined, ItCannotTouchTheControlFolderOrTheGuardedFile) {
  std::filesystem::create_directory(bench_.at("mine"));
  const Answer whole = bench_.run({"run", "project:/", "--owner", "o", "--task", "t", "--", "true"});
  EXPECT_EQ(whole.code(), "enforcement_insufficient") << whole.text;
  const Answer file = bench_.run({"run", "a.txt", "--owner", "o", "--task", "t", "--", "true"});
  EXPECT_EQ(file.code(), "enforcement_insufficient") << file.text;
  const std::string generations = bench_.get(".squad/generations.json");
  bench_.run(
      {"run", "mine", "--owner", "o", "--task", "t", "--", "sh", "-c", "rm -rf " + bench_.at(".squad") + "; true"});
  EXPECT_FALSE(bench_.get(".squad/generations.json").empty());
  EXPECT_TRUE(bench_.generations_verify());
}

TEST_F(Confined, WithoutGuardALeasedFileIsWrittenInPlaceAndNothingElse) {
  bench_.put("other", "keep");
  const Answer run = bench_.run({"run", "a.txt", "--no-guard", "--owner", "o", "--task", "t", "--", "sh", "-c",
                                 "echo more >> " + bench_.at("a.txt") + "; echo x > " + bench_.at("other") + "; true"});
  EXPECT_EQ(run.status, 0) << run.text;
  EXPECT_EQ(bench_.get("a.txt"), "oldmore\n");
  EXPECT_EQ(bench_.get("other"), "keep");
}

TEST_F(Confined, ItsDaemonsEndWithIt) {
  std::filesystem::create_directory(bench_.at("mine"));
  const Answer run = bench_.run({"run", "mine", "--owner", "o", "--task", "t", "--", "sh", "-c",
                                 "setsid sh -c 'echo $$ > " + bench_.at("mine/pid") + "; exec sleep 60' & sleep 0.5"});
  EXPECT_EQ(run.status, 0) << run.text;
  program_ = std::stol("0" + bench_.get("mine/pid"));
  ASSERT_GT(program_, 0);
  EXPECT_TRUE(eventually([&] { return !program_runs(); }));
}

class UnderATenancy : public Held {};

TEST_F(UnderATenancy, AProgramRunsWithTheCommandInItsEnvironmentAndIsRecorded) {
  bench_.serve();
  const Lease lease = bench_.acquire("a.txt");
  const Answer run = bench_.run(Words{"exec", "a.txt"} + lease.keys() +
                                Words{"--", "sh", "-c", "printf %s \"$HOLDFAST_COMMAND\"; exit 4"});
  EXPECT_EQ(run.status, 4);
  const auto command = parse_json(run.text);
  ASSERT_TRUE(command) << run.text;
  EXPECT_EQ((*command)["resource"], "file://project:/a.txt");
  EXPECT_EQ((*command)["generation"], lease.record["generation"]);
  const std::string log = bench_.log();
  EXPECT_NE(log.find("command_issued"), std::string::npos);
  EXPECT_NE(log.find("\"exit_status\":4"), std::string::npos);
}

TEST_F(UnderATenancy, AStaleOneRunsNothing) {
  bench_.serve();
  const Lease lease = bench_.acquire("a.txt");
  bench_.release(lease);
  const Answer refused = bench_.run(Words{"exec", "a.txt"} + lease.keys() + Words{"--", "touch", bench_.at("ran")});
  EXPECT_EQ(refused.code(), "stale_lease_generation");
  EXPECT_FALSE(std::filesystem::exists(bench_.at("ran")));
}

TEST_F(UnderATenancy, OneThatEndsMeanwhileIsSaid) {
  bench_.serve();
  const Lease lease = bench_.acquire("a.txt", "alice", {"--ttl", "1s"});
  const Answer run = bench_.run(Words{"exec", "a.txt"} + lease.keys() + Words{"--", "sleep", "2"});
  EXPECT_EQ(run.status, 75);
}

}  // namespace
}  // namespace holdfast
