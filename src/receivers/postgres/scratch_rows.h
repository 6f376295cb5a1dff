// Scratch rows on a PostgreSQL server: see receivers/scratch_rows.h.
#pragma once
#include <memory>
#include <string>

#include "receivers/scratch_rows.h"

namespace holdfast::receivers {

// Makes a schema of a random name of its own, `holdfast_challenge_…`, and drops it with the object; a process that is
// killed leaves it. The connection has to be allowed to make one. receiver_unreachable.
Result<std::unique_ptr<ScratchRows>> make_scratch_postgres(const std::string& connection);

}  // namespace holdfast::receivers
