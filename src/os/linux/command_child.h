// The child side of a command: a fork of ours that makes itself ready, waits at a gate and becomes the program.
//
// Calling sequence: CommandImage of everything that the child needs; fork_to_gate(); later open_gate(), once.
// Why fork: posix_spawn knows neither a gate nor Landlock, and a vfork would hold our process up at the gate. Our
// process may have threads, one of which holds the allocator's lock at that moment for ever in the child. So between
// fork and exec there are system calls alone (async-signal-safe, no allocation): the image is laid out before. Why it
// is no fork without exec: the first thing that the child does is to close every descriptor but its standard streams
// and the gate, so that no lock of ours (open-file-description locks are shared with a fork) outlives us in it;
// fork_to_gate() returns when that is done. At the gate it only waits.
// The gate is a pair of sockets, close-on-exec: our byte opens it; our end, however it comes, ends the child; the
// child's reports come back by it, and its end without a report is a successful exec.
#pragma once
#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "holdfast/result.h"
#include "os/command_process.h"
#include "os/handle.h"

namespace holdfast::os {

class CommandImage {
 public:
  CommandImage(const std::vector<std::string>& arguments, const CommandOptions& options);
  CommandImage(const CommandImage&) = delete;
  CommandImage& operator=(const CommandImage&) = delete;

  const std::string& program() const { return words_.front(); }

 private:
  friend class CommandChild;

  std::vector<std::string> words_;
  std::vector<std::string> variables_;
  std::vector<std::string> candidates_;  // where the program may be, in the order of PATH
  std::string folder_;
  int input_;
  const Confinement* confinement_;
  std::vector<char*> argument_pointers_;
  std::vector<char*> variable_pointers_;
  std::vector<char*> shell_pointers_;  // for a script that does not say what runs it
};

struct ChildAtGate {
  pid_t pid = 0;
  Handle gate;
};

// Refuses with what the child could not do; then there is no child.
Result<ChildAtGate> fork_to_gate(CommandImage& image);

// `meanwhile` runs about every 20 ms until the program has taken over.
Result<void> open_gate(const Handle& gate, const std::string& program, const std::function<void()>& meanwhile);

}  // namespace holdfast::os
