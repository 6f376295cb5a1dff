// Beside another process's guard on the same file, while a server hands over (guard/overlap.h).
#include <cerrno>
#include <thread>

#include "base/base64.h"
#include "base/json.h"
#include "guard/linux/guarded_file.h"
#include "guard/linux/identical_copy.h"
#include "guard/linux/place.h"

namespace holdfast::guard {
namespace {

constexpr int kOffersMax = 200;
constexpr std::chrono::milliseconds kOfferAgain{1};

Json json_of(const os::Facts& facts) {
  return Json{{"identity", facts.identity.to_json()},
              {"kind", static_cast<int>(facts.kind)},
              {"byte_count", facts.byte_count},
              {"link_count", facts.link_count},
              {"modified_ns", facts.modified_ns},
              {"changed_ns", facts.changed_ns},
              {"mode", facts.mode},
              {"user", facts.user},
              {"group", facts.group}};
}

os::Facts facts_of(const Json& json) {
  os::Facts facts;
  facts.identity = os::Identity::from_json(json.value("identity", Json()));
  facts.kind = static_cast<os::Kind>(json.value("kind", static_cast<int>(os::Kind::other)));
  facts.byte_count = json.value("byte_count", std::uint64_t{0});
  facts.link_count = json.value("link_count", std::uint64_t{0});
  facts.modified_ns = json.value("modified_ns", std::int64_t{0});
  facts.changed_ns = json.value("changed_ns", std::int64_t{0});
  facts.mode = json.value("mode", 0U);
  facts.user = json.value("user", 0U);
  facts.group = json.value("group", 0U);
  return facts;
}

}  // namespace

Json GuardedFile::state() const {
  const std::lock_guard lock(turn_);
  return state_now();
}

Json GuardedFile::state_now() const {
  return Json{{"expected", json_of(expected_)},
              {"attributes", base64_encode(expected_attributes_)},
              {"origin", origin_.to_json()},
              {"seen_at_name", seen_at_name_.to_json()},
              {"parent", parent_identity_.to_json()},
              {"parent_redirected", parent_redirected_},
              {"leased", leased_},
              {"can_divert", can_divert_},
              {"proof_trusted", proof_trusted_},
              {"reason", reason_},
              {"fault", fault_},
              {"fault_text", fault_text_}};
}

Result<void> GuardedFile::know(const Json& state) {
  const auto attributes = base64_decode(text_member(state, "attributes"));
  if (!state.is_object() || !attributes) return Refusal(Code::handoff_failed, "no state of a guard");
  expected_ = facts_of(state.value("expected", Json::object()));
  expected_attributes_ = *attributes;
  origin_ = os::Identity::from_json(state.value("origin", Json()));
  seen_at_name_ = os::Identity::from_json(state.value("seen_at_name", Json()));
  parent_redirected_ = state.value("parent_redirected", false);
  can_divert_ = state.value("can_divert", false);
  proof_trusted_ = state.value("proof_trusted", false);
  reason_ = text_member(state, "reason");
  fault_ = text_member(state, "fault");
  fault_text_ = text_member(state, "fault_text");
  return {};
}

// --- the side that answers

Result<void> GuardedFile::share(std::shared_ptr<Follower> follower) {
  const std::lock_guard lock(turn_);
  if (ended_) return Refusal(Code::handoff_failed, "the guard has ended");
  release_retired();
  follower_ = std::move(follower);
  follower_has_object_ = false;
  for (int round = 0; round < kOffersMax; ++round) {
    settle_break();  // a divert offers its twin, which nobody can be faster at
    if (!follower_) break;
    if (follower_has_object_ || !object_) return {};
    HF_TRY(const bool held, follower_->offer(object_, "", leased_));
    if (held) {
      follower_->settle(true);
      follower_has_object_ = true;
      return {};
    }
    std::this_thread::sleep_for(kOfferAgain);
  }
  follower_.reset();
  return Refusal(Code::handoff_failed, "the new image could not guard " + target_.scope + " as well");
}

Json GuardedFile::stand_by() {
  const std::lock_guard lock(turn_);
  if (!ended_) {
    settle_break();
    look();
    report_summed_diverts();
    stands_by_ = true;
  }
  return state_now();
}

void GuardedFile::answer_again() {
  {
    const std::lock_guard lock(turn_);
    stands_by_ = false;
    follower_.reset();
  }
  attend();
}

// --- the side that follows

Result<std::shared_ptr<GuardedFile>> GuardedFile::take_beside(std::shared_ptr<Shared> shared, Target target,
                                                              const Json& state) {
  std::shared_ptr<GuardedFile> file(new GuardedFile(std::move(shared), std::move(target)));
  {
    const std::lock_guard lock(file->turn_);
    file->stands_by_ = true;
    HF_CHECK(file->know(state));
    HF_TRY(const os::Facts parent, os::facts_of_open(file->target_.parent));
    file->parent_identity_ = parent.identity;
    if (!file->target_.leaf.empty()) {
      file->folder_watch_ = file->shared_->watches.watch_folder(file->target_.parent, file->target_.leaf, file->id_);
    }
  }
  file->shared_->registry.add(file->id_, file);
  return file;
}

Result<bool> GuardedFile::prepare(os::Handle object, const std::string& temporary_name, bool leased) {
  const std::lock_guard lock(turn_);
  NextObject next;
  next.temporary_name = temporary_name;
  next.leased = leased;
  if (leased) {
    // A description of our own: the one that was sent bears the other side's lease.
    HF_TRY(next.object, reopen_for_reading(object));
    shared_->registry.set_descriptor(next.object.fd(), id_);
    // Nobody can be faster at a twin; what looks so is a descriptor between fork and exec.
    const int limit_ms = temporary_name.empty() ? 1 : kInheritedWriterMs;
    const int error = take_read_lease_within(next.object, shared_->signals, limit_ms);
    if (error != 0) {
      shared_->registry.clear_descriptor(next.object.fd());
      if (error == EAGAIN) return false;
      return os::os_refusal(Code::handoff_failed, "fcntl(F_SETLEASE)", error);
    }
  } else {
    next.object = std::move(object);
  }
  HF_TRY(const os::Facts facts, os::facts_of_open(next.object));
  next.identity = facts.identity;
  next_ = std::move(next);
  return true;
}

void GuardedFile::settle(bool taken) {
  const std::lock_guard lock(turn_);
  if (!next_) return;
  if (taken) return follow_next();
  if (next_->leased) {
    shared_->registry.clear_descriptor(next_->object.fd());
    drop_lease(next_->object);
  }
  next_.reset();
}

// The name leads to the next object: only now is the lease of the one before dropped, and its writer let in.
void GuardedFile::follow_next() {
  NextObject next = std::move(*next_);
  next_.reset();
  os::Handle before = std::move(object_);
  const bool was_leased = leased_;
  if (before) shared_->registry.clear_descriptor(before.fd());
  follow(std::move(next.object), next.leased);
  if (next.leased) object_watch_ = shared_->watches.watch_object(object_, Watches::Bytes::too, id_);
  seen_at_name_ = expected_.identity;
  if (before && was_leased) drop_lease(before);
}

Result<void> GuardedFile::learn(const Json& state) {
  const std::lock_guard lock(turn_);
  const os::Identity ours = object_ ? expected_.identity : os::Identity();
  const os::Identity theirs =
      os::Identity::from_json(state.value("expected", Json::object()).value("identity", Json()));
  const bool leased = state.value("leased", false);
  if (leased_ && !leased) {  // the other side has lost its guard, and says so
    drop_lease(object_);
    leased_ = false;
  }
  if (theirs != ours || leased_ != leased) {
    return Refusal(Code::handoff_failed, "the two images do not guard the same object at " + target_.scope);
  }
  return know(state);
}

// The other side is gone, and did not say what became of the twin that it offered: the name tells.
void GuardedFile::settle_what_was_left() {
  if (!next_) return;
  const auto at = facts_at(target_.parent, target_.leaf);
  const bool bears_it = at.ok() && at->has_value() && (*at)->identity == next_->identity;
  const os::Identity surplus = bears_it ? expected_.identity : next_->identity;
  const std::string temporary = next_->temporary_name;
  if (!temporary.empty()) {
    const auto left = facts_at(target_.parent, temporary);
    if (left.ok() && left->has_value() && (*left)->identity == surplus) take_name_away(target_.parent, temporary);
    os::flush(target_.parent).ok();
  }
  if (bears_it) return follow_next();
  if (next_->leased) drop_lease(next_->object);
  shared_->registry.clear_descriptor(next_->object.fd());
  next_.reset();
}

void GuardedFile::answer() {
  {
    const std::lock_guard lock(turn_);
    settle_what_was_left();
    stands_by_ = false;
  }
  attend();
}

}  // namespace holdfast::guard
