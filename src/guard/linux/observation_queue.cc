#include "guard/linux/observation_queue.h"

#include <ctime>

namespace holdfast::guard {
namespace {

std::int64_t wall_us_now() {
  struct timespec now {};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * 1'000'000LL + now.tv_nsec / 1000;
}

}  // namespace

void ObservationQueue::push(Observation observation) {
  if (observation.wall_us == 0) observation.wall_us = wall_us_now();
  const std::lock_guard lock(mutex_);
  if (waiting_.size() >= kKeptMax && observation.fault.empty()) {
    ++not_kept_;
    return;
  }
  if (not_kept_ > 0) observation.facts["not_kept"] = not_kept_;
  not_kept_ = 0;
  waiting_.push_back(std::move(observation));
  changed_.notify_all();
}

std::vector<Observation> ObservationQueue::wait(int limit_ms) {
  std::unique_lock lock(mutex_);
  if (limit_ms > 0) {  // a look in passing neither sleeps nor takes the wake-up of whoever does
    changed_.wait_for(lock, std::chrono::milliseconds(limit_ms), [this] { return woken_ || !waiting_.empty(); });
    woken_ = false;
  }
  std::vector<Observation> taken(std::make_move_iterator(waiting_.begin()), std::make_move_iterator(waiting_.end()));
  waiting_.clear();
  return taken;
}

bool ObservationQueue::wait_for_some(int limit_ms) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::milliseconds(limit_ms), [this] { return woken_ || !waiting_.empty(); });
  woken_ = false;
  return !waiting_.empty();
}

void ObservationQueue::wake() {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  changed_.notify_all();
}

}  // namespace holdfast::guard
