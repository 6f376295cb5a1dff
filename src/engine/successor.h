// The other image of a server in a handoff, as the engine that hands over reaches it (server/handoff.h does it).
// Errors: handoff_failed. Threads: called from several; each call is whole before the next.
#pragma once
#include <string>

#include "holdfast/result.h"
#include "os/handle.h"

namespace holdfast {

// One guard, for another process to stand beside it.
struct GuardedPlace {
  std::string scope;
  std::string generation;
  std::string leaf;
  std::string relative;
  Json state;
  os::Handle parent;  // the pinned folder
};

class Successor {
 public:
  virtual ~Successor() = default;
  virtual Result<void> begin_guard(const GuardedPlace& place) = 0;
  // true: it has the object, under a lease of its own where `leased`. false: a writer was faster.
  virtual Result<bool> offer_object(const std::string& scope, const os::Handle& object,
                                    const std::string& temporary_name, bool leased) = 0;
  virtual void settle_object(const std::string& scope, bool taken) = 0;
};

}  // namespace holdfast
