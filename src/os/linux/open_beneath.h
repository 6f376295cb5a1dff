// Opening below an open folder without ever following a link or leaving it (openat2, Linux 5.6).
#pragma once
#include <sys/types.h>

#include <string>

#include "os/handle.h"

namespace holdfast::os {

struct Opened {
  Handle handle;
  int error = 0;  // errno where there is no handle: ELOOP for a link anywhere in the path, EXDEV for a way out
};

// `path` is relative; "" is the folder itself. Close-on-exec and non-blocking opens, so that a planted pipe cannot
// hang the caller.
Opened open_beneath(const Handle& folder, const std::string& path, int flags, mode_t mode = 0);

}  // namespace holdfast::os
