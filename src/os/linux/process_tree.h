// The processes that a command has started and left, as /proc shows them.
//
// Calling sequence: adopt() before the command is started, where its whole tree is to be ended; follow() once it has a
// pid; then running(), signal() and reap().
// How the tree is known: a process whose parent ends is given to the next ancestor that asked for orphans (a
// subreaper), and adopt() makes that us. So whatever the command started is below it, or is a child of ours that was
// not there before and is no older than the command. Of our other children, those that `spares` names are passed over.
// A process is signalled through its pidfd, after its start time was compared: no number is trusted alone.
// Does not promise: to catch a tree that starts processes faster than /proc can be read; a reading may miss one whose
// parent ends in that moment, so that only two readings in a row that show nothing mean that nothing is left.
// Threads: one at a time.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "holdfast/result.h"

namespace holdfast::os {

struct ProcessEntry {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
  char state = '?';
  std::uint64_t started = 0;  // clock ticks since boot

  bool has_ended() const { return state == 'Z' || state == 'X' || state == 'x'; }
};

std::optional<ProcessEntry> process_entry(pid_t pid);
std::vector<ProcessEntry> all_processes();

class CommandTree {
 public:
  using Spares = std::function<bool(std::int64_t pid)>;

  CommandTree() = default;
  ~CommandTree();
  CommandTree(const CommandTree&) = delete;
  CommandTree& operator=(const CommandTree&) = delete;

  // From here on orphans of the tree come to us. os_failed where /proc counts otherwise than we do.
  Result<void> adopt(Spares spares);
  void follow(pid_t command);

  // What has not ended: the command, its group, and with adopt() whatever else is below it.
  std::vector<ProcessEntry> running() const;
  void signal(int number) const;
  // Of adopted orphans that have ended nobody else takes note. The command itself is left to its owner.
  void reap() const;

 private:
  std::vector<ProcessEntry> members(bool ended) const;
  bool is_adopted(const ProcessEntry& entry) const;

  pid_t command_ = 0;
  std::uint64_t started_ = 0;
  bool whole_ = false;
  int subreaper_before_ = 0;
  Spares spares_;
  std::set<std::pair<pid_t, std::uint64_t>> children_before_;
};

}  // namespace holdfast::os
