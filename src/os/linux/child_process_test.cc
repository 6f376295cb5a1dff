#include "os/child_process.h"

#include <gtest/gtest.h>

#include <signal.h>

#include <filesystem>

#include "os/temporary_folder.h"

namespace holdfast::os {
namespace {

constexpr int kLimitMs = 20'000;

std::unique_ptr<ChildProcess> shell(const std::string& script, const ChildOptions& options = {}) {
  auto child = ChildProcess::start({"/bin/sh", "-c", script}, options);
  EXPECT_TRUE(child.ok());
  return child.ok() ? std::move(*child) : nullptr;
}

TEST(ChildProcess, GivesWhatItPrintedAndItsStatus) {
  const auto child = shell("echo out; echo err >&2; exit 7");
  EXPECT_EQ(child->wait(kLimitMs), 7);
  EXPECT_EQ(child->output(), "out\n");
  EXPECT_EQ(child->errors(), "err\n");
}

TEST(ChildProcess, TakesInMoreThanAPipeHolds) {
  const auto child = shell("head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2");
  EXPECT_EQ(child->wait(kLimitMs), 0);
  EXPECT_EQ(child->output().size(), 1'000'000U);
  EXPECT_EQ(child->errors().size(), 1'000'000U);
}

TEST(ChildProcess, HearsWhatItIsToldLineByLine) {
  const auto child = shell("while read -r line; do echo \"got $line\"; done");
  ASSERT_TRUE(child->say("one\ntwo\n"));
  EXPECT_EQ(child->read_line(kLimitMs), "got one");
  EXPECT_EQ(child->read_line(kLimitMs), "got two");
  child->close_input();
  EXPECT_EQ(child->read_line(kLimitMs), std::nullopt);
  EXPECT_EQ(child->wait(kLimitMs), 0);
}

TEST(ChildProcess, DoesNothingWhileItIsStopped) {
  const auto child = shell("read -r line; echo \"$line\"");
  ASSERT_TRUE(child->stop());
  ASSERT_TRUE(child->say("late\n"));
  EXPECT_EQ(child->read_line(50), std::nullopt);
  child->resume();
  EXPECT_EQ(child->read_line(kLimitMs), "late");
  EXPECT_EQ(child->wait(kLimitMs), 0);
}

TEST(ChildProcess, RefusesToStopWhatHasEnded) {
  const auto child = shell("exit 0");
  EXPECT_EQ(child->wait(kLimitMs), 0);
  EXPECT_FALSE(child->stop());
}

TEST(ChildProcess, IsKilledWithWhatItStartedWhenItTakesTooLong) {
  const auto child = shell("sleep 1000 & echo $!; wait");
  const std::string inner = child->read_line(kLimitMs).value_or("");
  ASSERT_FALSE(inner.empty());
  EXPECT_EQ(child->wait(20), ChildProcess::kTookTooLong);
  const pid_t pid = std::stoi(inner);
  // Killed with the group; whoever inherited it reaps it in a moment.
  for (int tries = 0; ::kill(pid, 0) == 0 && tries < 2000; ++tries) shell("sleep 0.01")->wait(kLimitMs);
  EXPECT_NE(::kill(pid, 0), 0);
}

TEST(ChildProcess, StartsInItsFolderWithTheEnvironmentThatWasChosen) {
  const auto folder = make_temporary_folder("/tmp", "holdfast-test");
  ASSERT_TRUE(folder.ok());
  ::setenv("CHILD_TEST_HIDDEN", "1", 1);
  const auto child = shell("pwd; echo \"$GIVEN[$CHILD_TEST_HIDDEN]\"",
                           {.folder = *folder, .environment = {{"GIVEN", "yes"}}, .without_prefix = "CHILD_TEST_"});
  EXPECT_EQ(child->wait(kLimitMs), 0);
  EXPECT_EQ(child->output(), *folder + "\nyes[]\n");
  ::unsetenv("CHILD_TEST_HIDDEN");
  std::filesystem::remove(*folder);
}

// What a parent ignores or blocks would stay so in the child: a pipeline in it could not even break.
TEST(ChildProcess, HasItsSignalsAsTheyAreByDefault) {
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const auto handler = ::signal(SIGPIPE, SIG_IGN);
  EXPECT_EQ(shell("kill -PIPE $$; echo survived")->wait(kLimitMs), -SIGPIPE);
  EXPECT_EQ(shell("kill -TERM $$; echo survived")->wait(kLimitMs), -SIGTERM);
  ::signal(SIGPIPE, handler);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST(ChildProcess, InheritsNothingButItsThreeStreams) {
  const auto child = shell("ls /proc/self/fd | wc -l");  // ls has its own descriptor of the folder
  EXPECT_EQ(child->wait(kLimitMs), 0);
  EXPECT_EQ(std::stoi(child->output()), 4);
}

TEST(ChildProcess, RefusesAProgramThatIsNotThere) {
  const auto child = ChildProcess::start({"/no/such/program"});
  ASSERT_FALSE(child.ok());
  EXPECT_EQ(child.refusal().code(), Code::os_failed);
}

TEST(ThisProgram, IsAPathThatStartsIt) {
  const auto path = this_program();
  ASSERT_TRUE(path.ok());
  EXPECT_TRUE(std::filesystem::exists(*path));
}

}  // namespace
}  // namespace holdfast::os
