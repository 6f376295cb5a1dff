// One guarded file on rung kernel_lease: what it is expected to be, and what is done when it is attacked.
//
//               writer opens G                      name, links, metadata change
//   standing ───────────────────> breaking          standing ─────────────> standing, observed
//      ^   twin at the name, G let go │                │ the name bears another object, or none
//      └──────────────────────────────┘                v
//   breaking ── the kernel's time is over, or no twin can be made ──> lost    faulted (sticky)
//   faulted, lost ── adopt_current(), or a successful exchange() ──> standing
//
// Invariants, under turn_:
//   I1  where leased_, object_ bears the lease, is open for reading only, and is expected_.identity
//   I2  a lease is dropped only when its object no longer bears the name, or the loss has been recorded
//   I3  no name is taken from an object whose bytes are neither identical to the guarded ones nor handed out
//   I4  the token stays the same only while nobody else could write the bytes at the name
//   I5  where stands_by_, no name is changed and no writer let in by this guard: another process's does that
// Functions of the private part are called with turn_ held. Files: guarded_file.cc (taking, answering), look.cc
// (comparing), divert.cc (breaks), exchange.cc (replacing), overlap.cc (beside another process's guard).
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "guard/guard.h"
#include "guard/linux/shared.h"
#include "guard/linux/staged_file.h"
#include "guard/linux/turn.h"

namespace holdfast::guard {

class GuardedFile {
 public:
  static Result<std::shared_ptr<GuardedFile>> take(std::shared_ptr<Shared> shared, Target target);

  // For the break thread: whether it has to come again soon.
  enum class Attention { done, again_soon };
  Attention attend();
  // The guard goes: nothing is watched or answered any more. `reason` is what enforcement() says from then on.
  void end(const std::string& reason);

  std::uint64_t id() const { return id_; }
  Enforcement enforcement() const;
  Result<void> check();
  Result<std::optional<os::Handle>> open_preimage();
  os::Identity identity() const;
  std::uint64_t content_token() const;
  Result<std::unique_ptr<StagedFile>> stage();
  Result<Exchanged> exchange(StagedFile& staged, const std::string& temporary_name,
                             const std::function<Result<void>()>& before_exchange);
  Result<void> drop_displaced(const Exchanged& exchanged);
  Result<Verified> verify(const os::Identity& published);
  Result<void> adopt_current();

  // overlap.cc: two guards of two processes on one file (guard/overlap.h)
  static Result<std::shared_ptr<GuardedFile>> take_beside(std::shared_ptr<Shared> shared, Target target,
                                                          const Json& state);
  Overlap::Place place() const { return {target_.parent, target_.leaf, target_.relative}; }
  Json state() const;
  Result<void> share(std::shared_ptr<Follower> follower);
  Json stand_by();
  void answer_again();
  Result<bool> prepare(os::Handle object, const std::string& temporary_name, bool leased);
  void settle(bool taken);
  Result<void> learn(const Json& state);
  void answer();

 private:
  GuardedFile(std::shared_ptr<Shared> shared, Target target);

  // guarded_file.cc
  Result<void> hold_what_bears_the_name();
  void lease_regular_file();
  // Whether a twin of the file can be made here is tried, but where one of its kind (T) was made just now.
  enum class Twin { to_be_tried, was_made };
  void judge_lease(int lease_error, Twin twin);
  std::string why_not_divertable(Twin twin) const;
  Result<os::Handle> open_holding_still();
  void follow(os::Handle object, bool leased);
  void let_go_of_object();
  Enforcement enforcement_now() const;

  // overlap.cc
  class Offered;
  Json state_now() const;
  Result<void> know(const Json& state);
  void follow_next();
  void settle_what_was_left();

  // look.cc
  void look();
  void look_at_parent();
  void look_at_object();
  void look_at_name();
  void expect_as_it_is();
  void observe(const std::string& what, const std::string& fault, Json facts, std::shared_ptr<os::Handle> bytes = {});
  void set_fault(Code code, const std::string& text);
  Result<void> refuse_where_faulted() const;

  // divert.cc
  enum class Break {
    settled,
    next_waits,  // diverted, and the next writer waits already: kept out, which is all that an act of ours needs
    stuck,       // a writer waits who cannot be diverted (yet)
  };
  Break settle_break();
  enum class Divert { done, name_gone, lost, failed };
  Divert divert();
  Divert exchange_with_twin(os::Handle twin, std::chrono::steady_clock::time_point started);
  void keep_foreign_displaced(const std::string& temporary, const os::Facts& facts);
  void let_writer_in(os::Handle old, Json who);
  void lose_guard(const std::string& why, Json facts);
  void report_divert(Json facts, Json who);
  void report_summed_diverts();
  void settle_retired();

  // exchange.cc
  Result<void> ready_to_exchange(NamelessStagedFile& staged);
  Result<Exchanged> publish(NamelessStagedFile& staged, const std::string& temporary_name,
                            const std::function<Result<void>()>& before_exchange);
  void describe_displaced(Exchanged& exchanged);
  void retire_object();
  void release_retired();

  const std::shared_ptr<Shared> shared_;
  const Registry::GuardId id_;
  const Target target_;
  os::Identity parent_identity_;
  std::shared_ptr<CaptureAccount> account_;

  mutable Turn turn_;
  bool ended_ = false;
  os::Handle object_;   // G; none where the destination is absent
  os::Facts expected_;  // of G; its identity is unknown where nothing is expected at the name
  std::string expected_attributes_;
  os::Identity origin_;  // what was taken or published: the first of a row of identical twins
  os::Identity seen_at_name_;
  bool parent_redirected_ = false;
  bool leased_ = false;
  bool can_divert_ = false;
  bool proof_trusted_ = true;  // that no earlier writer exists; false on overlayfs
  std::string reason_;         // why it is not enforced, but for a fault and for several links
  std::string fault_;
  std::string fault_text_;
  mutable std::uint64_t token_ = 1;
  int folder_watch_ = Watches::kNone;
  int object_watch_ = Watches::kNone;

  // While a server hands over: the other side, or, on that side, the object that may bear the name next.
  struct NextObject {
    os::Handle object;
    os::Identity identity;
    std::string temporary_name;
    bool leased = false;
  };
  std::shared_ptr<Follower> follower_;
  bool follower_has_object_ = false;
  bool stands_by_ = false;  // the other side answers
  std::optional<NextObject> next_;

  // Of the last exchange, until its displaced object has been dropped; its lease still keeps writers waiting.
  std::optional<os::Handle> retired_;
  std::optional<std::chrono::steady_clock::time_point> retired_break_since_;

  std::optional<std::chrono::steady_clock::time_point> break_since_;
  std::chrono::steady_clock::time_point break_tried_at_;
  std::string break_problem_;
  std::chrono::steady_clock::time_point divert_window_;
  int diverts_in_window_ = 0;
  std::uint64_t diverts_summed_ = 0;
};

}  // namespace holdfast::guard
