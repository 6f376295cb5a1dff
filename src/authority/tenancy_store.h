// TenancyStore: where tenancies, generations and the epoch live. One interface; nothing else knows the files or keys
// behind it (local files today; etcd is meant to stand here as well).
//
// Calling sequence, all under one transition:
//   HF_TRY(auto state, store.load(held, need, now));  decide;  Batch batch{…};  HF_CHECK(store.commit(held, state,
//   batch));
// A batch is one commit: one caller's changes or many callers'. After commit() returns, all of it is durable; after a
// crash inside it, the next load() finds all or nothing of it. A refused commit with the effect `none` changed
// nothing but, at most, issued generation numbers (gaps are allowed, reuse never); with `applied` the next load() makes
// all of it true.
// load() checks what the contract asks of every opening: marker and store agree, the high water is not below any
// tenancy or the evidence, the epoch is not below any epoch seen; and finishes what a crash interrupted, with an event
// that says so before it is done.
// Threads: under the transition mutex, but for the peek_ functions, which read one published file each.
// Refuses: generation_*, control_epoch_rolled_back, state_unreadable, state_persist_failed, workspace_insecure.
// Source: CONTRACT sections 2 and 3.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "evidence/chain.h"
#include "lease/generation/generation_store.h"
#include "lease/tenancy.h"

namespace holdfast::authority {

struct EpochState {
  Epoch epoch;
  bool break_glass = false;
  std::string reason;
  std::string changed_at;
  Json to_json() const;
};

struct Loaded {
  std::map<std::string, Tenancy> held;  // by full scope
  EpochState epoch;
  Counters counters;

  const Tenancy* find(const Scope& scope) const {
    const auto found = held.find(scope.full());
    return found == held.end() ? nullptr : &found->second;
  }
};

struct Batch {
  std::vector<Tenancy> grants;     // new tenancies; their generations were issued from this state, in order
  std::vector<Tenancy> updates;    // renewed or changed tenancies that exist
  std::vector<EndedTenancy> ends;  // tenancies that end
  std::optional<EpochState> epoch;
  std::vector<evidence::Event> events;
  // The caller's own files, staged and flushed with the commit and left there; their names are the caller's to give.
  std::vector<os::Staged> beside;
};

enum class Need { tenancies, generations };  // `generations`: this transition will issue some

class TenancyStore {
 public:
  virtual ~TenancyStore() = default;

  virtual Result<Loaded> load(const os::TransitionMutex::Held&, Need need, const Instant& now) = 0;
  virtual Result<void> commit(const os::TransitionMutex::Held&, Loaded& state, Batch batch, const Instant& now) = 0;
  virtual Result<std::optional<EndedTenancy>> last_ended(const Scope& scope) = 0;

  // Without the mutex, for listings: each record is whole, the set may be a moment old.
  virtual Result<std::vector<Tenancy>> peek_tenancies() = 0;
  virtual Result<EpochState> peek_epoch() = 0;
  virtual Result<Counters> peek_counters() = 0;  // examined: refuses as load() would

  struct Repaired {
    Generation high_water;
    Epoch epoch;
    Json found;
  };
  virtual Result<Repaired> repair(const os::TransitionMutex::Held&, Generation floor, const Instant& now) = 0;
  // Tenancy records that cannot be read are moved to evidence/set-aside/, never deleted; their names.
  virtual Result<std::vector<std::string>> set_aside_unreadable(const os::TransitionMutex::Held&) = 0;
};

}  // namespace holdfast::authority
