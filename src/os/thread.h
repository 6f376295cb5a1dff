// Threads of our own: one that starts, or a refusal where the system has no more.
//
// A thread may fail to start at any time (a limit of the user, of the container, no memory for its stack). std::thread
// says so by an exception; from the constructor of a guard or of a held lease it would end the process.
// Promises: no exception; where nothing started, the work was destroyed without having run.
// Does not promise: to deal with exceptions of the work itself: they end the process.
// Errors: os_failed, with details.os_error. Threads: safe.
#pragma once
#include <functional>
#include <thread>

#include "holdfast/result.h"

namespace holdfast::os {

Result<std::thread> start_thread(std::move_only_function<void()> work);

}  // namespace holdfast::os
