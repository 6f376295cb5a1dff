// How a command is ended, and what it has started with it.
#include <gtest/gtest.h>

#include <signal.h>
#include <sys/prctl.h>

#include <optional>

#include "os/linux/command_shell.h"

namespace holdfast::os {
namespace {

using support::Child;
using support::TemporaryFolder;

TEST(CommandTermination, IsHeardByAProgramThatCleansUp) {
  const TemporaryFolder place;
  const auto command =
      shell(place, "trap 'echo cleaned > said; exit 11' TERM; echo > ready; while :; do sleep 0.01; done");
  ASSERT_TRUE(says(place, "ready", "\n"));
  EXPECT_EQ(command->terminate(kLimitMs), 11);
  EXPECT_EQ(place.read("said"), "cleaned\n");
}

TEST(CommandTermination, KillsWhoIgnoresIt) {
  const TemporaryFolder place;
  const auto command = shell(place, "trap '' TERM; echo > ready; while :; do sleep 0.01; done");
  ASSERT_TRUE(says(place, "ready", "\n"));
  EXPECT_EQ(command->terminate(50), 128 + SIGKILL);
  EXPECT_TRUE(command->survivors().empty());
}

TEST(CommandTermination, ReachesAStoppedProgram) {
  const TemporaryFolder place;
  const auto command = shell(place, "trap 'exit 12' TERM; echo > ready; kill -STOP $$; while :; do sleep 0.01; done");
  ASSERT_TRUE(says(place, "ready", "\n"));
  EXPECT_EQ(command->terminate(kLimitMs), 12);
}

TEST(CommandTermination, EndsTheWholeGroup) {
  const TemporaryFolder place;
  const auto command = shell(place,
                             "sh -c 'trap \"\" TERM; echo $$ > stubborn; while :; do sleep 0.01; done' & "
                             "sleep 1000 & echo $! > inner; wait");
  const pid_t inner = pid_in(place, "inner");
  const pid_t stubborn = pid_in(place, "stubborn");
  EXPECT_EQ(command->terminate(1000), 128 + SIGTERM);
  EXPECT_FALSE(lives(inner));
  EXPECT_FALSE(lives(stubborn));
}

TEST(CommandTermination, ComesWithTheDestructor) {
  const TemporaryFolder place;
  pid_t inner = 0;
  pid_t outer = 0;
  {
    const auto command = shell(place, "trap '' TERM; sleep 1000 & echo $! > inner; wait; sleep 1000");
    outer = static_cast<pid_t>(command->pid());
    inner = pid_in(place, "inner");
  }
  EXPECT_FALSE(lives(inner));
  EXPECT_EQ(::kill(outer, 0), -1);
}

constexpr const char* kDaemon =
    "setsid sh -c '(trap \"\" TERM HUP; echo $$ > leader; exec sh -c \"echo \\$\\$ > daemon; "
    "while :; do sleep 0.01; done\") &' ; ";

TEST(CommandTree, EndsADaemonWithTheProgramThatStartedIt) {
  const TemporaryFolder place;
  const auto command =
      shell(place, std::string(kDaemon) + "while [ ! -s daemon ]; do sleep 0.01; done; exit 8", {.whole_tree = true});
  EXPECT_EQ(command->wait(kLimitMs), 8);
  EXPECT_FALSE(lives(pid_in(place, "daemon")));
  EXPECT_TRUE(command->survivors().empty());
}

TEST(CommandTree, EndsADaemonWhenTheProgramIsTerminated) {
  const TemporaryFolder place;
  const auto command = shell(place, std::string(kDaemon) + "echo > ready; sleep 1000", {.whole_tree = true});
  const pid_t daemon = pid_in(place, "daemon");
  ASSERT_TRUE(says(place, "ready", "\n"));
  EXPECT_EQ(command->terminate(1000), 128 + SIGTERM);
  EXPECT_FALSE(lives(daemon));
}

TEST(CommandTree, LeavesADaemonAloneWhereItWasNotAskedFor) {
  const TemporaryFolder place;
  pid_t daemon = 0;
  {
    const auto command = shell(place, std::string(kDaemon) + "while [ ! -s daemon ]; do sleep 0.01; done");
    EXPECT_EQ(command->wait(kLimitMs), 0);
    daemon = pid_in(place, "daemon");
  }
  EXPECT_TRUE(lives(daemon));
  ::kill(daemon, SIGKILL);
}

TEST(CommandTree, SparesChildrenOfOursThatWereThereBeforeOrAreNamed) {
  const TemporaryFolder place;
  Child before = support::spawn({"sleep", "1000"});
  std::optional<Child> meanwhile;
  CommandOptions options;
  options.whole_tree = true;
  options.spares = [&](std::int64_t pid) { return meanwhile && pid == meanwhile->pid(); };
  const auto command = shell(place, "sleep 1000", options);
  meanwhile.emplace(support::spawn({"sleep", "1000"}));
  EXPECT_EQ(command->terminate(kLimitMs), 128 + SIGTERM);
  EXPECT_TRUE(lives(before.pid()));
  EXPECT_TRUE(lives(meanwhile->pid()));
}

TEST(CommandTree, LeavesOurProcessNoSubreaper) {
  const TemporaryFolder place;
  int during = 0;
  int after = 1;
  {
    const auto command = shell(place, "exit 0", {.whole_tree = true});
    ::prctl(PR_GET_CHILD_SUBREAPER, &during);
    EXPECT_EQ(command->wait(kLimitMs), 0);
  }
  ::prctl(PR_GET_CHILD_SUBREAPER, &after);
  EXPECT_EQ(during, 1);
  EXPECT_EQ(after, 0);
}

TEST(CommandTree, EndsATreeThatKeepsStartingOthers) {
  const TemporaryFolder place;
  place.write("again", "echo x >> marks; [ -e end ] && exit 0; setsid sh ./again & setsid sleep 5 & exit 0\n");
  const auto command =
      shell(place, "sh ./again; while [ $(wc -l < marks) -lt 20 ]; do sleep 0.01; done; exit 2", {.whole_tree = true});
  const auto status = command->wait(kLimitMs);
  place.write("end", "");  // whatever the outcome, it does not go on for ever
  EXPECT_EQ(status, 2);
  EXPECT_TRUE(command->survivors().empty());
  const std::string marks = place.read("marks");
  EXPECT_EQ(place.read("marks"), marks);
}

}  // namespace
}  // namespace holdfast::os
