// Observations on their way from the guard's threads to the engine.
//
// Bounded: where nobody takes them, those without a fault are no longer kept, and the next one delivered says how many
// in facts.not_kept. Threads: safe.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "guard/guard.h"

namespace holdfast::guard {

class ObservationQueue {
 public:
  static constexpr std::size_t kKeptMax = 10'000;

  // Gives it the wall time where it has none.
  void push(Observation observation);
  std::vector<Observation> wait(int limit_ms);
  bool wait_for_some(int limit_ms);
  void wake();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Observation> waiting_;
  std::uint64_t not_kept_ = 0;
  bool woken_ = false;
};

}  // namespace holdfast::guard
