// NameSwap: a hostile neighbour, for the challenge and nothing else. It waits until a name that begins in a certain way
// appears in a folder, and in that moment lets two names of its choice change places.
//
// Its chance is the time between two system calls of the process that it races with. To be in time it moves that
// process's threads and itself onto one processor and asks to be served first there; both need no more than the same
// user, and on Linux a real-time priority where the machine grants one. Processors are given back when it returns.
// Does not promise: to win. The answer says what it did; whether that was in time, the other side knows.
// Units: ms. Errors: os_failed with details.os_error. Threads: changes the scheduling of the calling thread for good.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "holdfast/result.h"

namespace holdfast::os {

struct NameSwap {
  std::string folder;  // where the name is waited for
  std::string prefix;  // how it begins
  std::string one;     // two paths of one file system
  std::string other;
  std::int64_t against_pid = 0;
  int limit_ms = 0;
};

// {"swapped","appeared","priority":"real_time|short_slice|ordinary"} and "os_error" where the swap failed. `ready` is
// called once a name that appears is going to be seen.
Result<Json> swap_when_name_appears(const NameSwap& swap, const std::function<void()>& ready);

}  // namespace holdfast::os
