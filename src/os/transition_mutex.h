// TransitionMutex: one authoritative transition at a time in a workspace (seed, section 3).
//
// Calling sequence: HF_TRY(auto held, mutex.acquire()); everything that needs the transition takes `const Held&`.
// Promises: re-entrant in a thread; other threads of the process wait as other processes do; polled every 10 ms up
// to the time limit, then lease_transition_busy with details.holder_pid; never stolen by age; released when the last
// Held of the thread goes, or with the process. EINTR is no failure (field report B97).
// Does not promise: fairness. Units: ms.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "holdfast/result.h"
#include "os/handle.h"

namespace holdfast::os {

class TransitionMutex {
 public:
  static constexpr int kPollMs = 10;
  static constexpr int kLimitMs = 30'000;

  class Held {
   public:
    Held(Held&& other) noexcept;
    Held& operator=(Held&&) = delete;
    Held(const Held&) = delete;
    ~Held();

   private:
    friend class TransitionMutex;
    struct Core;
    explicit Held(std::shared_ptr<Core> core) : core_(std::move(core)) {}
    std::shared_ptr<Core> core_;
  };

  // `squad` is the open control folder; the file is .lease-transition.mutex in it. limit_ms can only shorten 30 s.
  static Result<std::unique_ptr<TransitionMutex>> open(const Handle& squad, int limit_ms = kLimitMs);
  Result<Held> acquire();

 private:
  explicit TransitionMutex(std::shared_ptr<Held::Core> core) : core_(std::move(core)) {}
  std::shared_ptr<Held::Core> core_;
};

}  // namespace holdfast::os
