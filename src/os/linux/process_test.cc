#include "os/process.h"

#include <gtest/gtest.h>

#include <unistd.h>
#include <chrono>
#include <thread>

#include <iostream>

#include "base/clock.h"
#include "base/ids.h"
#include "base/json.h"
#include "support/child.h"
#include "support/refused_with.h"

namespace holdfast::os {
namespace {

using support::Child;
using support::refused_with;

// Says its identity as it sees it itself, then lives until its stdin ends.
const support::RegisterRole kIdentity("say_identity", [](const std::vector<std::string>&) {
  support::say(dump_ascii(this_process().to_json()));
  support::hear();
  return 0;
});
// Says how it judges each identity that it is told.
const support::RegisterRole kJudge("judge_liveness", [](const std::vector<std::string>&) {
  for (std::string line = support::hear(); !line.empty(); line = support::hear()) {
    const auto document = parse_json(line);
    if (!document) return 1;
    support::say(std::string(name_of(liveness_of(ProcessIdentity::from_json(*document)))));
  }
  return 0;
});

ProcessIdentity told_by(Child& child) {
  return ProcessIdentity::from_json(parse_json(child.read_line()).value_or(Json()));
}

std::string this_program() {
  char path[4096];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
  return std::string(path, static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
}

TEST(ProcessIdentity, IsTheSameFromInsideAndFromOutside) {
  Child child = support::spawn_as("say_identity");
  const ProcessIdentity inside = told_by(child);
  EXPECT_EQ(inside.pid, child.pid());
  EXPECT_FALSE(inside.boot_id.empty() || inside.pid_namespace.empty() || inside.time_namespace.empty() ||
               inside.started_at.empty());
  EXPECT_EQ(process_of_pid(child.pid()).value(), inside);
  EXPECT_EQ(ProcessIdentity::from_json(inside.to_json()), inside);
  EXPECT_EQ(process_of_pid(::getpid()).value(), this_process());
  EXPECT_EQ(liveness_of(this_process()), Liveness::alive);
}

TEST(ProcessLiveness, AKilledProcessIsDeadBeforeAndAfterItIsReaped) {
  Child child = support::spawn_as("say_identity");
  const ProcessIdentity identity = told_by(child);
  EXPECT_EQ(liveness_of(identity), Liveness::alive);
  child.kill();
  EXPECT_TRUE(support::eventually([&] { return liveness_of(identity) == Liveness::dead; }));
  EXPECT_TRUE(refused_with(process_of_pid(identity.pid), Code::not_found));
  child.wait();
  EXPECT_EQ(liveness_of(identity), Liveness::dead);
  EXPECT_TRUE(refused_with(process_of_pid(identity.pid), Code::not_found));
}

TEST(ProcessLiveness, AStoppedProcessIsAlive) {
  Child child = support::spawn_as("say_identity");
  const ProcessIdentity identity = told_by(child);
  child.stop();
  EXPECT_EQ(liveness_of(identity), Liveness::alive);
}

TEST(ProcessLiveness, AReusedPidIsDeadAndSoIsAnotherBoot) {
  ProcessIdentity reused = this_process();
  reused.started_at += "1";
  EXPECT_EQ(liveness_of(reused), Liveness::dead);
  ProcessIdentity before = this_process();
  before.boot_id = "00000000-0000-4000-8000-000000000000";
  EXPECT_EQ(liveness_of(before), Liveness::dead);
}

TEST(ProcessLiveness, WhatCannotBeDecidedIsUnknownAndNeverDead) {
  ProcessIdentity elsewhere = this_process();
  elsewhere.pid_namespace = "1";
  EXPECT_EQ(liveness_of(elsewhere), Liveness::unknown);
  elsewhere.pid = 1 << 22;  // absent here, which says nothing about there
  EXPECT_EQ(liveness_of(elsewhere), Liveness::unknown);
  ProcessIdentity later = this_process();
  later.time_namespace = "1";
  EXPECT_EQ(liveness_of(later), Liveness::unknown);
  for (const auto spoil : {0, 1, 2, 3}) {
    ProcessIdentity partial = this_process();
    if (spoil == 0) partial.boot_id.clear();
    if (spoil == 1) partial.pid_namespace.clear();
    if (spoil == 2) partial.started_at.clear();
    if (spoil == 3) partial.pid = 0;
    EXPECT_EQ(liveness_of(partial), Liveness::unknown) << spoil;
  }
  EXPECT_EQ(liveness_of(ProcessIdentity::from_json(Json(nullptr))), Liveness::unknown);
  EXPECT_EQ(liveness_of(ProcessIdentity::from_json(Json{{"pid", -3}, {"boot", 7}})), Liveness::unknown);
  EXPECT_EQ(liveness_of(ProcessIdentity::from_json(Json{{"pid", 1e300}})), Liveness::unknown);
}

TEST(ProcessLiveness, TheNumberOfAnotherProcessIsNotTheProcess) {
  ProcessIdentity reused = this_process();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // start times have a grain of 10 ms
  Child child = support::spawn({"sleep", "60"});
  reused.pid = child.pid();
  EXPECT_EQ(liveness_of(reused), Liveness::dead);
}

TEST(ProcessLiveness, AProcessOfAnotherPidNamespaceIsUnknownBothWays) {
  Child inner = support::spawn({"unshare", "-pf", "--kill-child", this_program(), "--as=say_identity"});
  const ProcessIdentity inside = told_by(inner);
  ASSERT_EQ(inside.pid, 1) << "unshare needs root";
  EXPECT_EQ(liveness_of(inside), Liveness::unknown);
  inner.kill();
  inner.wait();
  EXPECT_EQ(liveness_of(inside), Liveness::unknown);

  Child judge = support::spawn({"unshare", "-pf", "--kill-child", this_program(), "--as=judge_liveness"});
  judge.write(dump_ascii(this_process().to_json()) + "\n");
  EXPECT_EQ(judge.read_line(), "unknown");
}

// /proc still shows the outer namespace, where 1 is init: asking it by number would compare with the wrong process.
TEST(ProcessLiveness, IsRightInANamespaceWhoseProcIsNotItsOwn) {
  Child inner = support::spawn({"unshare", "-pf", "--kill-child", this_program(), "--as=judge_liveness"});
  Child outer_view = support::spawn({"unshare", "-pf", "--kill-child", this_program(), "--as=say_identity"});
  ProcessIdentity identity = told_by(outer_view);
  EXPECT_NE(identity.started_at, process_of_pid(1).value().started_at);
  inner.write(dump_ascii(identity.to_json()) + "\n");
  EXPECT_EQ(inner.read_line(), "unknown");  // two namespaces are two
}

const support::RegisterRole kJudgeItself("judge_itself", [](const std::vector<std::string>&) {
  const auto named = process_of_pid(::getpid());
  support::say(std::string(name_of(liveness_of(this_process()))) + (named && *named == this_process() ? " same" : ""));
  return 0;
});

TEST(ProcessLiveness, AProcessFindsItselfAliveInANamespaceWhoseProcIsNotItsOwn) {
  Child inner = support::spawn({"unshare", "-pf", "--kill-child", this_program(), "--as=judge_itself"});
  EXPECT_EQ(inner.read_line(), "alive same");
}

TEST(ProcessLiveness, InAnotherTimeNamespaceAPresentPidIsUnknownAndAnAbsentOneDead) {
  Child child = support::spawn_as("say_identity");
  const ProcessIdentity identity = told_by(child);
  Child judge =
      support::spawn({"unshare", "--time", "--boottime", "3600", "--fork", this_program(), "--as=judge_liveness"});
  judge.write(dump_ascii(identity.to_json()) + "\n");
  EXPECT_EQ(judge.read_line(), "unknown");
  child.kill();
  child.wait();
  judge.write(dump_ascii(identity.to_json()) + "\n");
  EXPECT_EQ(judge.read_line(), "dead");
}

TEST(CommandOfPid, NamesALivingProcessAndNothingElse) {
  Child child = support::spawn({"cat"});
  EXPECT_TRUE(support::eventually([&] { return command_of_pid(child.pid()) == "cat"; }));
  child.kill();
  child.wait();
  EXPECT_EQ(command_of_pid(child.pid()), "");
  EXPECT_EQ(command_of_pid(-1), "");
}

TEST(SystemClock, CountsOnOneBoot) {
  const SystemClock clock;
  const Instant one = clock.now();
  const Instant two = clock.now();
  EXPECT_GT(one.boot_ms, 0);
  EXPECT_GE(two.boot_ms, one.boot_ms);
  EXPECT_GT(one.wall_us, 1'600'000'000LL * 1'000'000);
  EXPECT_EQ(one.boot_id, boot_id());
  EXPECT_EQ(one.boot_id.size(), 36U);
}

TEST(RandomHex, HasTheLengthAskedForAndDoesNotRepeat) {
  EXPECT_EQ(random_hex(0), "");
  EXPECT_EQ(random_hex(16).size(), 32U);
  EXPECT_EQ(random_hex(16).find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(random_hex(16), random_hex(16));
}

}  // namespace
}  // namespace holdfast::os
