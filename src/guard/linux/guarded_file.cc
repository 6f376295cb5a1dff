// Taking a guard, and what it says about itself.
#include "guard/linux/guarded_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>

#include "guard/linux/identical_copy.h"
#include "guard/linux/place.h"

namespace holdfast::guard {
namespace {

// A writer that is about to close its descriptor is given a moment.
constexpr int kEarlierWriterMs = 15;
constexpr std::chrono::seconds kHoldStillLimit{2};

bool on_overlay(const os::Handle& object) {
  struct statfs found {};
  return ::fstatfs(object.fd(), &found) == 0 && found.f_type == OVERLAYFS_SUPER_MAGIC;
}

// On overlayfs a file of a lower layer becomes another object by the first change of it, which the exchange itself
// would be. A change to the same mode copies it up now; whoever may not do that may not replace the file either. The
// handle still reads the lower object, so the name is opened again (field report B84).
Result<std::optional<AtName>> open_above_layers(const os::Handle& parent, const std::string& leaf) {
  HF_TRY(std::optional<AtName> at, open_at(parent, leaf));
  if (!at || !at->object || at->facts.kind != os::Kind::regular || !on_overlay(at->object)) return at;
  if (::fchmod(at->object.fd(), static_cast<mode_t>(at->facts.mode & 07777U)) != 0) return at;
  return open_at(parent, leaf);
}

std::string reason_of_lease_error(int error) {
  switch (error) {
    case EAGAIN: return "writer_was_there_before";
    case EACCES:
    case EPERM: return "not_owner_of_file";
    case EINVAL:
    case EOPNOTSUPP: return "file_system_has_no_leases";
    default: return "lease_refused_by_kernel";
  }
}

}  // namespace

GuardedFile::GuardedFile(std::shared_ptr<Shared> shared, Target target)
    : shared_(std::move(shared)),
      id_(shared_->registry.next_id()),
      target_(std::move(target)),
      account_(std::make_shared<CaptureAccount>()) {
  account_->scope = target_.scope;
  account_->guard = id_;
}

Result<std::shared_ptr<GuardedFile>> GuardedFile::take(std::shared_ptr<Shared> shared, Target target) {
  if (target.leaf.size() > 255 || target.leaf.find('/') != std::string::npos || target.leaf == "." ||
      target.leaf == "..") {
    return Refusal(Code::scope_unresolvable, "not one name in a folder: " + target.leaf);
  }
  std::shared_ptr<GuardedFile> file(new GuardedFile(std::move(shared), std::move(target)));
  {
    const std::lock_guard lock(file->turn_);
    HF_TRY(const os::Facts parent, os::facts_of_open(file->target_.parent));
    file->parent_identity_ = parent.identity;
    // Watched before it is looked at: what happens in between is seen.
    if (!file->target_.leaf.empty()) {
      file->folder_watch_ = file->shared_->watches.watch_folder(file->target_.parent, file->target_.leaf, file->id_);
    }
    if (auto held = file->hold_what_bears_the_name(); !held.ok()) {
      file->shared_->watches.unwatch(file->folder_watch_, file->id_);
      return std::move(held).refusal();
    }
  }
  file->shared_->registry.add(file->id_, file);
  file->attend();  // signals that came before the registry knew the guard
  return file;
}

Result<void> GuardedFile::hold_what_bears_the_name() {
  let_go_of_object();
  reason_.clear();
  can_divert_ = false;
  proof_trusted_ = true;
  if (target_.leaf.empty()) {
    reason_ = "folder_needs_bpf_lsm";
    return {};
  }
  HF_TRY(std::optional<AtName> at, open_above_layers(target_.parent, target_.leaf));
  if (!at.has_value()) {
    reason_ = "absent_destination";
    expect_as_it_is();
  } else {
    follow(std::move(at->object), false);
    if (expected_.kind == os::Kind::regular) lease_regular_file();
    if (expected_.kind == os::Kind::folder) reason_ = "folder_needs_bpf_lsm";
    if (expected_.kind == os::Kind::link) reason_ = "destination_is_a_link";
    if (expected_.kind == os::Kind::other) reason_ = "destination_is_no_regular_file";
  }
  origin_ = expected_.identity;
  seen_at_name_ = expected_.identity;
  return {};
}

void GuardedFile::lease_regular_file() {
  shared_->registry.set_descriptor(object_.fd(), id_);
  const int error = take_read_lease_within(object_, shared_->signals, kEarlierWriterMs);
  leased_ = error == 0;
  if (leased_) expect_as_it_is();  // again: from here on the bytes stand still
  judge_lease(error, Twin::to_be_tried);
}

void GuardedFile::judge_lease(int lease_error, Twin twin) {
  reason_ = leased_ ? why_not_divertable(twin) : reason_of_lease_error(lease_error);
  can_divert_ = reason_.empty();
  proof_trusted_ = !on_overlay(object_);
  if (reason_.empty() && !proof_trusted_) reason_ = "overlayfs_proof_not_trusted";
  if (leased_) object_watch_ = shared_->watches.watch_object(object_, Watches::Bytes::too, id_);
}

// Found out by doing all of it but giving a name: whether a twin of this file can be made here.
std::string GuardedFile::why_not_divertable(Twin made) const {
  if (expected_.byte_count > shared_->limits.divert_max_bytes) return "file_too_large_to_divert";
  if (made == Twin::was_made) return "";
  if (::faccessat(target_.parent.fd(), ".", W_OK | X_OK, AT_EACCESS) != 0) return "parent_not_writable";
  const auto twin = make_identical_copy(object_, target_.parent, shared_->signals, CopyScope::metadata_only);
  if (twin.ok()) return "";
  switch (twin.refusal().code()) {
    case Code::metadata_not_preservable: return "metadata_not_preservable";
    case Code::atomic_publish_unsupported: return "file_system_stages_no_unnamed_file";
    case Code::destination_read_only: return "file_system_is_read_only";
    default: return "no_twin_can_be_made";
  }
}

// From here the guard is about this object. The lease, where there is one, was taken before.
void GuardedFile::follow(os::Handle object, bool leased) {
  const int before = object_watch_;
  object_watch_ = Watches::kNone;
  object_ = std::move(object);
  leased_ = leased;
  if (leased) shared_->registry.set_descriptor(object_.fd(), id_);
  expect_as_it_is();
  if (expected_.kind == os::Kind::regular || expected_.kind == os::Kind::folder) {
    object_watch_ = shared_->watches.watch_object(object_, Watches::Bytes::not_watched, id_);
  }
  if (before != object_watch_) shared_->watches.unwatch(before, id_);
}

void GuardedFile::let_go_of_object() {
  shared_->watches.unwatch(object_watch_, id_);
  object_watch_ = Watches::kNone;
  if (object_) {
    shared_->registry.clear_descriptor(object_.fd());
    if (leased_) drop_lease(object_);
  }
  object_.reset();
  leased_ = false;
  expected_ = os::Facts();
  expected_attributes_.clear();
}

void GuardedFile::end(const std::string& reason) {
  const std::lock_guard lock(turn_);
  if (ended_) return;
  ended_ = true;
  report_summed_diverts();
  release_retired();
  next_.reset();
  follower_.reset();
  const os::Facts expected = expected_;
  let_go_of_object();
  expected_.identity = expected.identity;
  shared_->watches.unwatch(folder_watch_, id_);
  folder_watch_ = Watches::kNone;
  can_divert_ = false;
  reason_ = reason;
  shared_->registry.remove(id_);
}

GuardedFile::Attention GuardedFile::attend() {
  const std::unique_lock lock(turn_, std::try_to_lock);
  if (!lock) return Attention::again_soon;
  if (ended_ || stands_by_) return Attention::done;
  const Break now = settle_break();
  look();
  settle_retired();
  if (diverts_summed_ > 0 && std::chrono::steady_clock::now() - divert_window_ >= std::chrono::seconds(1)) {
    report_summed_diverts();
  }
  return now == Break::settled && !retired_break_since_ ? Attention::done : Attention::again_soon;
}

Enforcement GuardedFile::enforcement() const {
  const std::lock_guard lock(turn_);
  return enforcement_now();
}

Enforcement GuardedFile::enforcement_now() const {
  Enforcement now;
  if (folder_watch_ != Watches::kNone) {
    now.detects = {Operation::rename, Operation::unlink, Operation::link, Operation::create, Operation::metadata};
  }
  if (leased_) {
    now.mechanism = "kernel_lease";
    now.divert_max_bytes = shared_->limits.divert_max_bytes;
    if (proof_trusted_) now.preexisting_writers = "excluded";
    if (can_divert_) now.diverts = {Operation::open_write, Operation::truncate, Operation::mmap_store};
  }
  now.fault = fault_;
  now.reason = !fault_.empty()                       ? fault_
               : !reason_.empty()                    ? reason_
               : leased_ && expected_.link_count > 1 ? "several_hard_links"
               : !leased_                            ? "lease_refused_by_kernel"
                                                     : "";
  now.enforced = now.reason.empty();
  return now;
}

Result<std::optional<os::Handle>> GuardedFile::open_preimage() {
  const std::lock_guard lock(turn_);
  if (!object_) return std::optional<os::Handle>();
  if (expected_.kind != os::Kind::regular) {
    return Refusal(Code::destination_not_a_file, "the destination is no regular file");
  }
  HF_TRY(os::Handle preimage, open_holding_still());
  return std::optional<os::Handle>(std::move(preimage));
}

// The object, opened afresh with a lease of its own. A divert lets go of G, but whoever reads through this handle must
// not find the diverted writer's bytes: with the second lease that writer waits until the handle is closed as well.
Result<os::Handle> GuardedFile::open_holding_still() {
  const auto limit = std::chrono::steady_clock::now() + kHoldStillLimit;
  for (;;) {
    settle_break();
    HF_TRY(os::Handle object, reopen_for_reading(object_));
    // EAGAIN: the next writer was faster; once he is diverted, another try.
    if (!leased_ || take_read_lease(object, shared_->signals) != EAGAIN) return object;
    if (std::chrono::steady_clock::now() < limit) continue;
    return Refusal(Code::destination_guard_lost, "a writer waits and cannot be diverted yet: " + break_problem_)
        .with_effect(Effect::none);
  }
}

os::Identity GuardedFile::identity() const {
  const std::lock_guard lock(turn_);
  return expected_.identity;
}

// Without a lease every moment may have brought other bytes, and a shared mapping changes them without a trace: no
// digest is ever good for a second use.
std::uint64_t GuardedFile::content_token() const {
  const std::lock_guard lock(turn_);
  if (object_ && (!leased_ || !proof_trusted_)) ++token_;
  return token_;
}

Result<void> GuardedFile::adopt_current() {
  const std::lock_guard lock(turn_);
  if (ended_) return Refusal(Code::destination_guard_lost, "the guard has ended").with_effect(Effect::none);
  HF_TRY(const os::Handle parent, walk_to_parent(shared_->root, target_.relative));
  HF_TRY(const os::Facts facts, os::facts_of_open(parent));
  if (facts.identity != parent_identity_) {
    return Refusal(Code::destination_parent_redirected, "the folder of the leased file is another one now");
  }
  release_retired();
  fault_.clear();
  fault_text_.clear();
  parent_redirected_ = false;
  break_since_.reset();
  ++token_;
  return hold_what_bears_the_name();
}

}  // namespace holdfast::guard
