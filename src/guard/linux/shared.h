// What all guards of one process share: limits, the root, break signals, watches, observations, orphans, and which
// guard a leased descriptor belongs to.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "guard/guard.h"
#include "guard/linux/lease.h"
#include "guard/linux/observation_queue.h"
#include "guard/linux/orphans.h"
#include "guard/linux/watches.h"

namespace holdfast::guard {

class GuardedFile;

// Which guard to attend when the kernel names a descriptor. Threads: safe; never held while a guard is worked on.
class Registry {
 public:
  using GuardId = Watches::GuardId;

  GuardId next_id();
  void add(GuardId guard, std::shared_ptr<GuardedFile> file);
  void remove(GuardId guard);
  void set_descriptor(int fd, GuardId guard);
  void clear_descriptor(int fd);

  std::shared_ptr<GuardedFile> by_id(GuardId guard) const;
  std::shared_ptr<GuardedFile> by_descriptor(int fd) const;
  std::vector<std::shared_ptr<GuardedFile>> all() const;

 private:
  mutable std::mutex mutex_;
  GuardId last_id_ = 0;
  std::map<GuardId, std::shared_ptr<GuardedFile>> files_;
  std::map<int, GuardId> descriptors_;
};

struct Shared {
  explicit Shared(const Guards::Limits& given) : limits(given), orphans(observations, given) {}

  const Guards::Limits limits;
  os::Handle root;
  BreakSignals signals;
  ObservationQueue observations;
  Watches watches;
  Registry registry;
  Orphans orphans;
};

}  // namespace holdfast::guard
