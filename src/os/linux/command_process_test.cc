#include "os/command_process.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <thread>

#include "os/linux/command_shell.h"
#include "os/linux/process_tree.h"

namespace holdfast::os {
namespace {

using support::Child;
using support::eventually;
using support::granted;
using support::refused_with;
using support::TemporaryFolder;

TEST(CommandProcess, GivesAShellsStatus) {
  const TemporaryFolder place;
  EXPECT_EQ(shell(place, "exit 0")->wait(kLimitMs), 0);
  EXPECT_EQ(shell(place, "exit 7")->wait(kLimitMs), 7);
  EXPECT_EQ(shell(place, "exit 255")->wait(kLimitMs), 255);
  EXPECT_EQ(shell(place, "kill -KILL $$")->wait(kLimitMs), 128 + SIGKILL);
  EXPECT_EQ(shell(place, "kill -TERM $$")->wait(kLimitMs), 128 + SIGTERM);
}

TEST(CommandProcess, SaysItsStatusAgainAndNothingBeforeItsEnd) {
  const TemporaryFolder place;
  const auto command = shell(place, "while [ ! -e end ]; do sleep 0.01; done; exit 3");
  EXPECT_EQ(command->wait(0), std::nullopt);
  EXPECT_EQ(command->wait(30), std::nullopt);
  place.write("end", "");
  EXPECT_EQ(command->wait(-1), 3);
  EXPECT_EQ(command->wait(0), 3);
  EXPECT_EQ(command->terminate(0), 3);
}

TEST(CommandProcess, RunsNothingBeforeTheGateIsOpened) {
  const TemporaryFolder place;
  const auto command = started({"touch", place.at("ran")});
  EXPECT_EQ(command->wait(100), std::nullopt);
  EXPECT_FALSE(place.exists("ran"));
  EXPECT_EQ(command->identity(), process_of_pid(command->pid()).value());
  EXPECT_EQ(liveness_of(command->identity()), Liveness::alive);
  ASSERT_TRUE(command->release_gate());
  EXPECT_EQ(command->wait(kLimitMs), 0);
  EXPECT_TRUE(place.exists("ran"));
  EXPECT_EQ(liveness_of(command->identity()), Liveness::dead);
}

TEST(CommandProcess, IsTheProcessThatWaitedAtTheGate) {
  const TemporaryFolder place;
  const auto command = shell(place, "echo $$ > pid");
  EXPECT_EQ(command->wait(kLimitMs), 0);
  EXPECT_EQ(place.read("pid"), std::to_string(command->pid()) + "\n");
}

TEST(CommandProcess, NeverRunsWhereItsObjectGoesBeforeTheGateIsOpened) {
  const TemporaryFolder place;
  pid_t pid = 0;
  {
    const auto command = started({"touch", place.at("ran")});
    pid = static_cast<pid_t>(command->pid());
  }
  EXPECT_EQ(::kill(pid, 0), -1);
  EXPECT_FALSE(place.exists("ran"));
}

// Starts a command, says its pid, and opens the gate where it is told to.
const support::RegisterRole kGatekeeper("gatekeeper", [](const std::vector<std::string>& arguments) {
  auto command = CommandProcess::start({"touch", arguments.at(0)});
  if (!command) return 1;
  support::say(std::to_string((*command)->pid()));
  if (support::hear() != "open" || !(*command)->release_gate()) return 1;
  return (*command)->wait(kLimitMs).value_or(1);
});

TEST(CommandProcess, NeverRunsWhereOurProcessIsKilledBeforeTheGateIsOpened) {
  const TemporaryFolder place;
  Child keeper = support::spawn_as("gatekeeper", {place.at("ran")});
  const pid_t pid = std::stoi(keeper.read_line());
  EXPECT_TRUE(lives(pid));
  keeper.kill();
  keeper.wait();
  EXPECT_TRUE(eventually([&] { return !lives(pid); }));
  EXPECT_FALSE(place.exists("ran"));
  Child opener = support::spawn_as("gatekeeper", {place.at("ran")});
  opener.read_line();
  opener.write("open\n");
  EXPECT_EQ(opener.wait(), 0);
  EXPECT_TRUE(place.exists("ran"));
}

TEST(CommandProcess, MayBeKilledAtTheGate) {
  const auto command = started({"true"});
  ::kill(static_cast<pid_t>(command->pid()), SIGTERM);
  EXPECT_EQ(command->wait(kLimitMs), 128 + SIGTERM);
  EXPECT_TRUE(command->release_gate());
  EXPECT_EQ(command->wait(kLimitMs), 128 + SIGTERM);
  EXPECT_EQ(started({"true"})->terminate(kLimitMs), 128 + SIGTERM);
}

Result<void> run_of(const std::vector<std::string>& words, const CommandOptions& options = {}) {
  HF_TRY(auto command, CommandProcess::start(words, options));
  return command->release_gate();
}

TEST(CommandProcess, RefusesWhatCannotBeStarted) {
  const TemporaryFolder place;
  place.write("no-program", "#!/bin/sh\n");
  std::filesystem::permissions(place.at("no-program"), std::filesystem::perms::owner_read);
  const auto absent = run_of({"holdfast-no-such-program"});
  ASSERT_TRUE(refused_with(absent, Code::command_not_started));
  EXPECT_EQ(absent.refusal().details()["program"], "holdfast-no-such-program");
  EXPECT_TRUE(absent.refusal().details().contains("os_error"));
  EXPECT_TRUE(refused_with(run_of({place.at("absent")}), Code::command_not_started));
  EXPECT_TRUE(refused_with(run_of({place.at("no-program")}), Code::command_not_started));
  EXPECT_TRUE(refused_with(run_of({place.path()}), Code::command_not_started));
  EXPECT_TRUE(refused_with(run_of({""}), Code::command_not_started));
  EXPECT_TRUE(refused_with(run_of({"true"}, {.folder = place.at("absent")}), Code::command_not_started));
  EXPECT_TRUE(run_of({"true"}));
}

TEST(CommandProcess, LeavesNoChildBehindWhereNothingWasStarted) {
  const TemporaryFolder place;
  const auto children = [] {
    return std::ranges::count_if(all_processes(), [](const ProcessEntry& entry) { return entry.parent == ::getpid(); });
  };
  const auto before = children();
  EXPECT_FALSE(run_of({"holdfast-no-such-program"}));
  EXPECT_FALSE(run_of({"true"}, {.folder = place.at("absent")}));
  EXPECT_EQ(children(), before);
}

TEST(CommandProcess, RunsAScriptThatDoesNotSayWhatRunsIt) {
  const TemporaryFolder place;
  place.write("script", "echo \"$0 $1\" > said\n");
  std::filesystem::permissions(place.at("script"), std::filesystem::perms::owner_all);
  const auto command = started({"./script", "word"}, {.folder = place.path()});
  ASSERT_TRUE(command->release_gate());
  EXPECT_EQ(command->wait(kLimitMs), 0);
  EXPECT_EQ(place.read("said"), "./script word\n");
}

TEST(CommandProcess, StartsInItsFolderWithTheEnvironmentThatWasChosen) {
  const TemporaryFolder place;
  ::setenv("COMMAND_TEST_HIDDEN", "1", 1);
  ::setenv("COMMAND_REPLACED", "old", 1);
  CommandOptions options;
  options.environment = {{"GIVEN", "yes"}, {"COMMAND_REPLACED", "new"}};
  options.without_prefix = "COMMAND_TEST_";
  const auto command =
      shell(place, "pwd > said; echo \"$GIVEN[$COMMAND_TEST_HIDDEN]$COMMAND_REPLACED\" >> said", options);
  EXPECT_EQ(command->wait(kLimitMs), 0);
  EXPECT_EQ(place.read("said"), place.path() + "\nyes[]new\n");
  ::unsetenv("COMMAND_TEST_HIDDEN");
  ::unsetenv("COMMAND_REPLACED");
}

TEST(CommandProcess, InheritsNothingButItsThreeStreams) {
  const TemporaryFolder place;
  const Handle low(::open("/dev/null", O_RDONLY));  // open for every program, as a careless starter leaves it
  const Handle high(::fcntl(low.fd(), F_DUPFD, 200));
  const auto command = shell(place, "ls /proc/self/fd > said");
  EXPECT_EQ(command->wait(kLimitMs), 0);
  EXPECT_EQ(place.read("said"), "0\n1\n2\n3\n");  // 3 is the folder that ls reads
}

// An open-file-description lock lives as long as any descriptor of it, a forked one as well.
TEST(CommandProcess, KeepsNothingOfOursOpenAtTheGate) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  Handle ours(ends[0]);
  const Handle other(ends[1]);
  const auto command = started({"true"});
  ours.reset();
  char byte = 0;
  EXPECT_EQ(::recv(other.fd(), &byte, 1, MSG_DONTWAIT), 0) << "the child holds the other end";
}

TEST(CommandProcess, HasItsSignalsAsTheyAreByDefaultAndNoneBlocked) {
  const TemporaryFolder place;
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGXCPU);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const auto handler = ::signal(SIGPIPE, SIG_IGN);
  EXPECT_EQ(shell(place, "kill -PIPE $$; echo survived")->wait(kLimitMs), 128 + SIGPIPE);
  EXPECT_EQ(shell(place, "grep SigBlk /proc/self/status > said")->wait(kLimitMs), 0);
  EXPECT_EQ(place.read("said"), "SigBlk:\t0000000000000000\n");
  ::signal(SIGPIPE, handler);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST(CommandProcess, IgnoresAHangupThatItsStarterWantedIgnored) {
  const TemporaryFolder place;
  const auto before = ::signal(SIGHUP, SIG_IGN);
  EXPECT_EQ(shell(place, "kill -HUP $$; exit 4")->wait(kLimitMs), 4);
  ::signal(SIGHUP, SIG_DFL);
  EXPECT_EQ(shell(place, "kill -HUP $$; exit 4")->wait(kLimitMs), 128 + SIGHUP);
  ::signal(SIGHUP, before);
}

TEST(CommandProcess, IsToldEachSignalThatArrivesAtUs) {
  const TemporaryFolder place;
  std::array<sighandler_t, NSIG> before{};
  const std::array<std::pair<int, const char*>, 8> signals = {{{SIGINT, "INT"},
                                                               {SIGTERM, "TERM"},
                                                               {SIGHUP, "HUP"},
                                                               {SIGQUIT, "QUIT"},
                                                               {SIGUSR1, "USR1"},
                                                               {SIGUSR2, "USR2"},
                                                               {SIGWINCH, "WINCH"},
                                                               {SIGALRM, "ALRM"}}};
  for (const auto& [number, name] : signals) before.at(static_cast<std::size_t>(number)) = ::signal(number, SIG_DFL);
  for (const auto& [number, name] : signals) {
    place.write("said", "");
    const std::string script =
        std::string("trap 'echo heard > said; exit 9' ") + name + "; echo ready > said; while :; do sleep 0.01; done";
    const auto command = shell(place, script);
    ASSERT_TRUE(says(place, "said", "ready\n"));
    ::kill(::getpid(), number);
    EXPECT_EQ(command->wait(kLimitMs), 9) << name;
    EXPECT_EQ(place.read("said"), "heard\n") << name;
  }
  for (const auto& [number, name] : signals) ::signal(number, before.at(static_cast<std::size_t>(number)));
}

// In a session without a terminal: on one, we would stop with the command.
const support::RegisterRole kContinued("command_continued", [](const std::vector<std::string>&) {
  if (::setsid() < 0) return 1;
  const TemporaryFolder place;
  const auto command = shell(place, "kill -STOP $$; exit 6");
  const bool stopped = eventually([&] {
    const auto entry = process_entry(static_cast<pid_t>(command->pid()));
    return entry && entry->state == 'T';
  });
  if (!stopped || command->wait(30)) return 2;
  ::kill(::getpid(), SIGCONT);
  return command->wait(kLimitMs).value_or(3);
});

TEST(CommandProcess, IsContinuedWhenWeAre) { EXPECT_EQ(support::spawn_as("command_continued").wait(), 6); }

TEST(CommandProcess, LeavesOurOwnSignalsAsTheyWere) {
  const TemporaryFolder place;
  sigset_t before;
  sigset_t after;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &before);
  const auto child_action = ::signal(SIGCHLD, SIG_IGN);
  EXPECT_EQ(shell(place, "exit 5")->wait(kLimitMs), 5);  // a status, though children were to vanish
  EXPECT_EQ(::signal(SIGCHLD, child_action), SIG_IGN);
  ::pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (const int number : {SIGINT, SIGTERM, SIGCHLD, SIGCONT}) {
    EXPECT_EQ(sigismember(&before, number), sigismember(&after, number)) << number;
  }
}

TEST(CommandProcess, WaitsNoLongerWhenItIsInterrupted) {
  const TemporaryFolder place;
  const auto command = shell(place, "sleep 100");
  std::thread other([&] { command->interrupt(); });
  EXPECT_EQ(command->wait(-1), std::nullopt);
  other.join();
  EXPECT_EQ(command->wait(20), std::nullopt);
}

// A thread that holds the allocator's lock while we fork holds it in the child for ever.
TEST(CommandProcess, StartsWhileOtherThreadsAllocate) {
  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  for (int count = 0; count < 3; ++count) {
    threads.emplace_back([&] {
      while (!done) std::vector<std::string> strings(100, std::string(1000, 'x'));
    });
  }
  for (int count = 0; count < 40; ++count) {
    const auto command = started({"true"});
    EXPECT_TRUE(command->release_gate());
    EXPECT_EQ(command->wait(kLimitMs), 0);
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace holdfast::os
