// What the stages of the flow share inside the engine: the open workspace and its parts. Private to engine/.
#pragma once
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "authority/tenancy_store.h"
#include "base/clock.h"
#include "engine/engine.h"
#include "engine/sight.h"
#include "engine/waiting.h"
#include "evidence/chain.h"
#include "evidence/records.h"
#include "guard/guard.h"
#include "lease/tenancy.h"
#include "os/control_folder.h"
#include "os/transition_mutex.h"
#include "os/workspace_folder.h"
#include "receivers/receiver_set.h"
#include "vault/vault.h"

namespace holdfast::engine {

// The guards that this server holds, by scope, each for one generation.
class GuardTable {
 public:
  struct Entry {
    Generation generation;
    std::shared_ptr<guard::Guard> guard;
  };
  void put(const std::string& scope, Generation generation, std::shared_ptr<guard::Guard> guard);
  // The guard of this very tenancy; nullptr where this process holds none for it.
  std::shared_ptr<guard::Guard> find(const Tenancy& tenancy) const;
  void drop(const std::string& scope, Generation generation);
  void clear();
  std::map<std::string, Entry> all() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Entry> entries_;
};

// One acquisition at a time of each scope in this process: two guards on one scope would report each other's work as a
// stranger's. Whoever waits is judged again afterwards.
class ScopeTurns {
 public:
  // Held for all of the scopes until the returned value goes.
  std::vector<std::shared_ptr<void>> take(std::vector<std::string> scopes);

 private:
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<std::mutex>> turns_;
};

// Observations that could not be recorded (a full disk, a busy transition): they wait here and are recorded first.
class Unrecorded {
 public:
  std::vector<guard::Observation> take();
  void put_back(std::vector<guard::Observation> observations);
  bool are_due() const;  // some wait, and the last try is two seconds ago

 private:
  mutable std::mutex mutex_;
  std::vector<guard::Observation> waiting_;
  std::chrono::steady_clock::time_point tried_;
  std::uint64_t not_kept_ = 0;
};

// A receiver that was opened, used by one at a time.
struct OpenReceiver {
  std::mutex mutex;
  std::unique_ptr<receivers::Port> receiver;
};

struct Context {
  EngineOptions options;
  std::string root_path;
  os::WorkspaceFolder folder;
  std::unique_ptr<os::ControlFolder> files;
  std::unique_ptr<os::TransitionMutex> mutex;
  std::unique_ptr<evidence::Chain> chain;
  std::unique_ptr<evidence::Records> records;
  std::unique_ptr<authority::TenancyStore> store;
  std::unique_ptr<vault::Vault> vault;
  std::unique_ptr<guard::Guards> guards;  // server mode only
  GuardTable guard_table;
  Unrecorded unrecorded;
  std::set<std::string>
      unsettled;  // under the transition: scopes with an intent that is neither settled nor classified
  ScopeTurns scope_turns;
  WaitQueue waiting;
  std::mutex receivers_mutex;
  std::map<std::string, std::shared_ptr<OpenReceiver>> open_receivers;  // by name
  Json config;
  Holder self;
  SystemClock clock;

  bool is_server() const { return options.mode == EngineMode::server; }
  std::string workspace_id() const;
  // Whether this owner was refused this scope because of these very holders before (as far as remembered).
  bool asked_before(const Json& conflict, const Json& arguments);

 private:
  std::mutex conflicts_mutex_;
  std::set<std::string> conflicts_;
};

using Held = os::TransitionMutex::Held;

// One transition: the mutex, and the store as it is under it.
struct Transition {
  Held held;
  authority::Loaded state;
  Instant now;
  Sights seen = {};  // what was looked at before it, for the ends that are due (ending.h)
};
Result<Transition> begin_transition(Context& context, authority::Need need = authority::Need::tenancies);

// Appends events under an open transition.
Result<std::vector<std::string>> record(Context& context, Transition& transition, std::vector<evidence::Event> events);

// Whether the server (or process) that holds a tenancy lives; this very server is alive.
os::Liveness holder_liveness(Context& context, const Tenancy& tenancy);
// Of those that a lease is bound to, `hold` and its command: dead only where every one is; unknown where nobody is.
os::Liveness client_liveness(const Tenancy& tenancy);

// os_lock as it is now: as recorded, or as the living guard says, or nothing where the holder is gone.
guard::Enforcement current_enforcement(Context& context, const Tenancy& tenancy, os::Liveness liveness);

// The tenancy that a verb on an existing lease means: found by the canonical id, then the path is walked again.
Result<Scope> scope_of_lease(Context& context, const authority::Loaded& state, const std::string& text,
                             const std::string& current_folder);
Result<void> walk_again(Context& context, const Scope& scope);

// Whether something on the scope waits for a person's decision, and its record.
Result<std::optional<Json>> waiting_reconciliation(Context& context, const Scope& scope);

}  // namespace holdfast::engine
