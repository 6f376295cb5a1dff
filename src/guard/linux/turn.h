// A mutex whose owner by habit (the break thread) steps back while anybody else wants it.
//
// A hostile loop keeps the break thread busy with one guard; without this, a replacement could wait for its turn as
// long as the loop lasts. A break that waits a few milliseconds more does no harm.
#pragma once
#include <atomic>
#include <mutex>

namespace holdfast::guard {

class Turn {
 public:
  void lock() {
    wanted_.fetch_add(1);
    mutex_.lock();
    wanted_.fetch_sub(1);
  }
  void unlock() { mutex_.unlock(); }
  bool try_lock() { return wanted_.load() == 0 && mutex_.try_lock(); }

 private:
  std::atomic<int> wanted_{0};
  std::mutex mutex_;
};

}  // namespace holdfast::guard
