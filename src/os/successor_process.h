// SuccessorProcess: another image of this server, started from the open program of whoever asked for it.
//
// Calling sequence: image_of() the asker; start() with the one descriptor that it inherits, as kInheritedNumber; then
// either end() (killed and reaped) or leave() (it goes on without us).
// Promises: what is started is the file that the asker runs, whatever became of its name since; of our descriptors the
// program gets the one; a session of its own, standard streams on /dev/null, default signals; never a fork without
// exec. image_of refuses an asker that cannot gain privileges (PR_SET_NO_NEW_PRIVS: a confined command of `run` must
// not have a program started outside its confinement), that runs as another user, or whose pid is another's by now.
// Errors: handoff_refused, handoff_failed. Threads: one at a time. Source: proc(5), posix_spawn(3).
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/result.h"
#include "os/handle.h"
#include "os/process.h"

namespace holdfast::os {

Result<Handle> image_of(const ProcessIdentity& process, std::uint32_t user);

// What this process is called in lists: an image that was started by its descriptor has a number for a name.
void name_this_process(const std::string& name);

class SuccessorProcess {
 public:
  static constexpr Handle::Native kInheritedNumber = 3;

  static Result<std::unique_ptr<SuccessorProcess>> start(const Handle& image, const std::vector<std::string>& arguments,
                                                         const Handle& inherited);
  ~SuccessorProcess();  // end(), where it was not left
  SuccessorProcess(const SuccessorProcess&) = delete;
  SuccessorProcess& operator=(const SuccessorProcess&) = delete;

  std::int64_t pid() const { return pid_; }
  void kill();        // without waiting for its end
  void ask_to_end();  // SIGTERM
  void end();         // killed and reaped: it is gone when this returns
  void leave() { left_ = true; }

 private:
  explicit SuccessorProcess(std::int64_t pid) : pid_(pid) {}
  std::int64_t pid_;
  bool left_ = false;
};

}  // namespace holdfast::os
