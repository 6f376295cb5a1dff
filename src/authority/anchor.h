// Anchor: the high water kept outside the workspace, so that a rollback of the whole snapshot is seen (CONTRACT
// section 2; first seed, section 2: "no two-file local protocol can supply it").
//
// Promises: raise() is durable when it returns, and is called before a grant is answered; a workspace whose high water
// is below its anchor refuses generation_anchor_rollback until `generations repair`.
// Does not promise: anything where the anchor lies in the same rollback domain (the same volume, the same snapshot).
// Errors: generation_anchor_rollback (the anchor is gone or unreadable too: order cannot be established),
// generation_persist_failed.
#pragma once
#include "base/ids.h"
#include "holdfast/result.h"

namespace holdfast::authority {

class Anchor {
 public:
  virtual ~Anchor() = default;
  virtual Result<Generation> read() = 0;
  virtual Result<void> raise(Generation high_water) = 0;  // never lowers
  // For repair: the anchor is made again where it is gone, or is not this workspace's; never lowered.
  virtual Result<void> establish(Generation high_water) = 0;
};

}  // namespace holdfast::authority
