// A program that goes on without us: in a session of its own, standard streams on /dev/null, no descriptor of ours, the
// default signals. Nobody waits for it; it is asked over its socket whether it came up.
//
// Promises: returns once the program is started (or its exec was refused); the program outlives us, and our terminal.
// Errors: os_failed with details.os_error. Threads: safe.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/result.h"

namespace holdfast::os {

// Its pid.
Result<std::int64_t> start_in_background(const std::vector<std::string>& arguments);

}  // namespace holdfast::os
