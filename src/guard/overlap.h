// Two guards of two processes on one file, while a server hands over to another image of itself.
//
// One side answers writers (it diverts them), the other follows: it has a lease of its own on every object that bears
// the name, before the object bears it, and lets go of one only after it has lost the name.
//
//   answering side                                    following side
//   share(follower): offers the guarded object  --->  prepare(): opens it, takes a lease of its own;  settle(taken)
//   a divert: offers the twin, still nameless   --->  prepare(): takes a lease of its own
//             exchanges the names
//             drops its lease on the old object --->  settle(taken): follows the twin, drops its lease on the old one
//   stand_by(): diverts nobody any more; writers wait --> answer(state): diverts from now on
//
// Promises: a writer that opens the leased name is kept waiting by both leases, and let in only after both are dropped;
// at no moment does an object bear the name that not both hold. stand_by() and answer_again() may follow each other as
// long as the other side has not begun to answer. A follower that fails costs the answering side nothing.
// Does not promise: anything about acts of the engine (an exchange) meanwhile: there must be none.
// Threads: like Guard. Source: ADR 0013; first seed, section 7; fcntl(2) (read leases of several descriptions coexist).
#pragma once
#include <memory>
#include <string>

#include "holdfast/result.h"
#include "os/handle.h"

namespace holdfast::guard {

// The following side, as the answering one reaches it.
class Follower {
 public:
  virtual ~Follower() = default;
  // true: the other side has the object, with a lease of its own where `leased`. false: a writer was faster.
  virtual Result<bool> offer(const os::Handle& object, const std::string& temporary_name, bool leased) = 0;
  // The object that was offered bears the name now (taken), or never will.
  virtual void settle(bool taken) = 0;
};

class Overlap {
 public:
  virtual ~Overlap() = default;

  // Where the file is, for a guard of another process on it.
  struct Place {
    const os::Handle& parent;
    std::string leaf;
    std::string relative;
  };
  virtual Place place() const = 0;
  // What the guard knows beside its objects: faults, what it expects, why it does not enforce.
  virtual Json state() const = 0;

  virtual Result<void> share(std::shared_ptr<Follower> follower) = 0;
  virtual Json stand_by() = 0;
  virtual void answer_again() = 0;

  virtual Result<bool> prepare(os::Handle object, const std::string& temporary_name, bool leased) = 0;
  virtual void settle(bool taken) = 0;
  // Takes over what the answering side knows; handoff_failed where the two do not guard the same object.
  virtual Result<void> learn(const Json& state) = 0;
  virtual void answer() = 0;
};

}  // namespace holdfast::guard
