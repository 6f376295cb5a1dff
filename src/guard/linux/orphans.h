// Orphans: the inodes into which diverted writers go, kept open until their bytes are evidence.
//
// An orphan is asked again and again whether a writer is left (a read lease is granted only where there is none). Then,
// if its bytes can have changed, it is handed out as diverted_bytes_captured; beyond the limits, or where the writer
// doesn't finish, it is only counted (diverted_bytes_counted, summed over a short while) and closed.
// Promises: at most Limits::orphans_open_max descriptors, those included that the engine hasn't let go of yet.
// Threads: a thread of its own, never the one that answers break signals.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "guard/guard.h"
#include "guard/linux/lease.h"
#include "guard/linux/observation_queue.h"

namespace holdfast::guard {

// What one lease has handed out so far.
struct CaptureAccount {
  std::string scope;
  std::uint64_t guard = 0;
  std::size_t count = 0;
  std::uint64_t bytes = 0;
};

struct Orphan {
  std::shared_ptr<CaptureAccount> account;
  os::Handle object;
  os::Facts before;  // size and times when the writer was let in
  Json who;
  std::chrono::steady_clock::time_point since = std::chrono::steady_clock::now();
};

// Marks the orphan so that any later change of bytes shows, and says how it looks now: its modification time becomes a
// random one of 1970, which a write replaces however coarse the clock is. Only for a file that has no name any more.
os::Facts mark_before_writer(const os::Handle& object);

class Orphans {
 public:
  Orphans(ObservationQueue& queue, const Guards::Limits& limits) : queue_(queue), limits_(limits) {}
  ~Orphans() { stop(); }
  Result<void> start(const BreakSignals& signals);
  void stop();
  void add(Orphan orphan);

 private:
  struct Tally {
    std::shared_ptr<CaptureAccount> account;
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
  };
  using TallyKey = std::pair<CaptureAccount*, std::string>;

  void run();
  bool settled(Orphan& orphan);
  void without_writers(Orphan& orphan);
  void keep_what_is_there(Orphan& orphan, const std::string& unfinished);
  void hand_out(Orphan& orphan, const os::Facts& now, const std::string& unfinished);
  void count_only(const Orphan& orphan, const std::string& reason);
  void flush_tallies();

  ObservationQueue& queue_;
  const Guards::Limits limits_;
  BreakSignals signals_;
  std::shared_ptr<std::atomic<std::size_t>> open_ = std::make_shared<std::atomic<std::size_t>>(0);
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Orphan> waiting_;
  std::map<TallyKey, Tally> tallies_;  // under mutex_
  std::chrono::steady_clock::time_point flushed_at_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace holdfast::guard
