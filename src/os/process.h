// Who a process is: pid alone is no identity (field reports B01, B04, B07).
//
// Boot id + pid namespace + pid + start time. liveness() says `alive` or `dead` only where that is proved:
//   another boot                        dead (on a local file system)
//   another pid namespace               unknown
//   same namespace, no such pid         dead (an ended process that nobody has reaped is dead, too)
//   another time namespace              unknown: start times cannot be compared
//   same pid, another start time        dead (the pid was reused)
// Unknown is never dead. An identity that lacks a part is unknown.
#pragma once
#include <cstdint>
#include <string>

#include "holdfast/result.h"
#include "os/handle.h"

namespace holdfast::os {

struct ProcessIdentity {
  std::string boot_id;
  std::string pid_namespace;   // "4026531836"
  std::string time_namespace;  // start times of two time namespaces cannot be compared
  std::int64_t pid = 0;
  std::string started_at;  // opaque: clock ticks since boot

  bool operator==(const ProcessIdentity&) const = default;
  Json to_json() const;  // {"boot","pidns","timens","pid","started_at"}
  static ProcessIdentity from_json(const Json& value);
};

enum class Liveness { alive, dead, unknown };
std::string_view name_of(Liveness liveness);

ProcessIdentity this_process();
Result<ProcessIdentity> process_of_pid(std::int64_t pid);
Liveness liveness_of(const ProcessIdentity& identity);

// The id of the running boot; empty where it cannot be told.
std::string boot_id();

// The command name of a living process, for messages; empty where it cannot be told.
std::string command_of_pid(std::int64_t pid);
// Of a living process; 0 where it cannot be told.
std::int64_t group_of_pid(std::int64_t pid);
// Whether a process is stopped (SIGSTOP, Ctrl-Z), and so answers nobody.
bool is_stopped(std::int64_t pid);

}  // namespace holdfast::os
