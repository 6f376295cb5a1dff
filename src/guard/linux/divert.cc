// Answering a break: an identical twin takes the name, then the writer is let into the old inode.
//
//   object_ leased, at the name         writer waits
//   twin made, leased, no name          writer waits     nothing is visible
//   twin bears the temporary name       writer waits     a reader still finds the old inode, same bytes
//   names exchanged                     writer waits     a reader finds the twin, same bytes, already leased
//   temporary name gone, folder flushed writer waits     not even a power cut brings the old inode back
//   lease of the old inode dropped      writer writes    into an inode without a name: an orphan
// The kernel gives way after lease-break-time, whatever we do: before the exchange and after it the lease is looked at
// again, and where it is gone this is a lost guard, never a divert.
#include <algorithm>
#include <cerrno>

#include "base/fault_point.h"
#include "base/ids.h"
#include "guard/linux/guarded_file.h"
#include "guard/linux/identical_copy.h"
#include "guard/linux/offered.h"
#include "guard/linux/place.h"

namespace holdfast::guard {
namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kBreaksInARow = 4;
constexpr int kDivertsReportedASecond = 20;
constexpr milliseconds kTryAgain{20};
constexpr milliseconds kRetiredKeepsWritersOut{500};

// Nearly the kernel's own time: a full disk may be given room, and until then the writer waits.
milliseconds patience(const Guards::Limits& limits) {
  return milliseconds(limits.divert_patience_ms > 0 ? limits.divert_patience_ms : lease_break_seconds() * 900);
}

}  // namespace

GuardedFile::Break GuardedFile::settle_break() {
  for (int round = 0; leased_ && round < kBreaksInARow; ++round) {
    const LeaseState state = lease_state(object_);
    if (state == LeaseState::standing) {
      break_since_.reset();
      return Break::settled;
    }
    if (state == LeaseState::lost) {
      lose_guard("the kernel gave way after its lease-break-time", Json{{"lease_break_s", lease_break_seconds()}});
      return Break::settled;
    }
    if (state == LeaseState::untold) {
      break_problem_ = "the kernel does not tell the state of the lease";
      return Break::stuck;
    }
    const auto now = steady_clock::now();
    if (!can_divert_) {
      lose_guard("a writer came, and this file is not diverted: " + reason_, Json::object());
      return Break::settled;
    }
    if (break_since_ && now - break_tried_at_ < kTryAgain) return Break::stuck;
    if (!break_since_) break_since_ = now;
    break_tried_at_ = now;
    switch (divert()) {
      case Divert::done: break_since_.reset(); break;
      case Divert::lost:
        lose_guard("the kernel gave way while the writer was being diverted", Json::object());
        return Break::settled;
      case Divert::name_gone:
        // The name is somebody else's by now, so nothing at it is protected by keeping the writer out.
        look();
        lose_guard("the guarded file no longer bore its name when a writer came", Json::object());
        return Break::settled;
      case Divert::failed:
        if (now - *break_since_ < patience(shared_->limits)) return Break::stuck;
        lose_guard("a writer came and could not be diverted: " + break_problem_, Json::object());
        return Break::settled;
    }
  }
  return leased_ ? Break::next_waits : Break::settled;
}

GuardedFile::Divert GuardedFile::divert() {
  const auto started = steady_clock::now();
  const auto at = facts_at(target_.parent, target_.leaf);
  if (at.ok() && (!at->has_value() || (*at)->identity != expected_.identity)) return Divert::name_gone;
  auto twin = make_identical_copy(object_, target_.parent, shared_->signals, CopyScope::whole);
  if (!twin.ok()) {
    break_problem_ = twin.refusal().message();
    return Divert::failed;
  }
  // Still kept out: so what was copied is what was guarded.
  const LeaseState state = lease_state(object_);
  if (state == LeaseState::lost) return Divert::lost;
  if (state == LeaseState::untold) return Divert::failed;
  return exchange_with_twin(std::move(twin).value(), started);
}

GuardedFile::Divert GuardedFile::exchange_with_twin(os::Handle twin, steady_clock::time_point started) {
  const auto twin_facts = os::facts_of_open(twin);
  if (!twin_facts.ok()) return Divert::failed;
  const std::string temporary = ".holdfast-" + random_hex(8) + ".divert";
  Offered offered(*this, twin, temporary);
  if (const int error = give_name(twin, target_.parent, temporary); error != 0) {
    break_problem_ = publish_refusal("linkat", error).message();
    return Divert::failed;
  }
  TemporaryName name(target_.parent, temporary, twin_facts->identity);
  const auto at = facts_at(target_.parent, target_.leaf);
  if (!at.ok() || !at->has_value() || (*at)->identity != expected_.identity) return Divert::name_gone;
  HF_FAULT_POINT("before_divert_exchange");
  if (const int error = exchange_names(target_.parent, temporary, target_.leaf); error != 0) {
    break_problem_ = publish_refusal("renameat2", error).message();
    return error == ENOENT ? Divert::name_gone : Divert::failed;
  }
  name.keep();
  offered.taken();

  const os::Identity old_identity = expected_.identity;
  const LeaseState after = lease_state(object_);
  const bool kept_out = after == LeaseState::breaking || after == LeaseState::standing;
  const auto displaced = facts_at(target_.parent, temporary);
  const bool displaced_ours = displaced.ok() && displaced->has_value() && (*displaced)->identity == old_identity;
  os::Handle old = std::move(object_);
  shared_->registry.clear_descriptor(old.fd());
  const std::string attributes = expected_attributes_;
  const os::Facts expected_before = expected_;
  follow(std::move(twin), true);
  seen_at_name_ = expected_.identity;
  // What changed about the old inode while it was copied is for the next look to tell.
  expected_attributes_ = attributes;
  expected_.mode = expected_before.mode;

  if (!displaced_ours) {
    if (displaced.ok() && displaced->has_value()) keep_foreign_displaced(temporary, **displaced);
    let_writer_in(std::move(old), nullptr);
    return Divert::done;
  }
  if (!kept_out) {
    // The writer may have written at the name just before the exchange: his bytes keep their temporary name.
    let_writer_in(std::move(old), nullptr);
    ++token_;
    set_fault(Code::destination_guard_lost, "the kernel gave way while the writer was being diverted");
    observe("guard_lost", "destination_guard_lost", Json{{"kept_as", temporary}, {"exchanged", true}});
    return Divert::done;
  }
  const Json who = breaker_of(old_identity.inode);
  take_name_away(target_.parent, temporary);
  os::flush(target_.parent).ok();  // a folder that cannot be flushed is still the right one to readers
  let_writer_in(std::move(old), who);
  report_divert(Json{{"from", old_identity.to_json()},
                     {"to", expected_.identity.to_json()},
                     {"link_count", expected_before.link_count},
                     {"elapsed_us", duration_cast<microseconds>(steady_clock::now() - started).count()}},
                who);
  return Divert::done;
}

// Somebody put another object at the name at the very last moment, and the exchange has taken it off: it is kept.
void GuardedFile::keep_foreign_displaced(const std::string& temporary, const os::Facts& facts) {
  std::shared_ptr<os::Handle> bytes;
  if (facts.kind == os::Kind::regular) {
    if (auto at = open_at(target_.parent, temporary); at.ok() && at->has_value()) {
      bytes = std::make_shared<os::Handle>(std::move((*at)->object));
    }
  }
  ++token_;
  set_fault(Code::destination_identity_changed, "another object had taken the leased name");
  observe("name_replaced", "destination_identity_changed",
          Json{{"found", facts.identity.to_json()}, {"kept_as", temporary}}, std::move(bytes));
}

void GuardedFile::let_writer_in(os::Handle old, Json who) {
  Orphan orphan;
  orphan.account = account_;
  orphan.before = mark_before_writer(old);
  orphan.who = std::move(who);
  drop_lease(old);
  orphan.object = std::move(old);
  shared_->orphans.add(std::move(orphan));
}

// The guard no longer keeps writers out. That is a fault only where it said that it did.
void GuardedFile::lose_guard(const std::string& why, Json facts) {
  const bool was_enforced = enforcement_now().enforced;
  drop_lease(object_);
  leased_ = false;
  can_divert_ = false;
  break_since_.reset();
  ++token_;
  if (was_enforced) set_fault(Code::destination_guard_lost, why);
  if (reason_.empty()) reason_ = "guard_lost";
  facts["reason"] = why;
  observe("guard_lost", was_enforced ? "destination_guard_lost" : "", std::move(facts));
}

void GuardedFile::report_divert(Json facts, Json who) {
  const auto now = steady_clock::now();
  if (now - divert_window_ >= std::chrono::seconds(1)) {
    report_summed_diverts();
    divert_window_ = now;
    diverts_in_window_ = 0;
  }
  if (++diverts_in_window_ > kDivertsReportedASecond) {
    ++diverts_summed_;
    return;
  }
  facts["count"] = 1;
  Observation observation;
  observation.what = "write_diverted";
  observation.scope = target_.scope;
  observation.guard = id_;
  observation.who = std::move(who);
  observation.facts = std::move(facts);
  shared_->observations.push(std::move(observation));
}

void GuardedFile::report_summed_diverts() {
  if (diverts_summed_ == 0) return;
  observe("write_diverted", "", Json{{"count", diverts_summed_}, {"to", expected_.identity.to_json()}});
  diverts_summed_ = 0;
}

// Writers wait for a displaced object until it has lost its name; an engine that never says so doesn't keep them for
// ever.
void GuardedFile::settle_retired() {
  if (!retired_) return;
  const LeaseState state = lease_state(*retired_);
  if (state == LeaseState::standing) return;
  const auto now = steady_clock::now();
  if (!retired_break_since_) retired_break_since_ = now;
  if (state == LeaseState::lost || now - *retired_break_since_ >= kRetiredKeepsWritersOut) release_retired();
}

}  // namespace holdfast::guard
