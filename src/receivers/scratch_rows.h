// Rows of a challenge's own, as anybody with the database's tools would make, look at, keep and restore them.
//
// A challenge has to see what a receiver really did, and to lose what it remembers; neither goes through the receiver.
// Calling sequence: make_scratch_…(); config() for `receiver add`; look() before and after; keep(), later restore().
// Promises: one table `accounts` (id, state, version) with the row kScratchRow of version 1; look() reads from outside
// of the receiver; restore() puts rows, marks and operations back as they were at keep(), as a consistent backup does,
// in one transaction. What was made is gone with the object where it lies in somebody else's server.
// Does not promise: anything about other people's tables. Threads: one. Errors: receiver_unreachable.
#pragma once
#include <memory>
#include <string>

#include "holdfast/result.h"

namespace holdfast::receivers {

inline constexpr const char* kScratchTable = "accounts";
inline constexpr int kScratchRow = 7;

class ScratchRows {
 public:
  virtual ~ScratchRows() = default;
  // What the receiver is opened with: {"database" or "connection" or "state", "table", …}.
  virtual Json config() const = 0;
  // {"rows":[{"id","state","version"}],"marks":{RESOURCE: generation},"operations":[ID…]}; the last two are empty
  // where no receiver has opened it yet.
  virtual Result<Json> look() = 0;
  virtual Result<void> keep() = 0;
  virtual Result<void> restore() = 0;
  // The marks alone are gone: what a restore of the rows without them leaves.
  virtual Result<void> lose_marks() = 0;
};

}  // namespace holdfast::receivers
