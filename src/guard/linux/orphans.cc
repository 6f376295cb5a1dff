#include "guard/linux/orphans.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <random>

#include "os/thread.h"

namespace holdfast::guard {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kAskAgain{5};
constexpr milliseconds kSumUp{200};

bool bytes_can_have_changed(const os::Facts& before, const os::Facts& now) {
  if (before.byte_count == 0 && now.byte_count == 0) return false;
  return before.byte_count != now.byte_count || before.modified_ns != now.modified_ns ||
         before.changed_ns != now.changed_ns;
}

}  // namespace

os::Facts mark_before_writer(const os::Handle& object) {
  static thread_local std::mt19937_64 random{std::random_device{}()};
  os::Facts facts;
  if (auto now = os::facts_of_open(object); now.ok()) facts = *now;
  if (facts.link_count != 0) return facts;  // another name shows these times to somebody
  const struct timespec times[2] = {{0, UTIME_OMIT}, {1, static_cast<long>(random() % 1'000'000'000)}};
  ::futimens(object.fd(), times);
  if (auto now = os::facts_of_open(object); now.ok()) facts = *now;
  return facts;
}

Result<void> Orphans::start(const BreakSignals& signals) {
  signals_ = signals;
  HF_TRY(thread_, os::start_thread([this] { run(); }));
  return {};
}

void Orphans::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void Orphans::add(Orphan orphan) {
  const std::lock_guard lock(mutex_);
  if (stopping_ || open_->load() >= limits_.orphans_open_max) {
    count_only(orphan, stopping_ ? "guard_ended" : "too_many_open_orphans");
    changed_.notify_all();
    return;
  }
  open_->fetch_add(1);
  waiting_.push_back(std::move(orphan));
  changed_.notify_all();
}

void Orphans::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (waiting_.empty() && tallies_.empty() && !stopping_) changed_.wait(lock);
    if (!stopping_) changed_.wait_for(lock, kAskAgain, [this] { return stopping_; });
    std::list<Orphan> looked_at;
    looked_at.swap(waiting_);
    const bool last_round = stopping_;
    lock.unlock();
    for (auto orphan = looked_at.begin(); orphan != looked_at.end();) {
      bool done = settled(*orphan);
      if (!done && last_round) {
        keep_what_is_there(*orphan, "guard_ended");
        done = true;
      }
      orphan = done ? looked_at.erase(orphan) : std::next(orphan);
    }
    lock.lock();
    waiting_.splice(waiting_.begin(), looked_at);
    if (last_round || steady_clock::now() - flushed_at_ >= kSumUp) flush_tallies();
    if (last_round) return;
  }
}

// True where the orphan needs no more looking at.
bool Orphans::settled(Orphan& orphan) {
  const int error = take_read_lease(orphan.object, signals_);
  if (error == 0) {
    without_writers(orphan);
    return true;
  }
  const bool waited_enough = steady_clock::now() - orphan.since > milliseconds(limits_.capture_wait_ms);
  if (error == EAGAIN && !waited_enough) return false;
  keep_what_is_there(orphan, error == EAGAIN ? "writer_did_not_finish" : "writers_cannot_be_told");
  return true;
}

void Orphans::without_writers(Orphan& orphan) {
  drop_lease(orphan.object);
  keep_what_is_there(orphan, "");
}

// `unfinished`: why the writer may go on, or empty.
void Orphans::keep_what_is_there(Orphan& orphan, const std::string& unfinished) {
  const auto now = os::facts_of_open(orphan.object);
  CaptureAccount& account = *orphan.account;
  std::string reason;
  if (!now.ok()) {
    reason = "unreadable";
  } else if (!bytes_can_have_changed(orphan.before, *now)) {
    open_->fetch_sub(1);
    return;
  } else if (now->byte_count > limits_.capture_max_bytes) {
    reason = "larger_than_one_capture";
  } else if (account.count >= limits_.capture_max_count) {
    reason = "more_than_one_lease_may_capture";
  } else if (account.bytes + now->byte_count > limits_.capture_total_bytes) {
    reason = "more_bytes_than_one_lease_may_capture";
  } else {
    hand_out(orphan, *now, unfinished);
    return;
  }
  const std::lock_guard lock(mutex_);
  count_only(orphan, reason);
  open_->fetch_sub(1);
}

void Orphans::hand_out(Orphan& orphan, const os::Facts& now, const std::string& unfinished) {
  orphan.account->count += 1;
  orphan.account->bytes += now.byte_count;
  Observation observation;
  observation.what = "diverted_bytes_captured";
  observation.scope = orphan.account->scope;
  observation.guard = orphan.account->guard;
  observation.who = orphan.who;
  observation.facts = Json{{"identity", now.identity.to_json()}, {"byte_count", now.byte_count}};
  if (!unfinished.empty()) observation.facts["unfinished"] = unfinished;
  // The descriptor counts until the engine lets go of it.
  auto open = open_;
  observation.bytes = std::shared_ptr<os::Handle>(new os::Handle(std::move(orphan.object)), [open](os::Handle* handle) {
    delete handle;
    open->fetch_sub(1);
  });
  queue_.push(std::move(observation));
}

void Orphans::count_only(const Orphan& orphan, const std::string& reason) {
  const auto now = os::facts_of_open(orphan.object);
  if (now.ok() && reason == "too_many_open_orphans" && now->byte_count == 0 && orphan.before.byte_count == 0) return;
  Tally& tally = tallies_[TallyKey(orphan.account.get(), reason)];
  tally.account = orphan.account;
  tally.count += 1;
  if (now.ok()) tally.bytes += now->byte_count;
}

void Orphans::flush_tallies() {
  flushed_at_ = steady_clock::now();
  for (const auto& [key, tally] : tallies_) {
    Observation observation;
    observation.what = "diverted_bytes_counted";
    observation.scope = tally.account->scope;
    observation.guard = tally.account->guard;
    observation.facts = Json{{"count", tally.count}, {"byte_count", tally.bytes}, {"reason", key.second}};
    queue_.push(std::move(observation));
  }
  tallies_.clear();
}

}  // namespace holdfast::guard
