// A folder that nobody else has, for a while.
//
// Promises: new, 0700, an absolute path where `parent` is one. Does not promise: that it is ever removed.
// Errors: state_persist_failed with details.os_error.
#pragma once
#include <string>

#include "holdfast/result.h"

namespace holdfast::os {

// PARENT/PREFIX-xxxxxx
Result<std::string> make_temporary_folder(const std::string& parent, const std::string& prefix);

}  // namespace holdfast::os
