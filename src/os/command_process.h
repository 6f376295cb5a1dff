// CommandProcess: a program that runs in the place of ours, on the streams and the terminal that we were started with.
//
// Calling sequence: start(); the program waits at a gate while what it needs is bound to pid() and identity();
// release_gate(); wait() until it gives a status; terminate() where it has to end first. The destructor ends what runs.
//
//   start ──> at the gate ──release_gate──> running <──stop, continue──> stopped ──> ended (status)
//                 │ our process dies: it ends without having run anything
//
// Promises:
//   - the program runs no instruction before release_gate(), and never where our process died before that;
//   - it gets our three standard streams and no other descriptor, a process group of its own, signals as by default and
//     none blocked; but a hangup, interrupt or quit that we were started to ignore (nohup) it ignores, too;
//   - when start() has returned, nothing of ours is open in it: no lock of ours lives on in it;
//   - INT TERM HUP QUIT USR1 USR2 WINCH CONT ALRM that arrive at us while wait() or terminate() runs go to its group;
//   - where our group is in the foreground of the terminal on standard input, the program's is instead, until it ends
//   or
//     stops. When the terminal stops it (Ctrl-Z), our group stops, too; continued, we ask may_continue before it goes
//     on;
//   - the status is a shell's: the exit code, or 128 + the signal that ended it;
//   - its pid names nobody else while this object lives, even after its end;
//   - with whole_tree, processes that it started and that left its group (daemons) end with it, too.
// Does not promise: the end of a process that changed its user (setuid), or that starts others faster than they can be
// ended (survivors() names what is left after 10 s); without whole_tree, the end of background processes when the
// program ends by itself; anything for a second CommandProcess at the same time, or for children that our process
// starts meanwhile and that options.spares does not name: with whole_tree they count as the program's.
// Threads: start it before other threads, so that these have the signals blocked as well; all calls and the destructor
// in one thread, but for interrupt(). After destruction mask and subreaper setting are as they were, and signals that
// nobody took were meant for the program and are dropped.
// Units: limits in ms; -1: none. Errors: command_not_started (no such program, not executable, no such folder),
// confinement_unavailable, os_failed; details.os_error says why.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/result.h"
#include "os/handle.h"
#include "os/process.h"

namespace holdfast::os {

class Confinement;

// Each member has a default, so that a caller names those that matter to it alone.
struct CommandOptions {
  std::string folder = {};                                            // where it starts; empty: here
  std::vector<std::pair<std::string, std::string>> environment = {};  // beside this process's own
  std::string without_prefix = {};                                    // variables whose names begin so are left out
  const Handle* input = nullptr;                                      // standard input in the place of ours
  const Confinement* confinement = nullptr;                           // both needed until start() returns
  bool whole_tree = false;
  std::function<bool(std::int64_t pid)> spares = {};  // with whole_tree: not the program's, and not ended with it
  // Asked after a stop, before the program goes on: much may have expired meanwhile. false: it stays stopped, and
  // wait() returns nullopt, for the caller to terminate() it.
  std::function<bool()> may_continue = {};
};

class CommandProcess {
 public:
  // The program is searched in PATH where its name has no slash.
  static Result<std::unique_ptr<CommandProcess>> start(const std::vector<std::string>& arguments,
                                                       const CommandOptions& options = {});
  ~CommandProcess();
  CommandProcess(const CommandProcess&) = delete;
  CommandProcess& operator=(const CommandProcess&) = delete;

  std::int64_t pid() const;
  const ProcessIdentity& identity() const;

  // Returns when the program has taken the place of ours in the child, or refuses: it never ran. Once.
  Result<void> release_gate();

  // Its status once it has ended (with whole_tree: and everything that it started). nullopt: the limit, interrupt() or
  // may_continue came first.
  std::optional<int> wait(int limit_ms);
  // Makes wait() return, the next one if none is under way. From any thread.
  void interrupt();

  // TERM to its group (with whole_tree: and to the rest), and after the grace KILL for what is left. nullopt: even
  // killed it has not ended within 10 s.
  std::optional<int> terminate(int grace_ms);

  // What could not be ended.
  const std::vector<std::int64_t>& survivors() const;

 private:
  struct State;
  explicit CommandProcess(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace holdfast::os
