// HostileNeighbour: what any program can do to a file with a few system calls, for `holdfast doctor` and nothing else.
//
// It lives in a process of its own, started in the folder of the scratch files; a name is one leaf there. Each way is
// one attempt: 0, or the errno of the call that was refused. An attempt may be kept waiting by the kernel, and may end
// the process (a store into a mapping that the file system refuses); whoever asked sees both.
// `open_and_keep` and `map_and_keep` come before a guard is taken; `write_to_kept` and `store_to_kept` after.
// Does not promise: that nothing is changed where it failed in the middle; what is there afterwards is for the other
// side to look at. Threads: one.
#pragma once
#include <string>
#include <string_view>

#include "os/handle.h"

namespace holdfast::os {

// What it writes wherever it can.
inline constexpr std::string_view kForeignBytes = "foreign bytes\n";

struct HostileAct {
  std::string way;
  std::string name;   // the attacked
  std::string other;  // a second name, where the way has one
};

class HostileNeighbour {
 public:
  HostileNeighbour() = default;
  ~HostileNeighbour();
  HostileNeighbour(const HostileNeighbour&) = delete;
  HostileNeighbour& operator=(const HostileNeighbour&) = delete;

  // The errno that says "no such way" is the platform's ENOSYS.
  int commit(const HostileAct& act);

 private:
  Handle kept_;
  char* mapping_ = nullptr;
};

// From now on the process is that user, with no group but the same number, and no privileges. 0, or the errno.
int become_user(unsigned user);

// What an errno of commit() means to somebody who judges it.
struct ErrnoFacts {
  std::string name;          // "EPERM"
  std::string text;          // "Operation not permitted"
  bool not_offered = false;  // the system or the file system has no such operation: nothing was tried
};
ErrnoFacts facts_of_errno(int number);

}  // namespace holdfast::os
