// LocalStore: the TenancyStore of one machine, files below .squad.
//
// Order of a commit, and what a crash at each step leaves:
//   1 generations: staged, marker, store        numbers issued, nobody has them (a gap)
//   2 batch.json (only with several changes)    all of the batch: load() replays it
//   3 evidence events                           a grant without its record: load() notes grant_not_completed
//   4 records: resources/… before the record's end, locks/write/… last (its removal need not be flushed, see below)
//   5 batch.json removed
// An ended tenancy is one whose generation stands in resources/: a record left in locks/write/ with that generation is
// taken away by the next load() (CONTRACT section 2), which appends the event where the crash came before it.
#pragma once
#include "authority/anchor.h"
#include "authority/local/parse_memory.h"
#include "authority/tenancy_store.h"

namespace holdfast::authority {

class LocalStore : public TenancyStore {
 public:
  // `anchor` may be null: then a rollback of the whole snapshot is not detected.
  LocalStore(os::ControlFolder& files, evidence::Chain& chain, std::unique_ptr<Anchor> anchor = nullptr)
      : files_(files), chain_(chain), generations_(files), anchor_(std::move(anchor)) {}

  Result<Loaded> load(const os::TransitionMutex::Held&, Need need, const Instant& now) override;
  Result<void> commit(const os::TransitionMutex::Held&, Loaded& state, Batch batch, const Instant& now) override;
  Result<std::optional<EndedTenancy>> last_ended(const Scope& scope) override;
  Result<std::vector<Tenancy>> peek_tenancies() override;
  Result<EpochState> peek_epoch() override;
  Result<Counters> peek_counters() override;
  Result<Repaired> repair(const os::TransitionMutex::Held&, Generation floor, const Instant& now) override;
  Result<std::vector<std::string>> set_aside_unreadable(const os::TransitionMutex::Held&) override;

  // The two generation files and the epoch of a fresh workspace, and its folders.
  static Result<void> create(const os::TransitionMutex::Held&, os::ControlFolder& files, const Instant& now);

 private:
  struct Change {
    std::string path;
    std::optional<std::string> bytes;  // nullopt: removed
  };
  Result<std::map<std::string, Tenancy>> read_tenancies();
  Result<std::string> record_path(const Scope& scope, bool for_new);
  Result<EpochState> read_epoch(Epoch floor);
  Result<void> replay_batch(const os::TransitionMutex::Held&);
  Result<void> finish_ends(Loaded& state, const Instant& now);
  Result<void> record_old_one(const Tenancy& old, const EndedTenancy& last, const Instant& now);
  Result<void> remove_record(const std::string& path);
  Result<void> apply(const std::vector<Change>& changes);
  Result<void> publish_staged(const std::string& path);
  Result<std::vector<Change>> changes_of(const Batch& batch);

  Result<Tenancy> tenancy_at(const std::string& path, const std::string& bytes);

  os::ControlFolder& files_;
  evidence::Chain& chain_;
  ParseMemory<Tenancy> tenancies_;
  ParseMemory<EndedTenancy> ended_;
  ParseMemory<EpochState> epochs_;
  Result<Generation> highest_receiver_mark();
  Result<void> check_anchor(const Counters& counters);
  GenerationStore generations_;
  std::unique_ptr<Anchor> anchor_;
};

}  // namespace holdfast::authority
