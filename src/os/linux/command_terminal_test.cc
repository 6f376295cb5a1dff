// CommandProcess on a terminal: a session of a pseudo terminal's own, with a stand-in for the shell.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "os/child_process.h"
#include "os/command_process.h"
#include "os/process.h"
#include "support/child.h"

extern char** environ;

namespace holdfast::os {
namespace {

using support::Child;
using support::say;

constexpr int kLimitMs = 20'000;

// What the test would see of the terminal: who is in its foreground.
std::string foreground_of(int terminal, pid_t first, const char* first_name, pid_t second, const char* second_name) {
  const pid_t group = ::tcgetpgrp(terminal);
  if (group == first) return first_name;
  return group == second ? second_name : "another group";
}

// The command: says whether its group is in the foreground, then each line that is typed.
const support::RegisterRole kTypist("terminal_typist", [](const std::vector<std::string>&) {
  say(::tcgetpgrp(STDIN_FILENO) == ::getpgrp() ? "command in the foreground" : "command in the background");
  for (std::string line = support::hear(); !line.empty(); line = support::hear()) say("typed " + line);
  return 3;
});

// `hold`: runs the command; says who has the terminal before and after.
const support::RegisterRole kHolder("terminal_holder", [](const std::vector<std::string>& arguments) {
  const bool may_continue = arguments.empty() || arguments[0] != "refuse";
  CommandOptions options;
  options.may_continue = [&] {
    say("asked");
    return may_continue;
  };
  auto command = CommandProcess::start({this_program().value(), "--as=terminal_typist"}, options);
  if (!command) return 1;
  say("holder " + foreground_of(0, ::getpgrp(), "has it", static_cast<pid_t>((*command)->pid()), "lent it"));
  if (!(*command)->release_gate()) return 1;
  auto status = (*command)->wait(kLimitMs);
  if (!status) {
    say("not continued");
    status = (*command)->terminate(kLimitMs);
  }
  say("holder " + foreground_of(0, ::getpgrp(), "has it", static_cast<pid_t>((*command)->pid()), "lent it"));
  return status.value_or(1);
});

pid_t start_job(int terminal, const std::vector<std::string>& words) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, terminal, 0);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  sigset_t by_default;
  sigemptyset(&by_default);
  for (const int number : {SIGTSTP, SIGTTIN, SIGTTOU, SIGINT}) sigaddset(&by_default, number);
  ::posix_spawnattr_setsigdefault(&attributes, &by_default);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
  std::vector<std::string> texts = words;
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  pid_t pid = -1;
  ::posix_spawn(&pid, pointers[0], &actions, &attributes, pointers.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  return pid;
}

// The shell: leads a session, gives its terminal to one job, and does what it is told.
const support::RegisterRole kShell("terminal_shell", [](const std::vector<std::string>& arguments) {
  int master = -1;
  int terminal = -1;
  if (::openpty(&master, &terminal, nullptr, nullptr, nullptr) != 0 || ::setsid() < 0) return 1;
  if (::ioctl(terminal, TIOCSCTTY, 0) != 0) return 1;
  for (const int descriptor : {master, terminal}) ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  ::signal(SIGTTOU, SIG_IGN);
  std::vector<std::string> words = {this_program().value(), "--as=terminal_holder"};
  const bool in_background = !arguments.empty() && arguments[0] == "background";
  if (!arguments.empty() && !in_background) words.push_back(arguments[0]);
  // A shell gives the terminal before the job runs; here the job waits for it, stopped.
  const pid_t job = start_job(terminal, {"/bin/sh", "-c", "kill -STOP $$; exec \"$0\" \"$@\"", words[0], words[1],
                                         words.size() > 2 ? words[2] : "--"});
  ::waitpid(job, nullptr, WUNTRACED);
  const auto continue_job = [&](bool in_foreground) {
    if (in_foreground) ::tcsetpgrp(terminal, job);
    ::kill(-job, SIGCONT);
  };
  continue_job(!in_background);
  for (std::string order = support::hear(); !order.empty(); order = support::hear()) {
    if (order == "stopped?") {
      int status = 0;
      ::waitpid(job, &status, WUNTRACED);
      say(WIFSTOPPED(status) ? "stopped, " + foreground_of(terminal, job, "job has it", ::getpgrp(), "shell has it")
                             : "ended");
      ::tcsetpgrp(terminal, ::getpgrp());
    } else if (order == "fg") {
      continue_job(true);
    } else if (order == "ended?") {
      int status = 0;
      ::waitpid(job, &status, 0);
      say(WIFEXITED(status) ? "exit " + std::to_string(WEXITSTATUS(status)) : "killed");
    } else {
      const std::string keys = order == "^Z" ? "\x1a" : order == "^C" ? "\x03" : order == "^D" ? "\x04" : order + "\n";
      if (::write(master, keys.data(), keys.size()) < 0) return 1;
    }
  }
  ::kill(-job, SIGKILL);
  return 0;
});

TEST(CommandTerminal, BelongsToTheCommandUntilItsEnd) {
  Child shell = support::spawn_as("terminal_shell");
  EXPECT_EQ(shell.read_line(), "holder has it");
  EXPECT_EQ(shell.read_line(), "command in the foreground");
  shell.write("word\n");
  EXPECT_EQ(shell.read_line(), "typed word");
  shell.write("^D\n");
  EXPECT_EQ(shell.read_line(), "holder has it");
  shell.write("ended?\n");
  EXPECT_EQ(shell.read_line(), "exit 3");
}

TEST(CommandTerminal, SendsItsInterruptToTheCommandAlone) {
  Child shell = support::spawn_as("terminal_shell");
  EXPECT_EQ(shell.read_line(), "holder has it");
  EXPECT_EQ(shell.read_line(), "command in the foreground");
  shell.write("^C\n");
  EXPECT_EQ(shell.read_line(), "holder has it");
  shell.write("ended?\n");
  EXPECT_EQ(shell.read_line(), "exit " + std::to_string(128 + SIGINT));
}

TEST(CommandTerminal, StopsUsWithTheCommandAndContinuesBoth) {
  Child shell = support::spawn_as("terminal_shell");
  EXPECT_EQ(shell.read_line(), "holder has it");
  EXPECT_EQ(shell.read_line(), "command in the foreground");
  for (const char* word : {"one", "two"}) {
    shell.write("^Z\n");
    shell.write("stopped?\n");
    EXPECT_EQ(shell.read_line(), "stopped, job has it");
    shell.write("fg\n");
    EXPECT_EQ(shell.read_line(), "asked");
    shell.write(std::string(word) + "\n");
    EXPECT_EQ(shell.read_line(), std::string("typed ") + word);
  }
  shell.write("^D\n");
  EXPECT_EQ(shell.read_line(), "holder has it");
  shell.write("ended?\n");
  EXPECT_EQ(shell.read_line(), "exit 3");
}

TEST(CommandTerminal, IsNotGivenBackToACommandThatMayNotContinue) {
  Child shell = support::spawn_as("terminal_shell", {"refuse"});
  EXPECT_EQ(shell.read_line(), "holder has it");
  EXPECT_EQ(shell.read_line(), "command in the foreground");
  shell.write("^Z\n");
  shell.write("stopped?\n");
  EXPECT_EQ(shell.read_line(), "stopped, job has it");
  shell.write("fg\n");
  EXPECT_EQ(shell.read_line(), "asked");
  EXPECT_EQ(shell.read_line(), "not continued");
  EXPECT_EQ(shell.read_line(), "holder has it");
  shell.write("ended?\n");
  EXPECT_EQ(shell.read_line(), "exit " + std::to_string(128 + SIGTERM));
}

TEST(CommandTerminal, IsNotTakenFromTheForegroundByAJobInTheBackground) {
  Child shell = support::spawn_as("terminal_shell", {"background"});
  EXPECT_EQ(shell.read_line(), "holder another group");
  EXPECT_EQ(shell.read_line(), "command in the background");
  shell.write("stopped?\n");  // it reads, is stopped for it, and we with it
  EXPECT_EQ(shell.read_line(), "stopped, shell has it");
  shell.write("fg\n");
  EXPECT_EQ(shell.read_line(), "asked");
  shell.write("word\n");
  EXPECT_EQ(shell.read_line(), "typed word");
}

}  // namespace
}  // namespace holdfast::os
