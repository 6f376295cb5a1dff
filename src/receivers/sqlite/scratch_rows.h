// Scratch rows in an SQLite database: see receivers/scratch_rows.h.
#pragma once
#include <memory>
#include <string>

#include "receivers/scratch_rows.h"

namespace holdfast::receivers {

// A new database at `path` (absolute), with its table. The backup is `path` + ".kept".
Result<std::unique_ptr<ScratchRows>> make_scratch_sqlite(const std::string& path);
// The state of a command receiver, which has no rows and makes its file itself.
std::unique_ptr<ScratchRows> scratch_command_state(const std::string& path);

}  // namespace holdfast::receivers
