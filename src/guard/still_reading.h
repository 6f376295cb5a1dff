// Reading a file from outside the server that guards it.
//
// A reader that has opened the name just before a divert would read the diverted writer's bytes in the object that lost
// the name. With a lease of its own such a writer waits until the handle is closed (at most for the kernel's
// lease-break-time: close it soon). Where no lease can be had (another user's file, a file system without leases, a
// writer who does not go away within 2 s) the file is read as it is.
// Threads: SIGIO stays blocked in the calling thread.
#pragma once
#include <functional>

#include "holdfast/result.h"
#include "os/handle.h"

namespace holdfast::guard {

// `open` opens what bears the name now; it is called again where a writer was faster.
Result<os::Handle> open_for_still_reading(const std::function<Result<os::Handle>()>& open);

}  // namespace holdfast::guard
