// GenerationStore: room.generation.v2, exactly (first seed, section 2; CONTRACT section 2).
//
//   generations.json          {"counters":{"<16 hex>":14,…},"protocol":"room.generation.v2"}
//   .generations-initialized  {"high_water","map_sha256","prepared_counters","protocol"}
//   generations.json.next     the staged store of an advance that is under way
//
// Invariants
//   I1  marker.map_sha256 = SHA-256(canonical(marker.prepared_counters)), marker.high_water = their largest.
//   I2  at rest, store.counters has the marker's digest.
//   I3  a new generation is above every counter, and above every floor (tenancies, receivers, evidence).
//   I4  (0) stage the new store, flushed; (1) publish the marker; (2) rename the staged store into place. A crash
//       between 1 and 2 leaves I2 broken and a staged store with the marker's digest: only then open() completes 2.
// States: at rest --0--> staged --1--> marked --2--> at rest. After a crash: staged is at rest (the leftover is
// replaced by the next advance), marked is completed by open(); nothing else is ever repaired here.
//
// Refuses: generation_store_missing, generation_checkpoint_mismatch, generation_protocol_unknown,
// generation_counters_malformed, generation_persist_failed, generation_exhausted. On a refusal the files stay as found.
// Threads: under the transition mutex, which every function takes as a parameter, but for examine().
#pragma once
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/ids.h"
#include "holdfast/result.h"
#include "os/control_folder.h"
#include "os/transition_mutex.h"

namespace holdfast {

using Counters = std::map<std::string, std::uint64_t>;  // routing key -> largest generation issued under it

std::uint64_t high_water_of(const Counters& counters);
std::string canonical_counters(const Counters& counters);

class GenerationStore {
 public:
  explicit GenerationStore(os::ControlFolder& files) : files_(files) {}

  struct Opened {
    Counters counters;
    bool completed_phase_two = false;  // the one allowed completion was done: the caller records it
  };
  // `floor` is the largest generation that anything else in the workspace names.
  Result<Opened> open(const os::TransitionMutex::Held&, Generation floor);
  // The same checks, changing nothing; a store that open() would complete is reported as such.
  Result<Opened> examine(Generation floor);

  // high water + 1 of what is open, checked.
  static Result<Generation> next(const Counters& counters);
  // Publishes `counters` with these keys raised; updates the argument only on success.
  Result<void> advance(const os::TransitionMutex::Held&, Counters& counters,
                       const std::vector<std::pair<std::string, Generation>>& issued);
  // Publishes the pair anew: `init` with none, repair with what it found. Never called on a healthy store.
  Result<void> publish(const os::TransitionMutex::Held&, const Counters& counters);

  // For repair: the counters of whichever of the three files can be read, the largest of each key.
  Counters salvage();

 private:
  // A pair that was found to agree; the very same bytes are not parsed and hashed again.
  struct Agreed {
    std::mutex mutex;
    std::string store;
    std::string marker;
    Counters counters;
  };
  Result<void> publish_pair(const os::TransitionMutex::Held&, const Counters& counters, os::NameFlush flush);
  Result<Opened> judge(Generation floor, bool may_complete);
  Agreed agreed_;
  os::ControlFolder& files_;
};

}  // namespace holdfast
