// WaitQueue: who waits for which scopes, in the order of their coming (acquire --wait; CONTRACT section 3).
//
// Calling sequence, in a server: enter(); then, until granted or given up: try to acquire; where that is a conflict,
// wait(); at last leave(). freed() is called at each end of a tenancy.
// Promises: nobody is granted a scope that somebody who came earlier waits for; a waiter for several scopes holds none;
// an end wakes the first waiter who can use it, and no other; a waiter who leaves without a grant passes that on.
// Does not promise: to survive the server; whoever waits asks the next one.
// Threads: safe from several; each waiter waits in its own.
// Source: field reports B124 (one wake-up), B126 (several scopes).
#pragma once
#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "holdfast/scope.h"

namespace holdfast::engine {

class WaitQueue {
 public:
  struct Waiter {
    std::uint64_t number = 0;  // its place: smaller came earlier
    std::vector<Scope> scopes;
    bool woken = false;
    std::condition_variable changed;
  };
  using Place = std::shared_ptr<Waiter>;

  // `number`: the place that it had before a handoff; 0: behind everybody.
  Place enter(std::vector<Scope> scopes, std::uint64_t number = 0);
  // granted: what it waited for is held now, so nobody else is woken.
  void leave(const Place& place, bool granted);
  // How many wait before `place` (nullptr: before somebody who comes now) for something that overlaps one of `scopes`.
  std::size_t before(const Place& place, const std::vector<Scope>& scopes) const;
  void freed(const Scope& scope);
  // true: it is this one's turn to try. false: the limit came first, or the queue was closed.
  bool wait(const Place& place, int limit_ms);
  // While another image takes over: everybody who waits leaves, and may come back at the same place.
  void suspend();
  void resume();
  bool is_suspended() const;
  std::size_t count() const;
  // Everybody goes: the server ends.
  void close();
  bool is_closed() const;

 private:
  bool has_earlier_rival(const Waiter& waiter) const;
  void wake(Waiter& waiter);

  mutable std::mutex mutex_;
  std::list<Place> waiting_;
  std::uint64_t last_number_ = 0;
  bool suspended_ = false;
  bool closed_ = false;
};

}  // namespace holdfast::engine
