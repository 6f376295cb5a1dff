// Process identity from /proc, reached through a pidfd.
//
// Why the pidfd: /proc may be mounted for another pid namespace than ours (`unshare -pf` without a new /proc), and then
// /proc/PID is another process. The pidfd is taken in our namespace; its fdinfo tells the number that this /proc uses.
// A pidfd becomes readable when the whole process has ended, so that a zombie (all its descriptors closed) counts as
// dead, and a process whose first thread alone has ended does not.
#include "os/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <sstream>
#include <string>
#include <vector>

#include "base/json.h"
#include "os/file.h"
#include "os/linux/proc_file.h"

namespace holdfast::os {
namespace {

// "pid:[4026531836]" -> "4026531836"
std::string namespace_number(const char* path) {
  char target[128];
  const ssize_t length = ::readlink(path, target, sizeof target);
  if (length <= 0) return {};
  const std::string text(target, static_cast<std::size_t>(length));
  const std::size_t open = text.find('[');
  const std::size_t close = text.find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return {};
  return text.substr(open + 1, close - open - 1);
}

// Field 22 of a stat line. The command name before it may hold blanks and parentheses; the last ')' ends it.
std::string start_time(const std::string& stat) {
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return {};
  std::size_t at = name_end + 1;
  for (int field = 3; field < 22; ++field) {
    at = stat.find(' ', at + 1);
    if (at == std::string::npos) return {};
  }
  const std::size_t end = stat.find(' ', at + 1);
  if (end == std::string::npos) return {};
  const std::string ticks = stat.substr(at + 1, end - at - 1);
  return parse_u64(ticks) ? ticks : std::string();
}

Handle open_pidfd(std::int64_t pid, int& error) {
  const long opened = ::syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0);
  error = opened < 0 ? errno : 0;
  return Handle(opened < 0 ? Handle::kNone : static_cast<Handle::Native>(opened));
}

bool has_ended(const Handle& pidfd) {
  pollfd state{pidfd.fd(), POLLIN, 0};
  return ::poll(&state, 1, 0) == 1 && (state.revents & POLLIN) != 0;
}

// The folder of a process in this /proc; empty where this /proc does not show it.
std::string proc_folder(const Handle& pidfd) {
  const std::string info = read_proc("/proc/self/fdinfo/" + std::to_string(pidfd.fd()));
  const std::size_t at = info.find("Pid:\t");
  if (at == std::string::npos) return {};
  const std::string number = info.substr(at + 5, info.find('\n', at) - at - 5);
  const auto pid = parse_u64(number);
  return pid && *pid > 0 ? "/proc/" + number : std::string();
}

// EINVAL (ENOENT since 6.15): the number is a thread's now, and so no process bears it.
bool says_no_such_process(int error) { return error == ESRCH || error == EINVAL || error == ENOENT; }

bool is_pid(std::int64_t pid) { return pid > 0 && pid <= INT32_MAX; }

// Boot and namespaces are ours: a pid means what it means to us.
ProcessIdentity observer() {
  ProcessIdentity identity;
  identity.boot_id = boot_id();
  identity.pid_namespace = namespace_number("/proc/self/ns/pid");
  identity.time_namespace = namespace_number("/proc/self/ns/time");
  return identity;
}

}  // namespace

std::string boot_id() {
  std::string text = read_proc("/proc/sys/kernel/random/boot_id");
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

Json ProcessIdentity::to_json() const {
  return Json{{"boot", boot_id},
              {"pidns", pid_namespace},
              {"timens", time_namespace},
              {"pid", pid},
              {"started_at", started_at}};
}

ProcessIdentity ProcessIdentity::from_json(const Json& value) {
  ProcessIdentity identity;
  identity.boot_id = text_member(value, "boot");
  identity.pid_namespace = text_member(value, "pidns");
  identity.time_namespace = text_member(value, "timens");
  identity.started_at = text_member(value, "started_at");
  const auto pid = value.is_object() ? exact_u64(value.value("pid", Json())) : std::nullopt;
  if (pid && *pid <= INT32_MAX) identity.pid = static_cast<std::int64_t>(*pid);
  return identity;
}

std::string_view name_of(Liveness liveness) {
  switch (liveness) {
    case Liveness::alive: return "alive";
    case Liveness::dead: return "dead";
    case Liveness::unknown: break;
  }
  return "unknown";
}

ProcessIdentity this_process() {
  ProcessIdentity identity = observer();
  identity.pid = ::getpid();
  identity.started_at = start_time(read_proc("/proc/self/stat"));
  return identity;
}

Result<ProcessIdentity> process_of_pid(std::int64_t pid) {
  if (!is_pid(pid)) return Refusal(Code::not_found, "no process id", Json{{"pid", pid}});
  int error = 0;
  const Handle pidfd = open_pidfd(pid, error);
  if (!pidfd && says_no_such_process(error)) return Refusal(Code::not_found, "no such process", Json{{"pid", pid}});
  if (!pidfd) return os_refusal(Code::os_failed, "pidfd_open", error);
  ProcessIdentity identity = observer();
  identity.pid = pid;
  if (const std::string folder = proc_folder(pidfd); !folder.empty()) {
    identity.started_at = start_time(read_proc(folder + "/stat"));
  }
  // Only now: what was read belongs to this process as long as it has not ended.
  if (has_ended(pidfd)) return Refusal(Code::not_found, "the process has ended", Json{{"pid", pid}});
  return identity;
}

Liveness liveness_of(const ProcessIdentity& identity) {
  const ProcessIdentity here = observer();
  if (identity.boot_id.empty() || here.boot_id.empty() || !is_pid(identity.pid)) return Liveness::unknown;
  if (identity.boot_id != here.boot_id) return Liveness::dead;
  if (identity.pid_namespace.empty() || identity.pid_namespace != here.pid_namespace) return Liveness::unknown;
  int error = 0;
  const Handle pidfd = open_pidfd(identity.pid, error);
  if (!pidfd) return says_no_such_process(error) ? Liveness::dead : Liveness::unknown;
  if (has_ended(pidfd)) return Liveness::dead;
  if (identity.time_namespace != here.time_namespace || identity.started_at.empty()) return Liveness::unknown;
  const std::string folder = proc_folder(pidfd);
  const std::string started = folder.empty() ? std::string() : start_time(read_proc(folder + "/stat"));
  if (has_ended(pidfd)) return Liveness::dead;
  if (started.empty()) return Liveness::unknown;
  return started == identity.started_at ? Liveness::alive : Liveness::dead;
}

std::string command_of_pid(std::int64_t pid) {
  int error = 0;
  const Handle pidfd = is_pid(pid) ? open_pidfd(pid, error) : Handle();
  const std::string folder = pidfd ? proc_folder(pidfd) : std::string();
  if (folder.empty()) return {};
  std::string name = read_proc(folder + "/comm");
  if (!name.empty() && name.back() == '\n') name.pop_back();
  return printable(name);
}

namespace {

// The fields of a stat line from the third on: state, ppid, pgrp, …; the command name before may hold anything.
std::vector<std::string> stat_fields(std::int64_t pid) {
  int error = 0;
  const Handle pidfd = is_pid(pid) ? open_pidfd(pid, error) : Handle();
  const std::string folder = pidfd ? proc_folder(pidfd) : std::string();
  if (folder.empty()) return {};
  const std::string stat = read_proc(folder + "/stat");
  const std::size_t name_end = stat.rfind(')');
  std::vector<std::string> fields;
  if (name_end == std::string::npos) return fields;
  std::istringstream words(stat.substr(name_end + 1));
  for (std::string word; fields.size() < 3 && words >> word;) fields.push_back(word);
  return fields;
}

}  // namespace

std::int64_t group_of_pid(std::int64_t pid) {
  const auto fields = stat_fields(pid);
  return fields.size() < 3 ? 0 : std::strtoll(fields[2].c_str(), nullptr, 10);
}

bool is_stopped(std::int64_t pid) {
  const auto fields = stat_fields(pid);
  return !fields.empty() && (fields[0] == "T" || fields[0] == "t");
}

}  // namespace holdfast::os
