// A file of /proc, read whole (proc(5)): these have no size to ask for, and one reading may need several calls.
// Empty where it cannot be opened or read, which no such file is otherwise; the caller decides what not knowing means.
// At most 1 MiB (and the rest of the last piece): /proc/locks grows with the machine. Any thread.
#pragma once

#include <string>

namespace holdfast::os {

std::string read_proc(const std::string& path);

}  // namespace holdfast::os
