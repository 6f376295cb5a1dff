// Publishing a staged file under the name: the one act of ours that changes what the name leads to.
#include <cerrno>

#include "base/fault_point.h"
#include "guard/linux/guarded_file.h"
#include "guard/linux/place.h"

namespace holdfast::guard {

Result<std::unique_ptr<StagedFile>> GuardedFile::stage() {
  HF_TRY(std::unique_ptr<NamelessStagedFile> staged, NamelessStagedFile::make(target_.parent, shared_->signals));
  return std::unique_ptr<StagedFile>(std::move(staged));
}

Result<Exchanged> GuardedFile::exchange(StagedFile& staged, const std::string& temporary_name,
                                        const std::function<Result<void>()>& before_exchange) {
  auto* ours = dynamic_cast<NamelessStagedFile*>(&staged);
  HF_ASSERT(ours != nullptr);
  const std::lock_guard lock(turn_);
  HF_CHECK(ready_to_exchange(*ours));
  return publish(*ours, temporary_name, before_exchange);
}

Result<void> GuardedFile::ready_to_exchange(NamelessStagedFile& staged) {
  if (!staged.sealed() || !staged.object()) return Refusal(Code::staging_failed, "the staged file is not sealed");
  if (!ended_ && settle_break() == Break::stuck) {
    return Refusal(Code::destination_guard_lost, "a writer waits and cannot be diverted yet: " + break_problem_)
        .with_effect(Effect::none);
  }
  if (!ended_) look();
  HF_CHECK(refuse_where_faulted());
  if (target_.leaf.empty() || (expected_.identity.known() && expected_.kind != os::Kind::regular)) {
    return Refusal(Code::destination_not_a_file, "the destination is no regular file");
  }
  if (staged.leased() && lease_state(staged.object()) != LeaseState::standing) {
    return Refusal(Code::staging_failed, "somebody opened the staged file for writing; stage it again");
  }
  release_retired();
  return {};
}

Result<Exchanged> GuardedFile::publish(NamelessStagedFile& staged, const std::string& temporary_name,
                                       const std::function<Result<void>()>& before_exchange) {
  HF_FAULT_POINT("before_temporary_name");
  if (const int error = give_name(staged.object(), target_.parent, temporary_name); error != 0) {
    if (error == EEXIST) return os::os_refusal(Code::staging_failed, "linkat", error);
    return publish_refusal("linkat", error);
  }
  TemporaryName name(target_.parent, temporary_name, staged.identity());
  HF_FAULT_POINT("after_temporary_name");
  if (before_exchange) HF_CHECK(before_exchange());
  // A writer that came meanwhile waits: the exchange takes the name from under him as a divert would.
  if (leased_ && lease_state(object_) == LeaseState::lost) {
    settle_break();
    HF_CHECK(refuse_where_faulted());
    return Refusal(Code::destination_guard_lost, "the guard was lost before the publish").with_effect(Effect::none);
  }
  Exchanged exchanged;
  exchanged.destination_existed = expected_.identity.known();
  exchanged.temporary_name = temporary_name;
  const int error = exchanged.destination_existed ? exchange_names(target_.parent, temporary_name, target_.leaf)
                                                  : rename_to_free_name(target_.parent, temporary_name, target_.leaf);
  if (error != 0) {
    look();
    return publish_refusal("renameat2", error);
  }
  name.keep();
  HF_FAULT_POINT("after_exchange");
  exchanged.published = staged.identity();
  if (exchanged.destination_existed) describe_displaced(exchanged);
  exchanged.displaced_was_guarded = exchanged.displaced_identity == expected_.identity;

  retire_object();
  follow(staged.take_object(), staged.leased());
  origin_ = expected_.identity;
  seen_at_name_ = expected_.identity;
  ++token_;
  judge_lease(staged.lease_error(), Twin::was_made);
  if (auto flushed = os::flush(target_.parent); !flushed.ok()) {
    // Published, but a power cut may undo it: verify() must not call this a success.
    set_fault(Code::destination_unverifiable, "the folder could not be flushed: " + flushed.refusal().message());
  }
  HF_FAULT_POINT("after_folder_flush");
  return exchanged;
}

void GuardedFile::describe_displaced(Exchanged& exchanged) {
  auto at = open_at(target_.parent, exchanged.temporary_name);
  if (at.ok() && at->has_value()) {
    exchanged.displaced_identity = (*at)->facts.identity;
    exchanged.displaced = std::move((*at)->object);
    return;
  }
  // It cannot be opened for reading, but what it is can still be told.
  if (const auto facts = facts_at(target_.parent, exchanged.temporary_name); facts.ok() && facts->has_value()) {
    exchanged.displaced_identity = (*facts)->identity;
  }
}

// G of before. Its lease stays for now: a writer that waits for it would write into the displaced object while that is
// being looked at.
void GuardedFile::retire_object() {
  if (!object_) return;
  shared_->watches.unwatch(object_watch_, id_);
  object_watch_ = Watches::kNone;
  if (leased_) {
    retired_ = std::move(object_);
    retired_break_since_.reset();
  }
  object_.reset();
}

void GuardedFile::release_retired() {
  if (!retired_) return;
  shared_->registry.clear_descriptor(retired_->fd());
  Json who;
  if (const auto old = os::facts_of_open(*retired_); old.ok() && lease_state(*retired_) == LeaseState::breaking) {
    who = breaker_of(old->identity.inode);
    report_divert(Json{{"from", old->identity.to_json()}, {"to", expected_.identity.to_json()}, {"by", "exchange"}},
                  who);
  }
  let_writer_in(std::move(*retired_), std::move(who));
  retired_.reset();
  retired_break_since_.reset();
}

Result<void> GuardedFile::drop_displaced(const Exchanged& exchanged) {
  if (!exchanged.destination_existed) return {};
  const std::lock_guard lock(turn_);
  const auto at = facts_at(target_.parent, exchanged.temporary_name);
  if (!at.ok() || !at->has_value() || (*at)->identity != exchanged.displaced_identity) {
    return Refusal(Code::destination_identity_changed, "the displaced object is no longer at its temporary name",
                   Json{{"temporary_name", exchanged.temporary_name}})
        .with_effect(Effect::applied);
  }
  if (const int error = take_name_away(target_.parent, exchanged.temporary_name); error != 0) {
    return os::os_refusal(Code::state_persist_failed, "unlinkat", error).with_effect(Effect::applied);
  }
  release_retired();
  return {};
}

}  // namespace holdfast::guard
