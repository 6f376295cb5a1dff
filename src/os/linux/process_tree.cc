#include "os/linux/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>

#include "os/file.h"
#include "os/linux/proc_file.h"

namespace holdfast::os {
namespace {

constexpr int kFieldsBeforeStart = 16;  // between the group and the start time

// Where /proc is mounted for another pid namespace its numbers are not ours.
bool proc_counts_as_we_do() {
  char target[32] = {};
  const ssize_t length = ::readlink("/proc/self", target, sizeof target - 1);
  return length > 0 && std::string(target) == std::to_string(::getpid());
}

void signal_entry(const ProcessEntry& entry, int number) {
  const long opened = ::syscall(SYS_pidfd_open, entry.pid, 0);
  if (opened < 0) return;
  const Handle pidfd(static_cast<Handle::Native>(opened));
  const auto now = process_entry(entry.pid);
  if (now && now->started == entry.started) ::syscall(SYS_pidfd_send_signal, pidfd.fd(), number, nullptr, 0);
}

}  // namespace

// "PID (NAME) STATE PPID PGRP ... START": the name may hold blanks and parentheses, the last ')' ends it.
std::optional<ProcessEntry> process_entry(pid_t pid) {
  const std::string line = read_proc("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(name_end + 1));
  ProcessEntry entry;
  entry.pid = pid;
  fields >> entry.state >> entry.parent >> entry.group;
  std::string passed_over;
  for (int field = 0; field < kFieldsBeforeStart; ++field) fields >> passed_over;
  fields >> entry.started;
  return fields ? std::optional(entry) : std::nullopt;
}

std::vector<ProcessEntry> all_processes() {
  std::vector<ProcessEntry> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc"), ::closedir);
  if (!folder) return found;
  while (const dirent* name = ::readdir(folder.get())) {
    const long pid = std::strtol(name->d_name, nullptr, 10);
    if (pid <= 0) continue;
    if (const auto entry = process_entry(static_cast<pid_t>(pid))) found.push_back(*entry);
  }
  return found;
}

CommandTree::~CommandTree() {
  if (whole_) ::prctl(PR_SET_CHILD_SUBREAPER, subreaper_before_, 0, 0, 0);
}

Result<void> CommandTree::adopt(Spares spares) {
  if (!proc_counts_as_we_do()) {
    return Refusal(Code::os_failed,
                   "/proc belongs to another pid namespace: what the command starts cannot be followed");
  }
  if (::prctl(PR_GET_CHILD_SUBREAPER, &subreaper_before_, 0, 0, 0) != 0 ||
      ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) {
    return os_refusal(Code::os_failed, "prctl", errno);
  }
  whole_ = true;
  spares_ = std::move(spares);
  for (const ProcessEntry& entry : all_processes()) {
    if (entry.parent == ::getpid()) children_before_.emplace(entry.pid, entry.started);
  }
  return {};
}

void CommandTree::follow(pid_t command) {
  command_ = command;
  if (const auto entry = process_entry(command)) started_ = entry->started;
}

bool CommandTree::is_adopted(const ProcessEntry& entry) const {
  return whole_ && entry.parent == ::getpid() && entry.started >= started_ &&
         !children_before_.contains({entry.pid, entry.started}) && !(spares_ && spares_(entry.pid));
}

std::vector<ProcessEntry> CommandTree::members(bool ended) const {
  std::vector<ProcessEntry> rest = all_processes();
  std::vector<ProcessEntry> found;
  std::set<pid_t> below = {command_};
  // Pids come in no order: gone through until nothing more is found.
  for (bool grew = true; grew;) {
    grew = false;
    std::erase_if(rest, [&](const ProcessEntry& entry) {
      const bool belongs = entry.pid == command_ || entry.group == command_ || is_adopted(entry) ||
                           (whole_ && below.contains(entry.parent) && !(spares_ && spares_(entry.pid)));
      if (!belongs) return false;
      below.insert(entry.pid);
      if (entry.has_ended() == ended) found.push_back(entry);
      return grew = true;
    });
  }
  return found;
}

std::vector<ProcessEntry> CommandTree::running() const {
  return command_ > 0 ? members(false) : std::vector<ProcessEntry>();
}

void CommandTree::signal(int number) const {
  if (command_ <= 0) return;
  ::kill(-command_, number);
  if (!whole_) return;
  for (const ProcessEntry& entry : members(false)) {
    if (entry.group != command_) signal_entry(entry, number);
  }
}

void CommandTree::reap() const {
  if (!whole_ || command_ <= 0) return;
  for (const ProcessEntry& entry : members(true)) {
    if (entry.pid != command_ && entry.parent == ::getpid()) ::waitpid(entry.pid, nullptr, WNOHANG);
  }
}

}  // namespace holdfast::os
