#include "engine/waiting.h"

#include <algorithm>
#include <chrono>

namespace holdfast::engine {
namespace {

bool any_overlap(const std::vector<Scope>& some, const std::vector<Scope>& others) {
  return std::any_of(some.begin(), some.end(), [&](const Scope& one) {
    return std::any_of(others.begin(), others.end(), [&](const Scope& other) { return overlaps(one, other); });
  });
}

}  // namespace

WaitQueue::Place WaitQueue::enter(std::vector<Scope> scopes, std::uint64_t number) {
  auto waiter = std::make_shared<Waiter>();
  waiter->scopes = std::move(scopes);
  waiter->woken = true;  // the first try is its own affair
  const std::scoped_lock lock(mutex_);
  waiter->number = number != 0 ? number : last_number_ + 1;
  last_number_ = std::max(last_number_, waiter->number);
  const auto behind = std::find_if(waiting_.begin(), waiting_.end(),
                                   [&](const Place& other) { return other->number > waiter->number; });
  waiting_.insert(behind, waiter);
  return waiter;
}

void WaitQueue::leave(const Place& place, bool granted) {
  const std::scoped_lock lock(mutex_);
  waiting_.remove(place);
  if (granted) return;
  // Whoever was only kept back by this one may try now.
  for (const Place& other : waiting_) {
    if (any_overlap(other->scopes, place->scopes) && !has_earlier_rival(*other)) wake(*other);
  }
}

std::size_t WaitQueue::before(const Place& place, const std::vector<Scope>& scopes) const {
  const std::scoped_lock lock(mutex_);
  std::size_t count = 0;
  for (const Place& other : waiting_) {
    if (other == place) break;
    if (any_overlap(other->scopes, scopes)) ++count;
  }
  return count;
}

void WaitQueue::freed(const Scope& scope) {
  const std::scoped_lock lock(mutex_);
  for (const Place& waiter : waiting_) {
    if (any_overlap(waiter->scopes, {scope}) && !has_earlier_rival(*waiter)) wake(*waiter);
  }
}

bool WaitQueue::wait(const Place& place, int limit_ms) {
  std::unique_lock lock(mutex_);
  place->changed.wait_for(lock, std::chrono::milliseconds(limit_ms),
                          [&] { return place->woken || closed_ || suspended_; });
  if (closed_ || suspended_ || !place->woken) return false;
  place->woken = false;
  return true;
}

void WaitQueue::suspend() {
  const std::scoped_lock lock(mutex_);
  suspended_ = true;
  for (const Place& waiter : waiting_) waiter->changed.notify_all();
}

void WaitQueue::resume() {
  const std::scoped_lock lock(mutex_);
  suspended_ = false;
}

bool WaitQueue::is_suspended() const {
  const std::scoped_lock lock(mutex_);
  return suspended_;
}

std::size_t WaitQueue::count() const {
  const std::scoped_lock lock(mutex_);
  return waiting_.size();
}

void WaitQueue::close() {
  const std::scoped_lock lock(mutex_);
  closed_ = true;
  for (const Place& waiter : waiting_) waiter->changed.notify_all();
}

bool WaitQueue::is_closed() const {
  const std::scoped_lock lock(mutex_);
  return closed_;
}

bool WaitQueue::has_earlier_rival(const Waiter& waiter) const {
  for (const Place& other : waiting_) {
    if (other.get() == &waiter) return false;
    if (any_overlap(other->scopes, waiter.scopes)) return true;
  }
  return false;
}

void WaitQueue::wake(Waiter& waiter) {
  waiter.woken = true;
  waiter.changed.notify_all();
}

}  // namespace holdfast::engine
