#include "engine/acquire_preparation.h"

#include <utility>

#include "base/fault_point.h"
#include "engine/ending.h"
#include "engine/folder_check.h"
#include "engine/session_binding.h"
#include "scope/resolve.h"

namespace holdfast::engine {
namespace {

// G and P, before anything is read.
Result<void> take_guard(Context& context, const AcquireRequest& request, Candidate& candidate) {
  const std::string unguarded = !context.is_server()         ? "short_lived_process_cannot_hold_a_handle"
                                : !candidate.scope.is_file() ? "namespace_has_no_kernel_object"
                                : request.no_guard           ? "no_guard_requested"
                                                             : "";
  candidate.enforcement = guard::Enforcement::none(unguarded);
  if (!candidate.scope.is_file()) return {};
  HF_TRY(PinnedPlace place, pin_place(context.folder, candidate.scope, true));
  candidate.parent_identity = place.parent_facts.identity;
  if (!unguarded.empty()) return {};
  if (place.leaf.empty()) {
    candidate.enforcement = guard::Enforcement::none("folder_needs_bpf_lsm");
  } else if (!place.parent) {
    candidate.enforcement = guard::Enforcement::none("parent_folder_is_absent");
  } else if (place.is_mount_point) {
    candidate.enforcement = guard::Enforcement::none("destination_is_mount_point");
  } else {
    guard::Target target{candidate.scope.full(), std::move(place.parent), place.leaf, candidate.scope.relative()};
    HF_TRY(candidate.guard, context.guards->take(std::move(target)));
    candidate.enforcement = candidate.guard->enforcement();
  }
  HF_FAULT_POINT("acquire_after_guard");
  return {};
}

// The guard that keeps writers out while the baseline is read: the new one, or that of the tenancy before.
std::shared_ptr<guard::Guard> guard_over(Context& context, const Candidate& candidate) {
  if (candidate.guard || !candidate.superseding) return candidate.guard;
  return context.guard_table.find(*candidate.superseding);
}

// What is there while the guard stands: the baseline, in the vault before the lease exists.
Result<void> capture_baseline(Context& context, Candidate& candidate) {
  candidate.ready = true;
  candidate.pre_write = {};
  const Sight before = std::exchange(candidate.captured, {});
  candidate.identity = database_identity(context, candidate.scope);
  if (!candidate.scope.is_file()) return {};
  HF_TRY(PinnedPlace place, pin_place(context.folder, candidate.scope, true));
  if (!place.facts) return {};
  candidate.identity = place.facts->identity;
  candidate.captured.facts = *place.facts;
  candidate.pre_write.exists = true;
  candidate.pre_write.kind = place.facts->kind == os::Kind::folder    ? "folder"
                             : place.facts->kind == os::Kind::regular ? "file"
                                                                      : "other";
  candidate.captured.kind = candidate.pre_write.kind;
  const bool is_folder = place.facts->kind == os::Kind::folder;
  if (!is_folder && place.facts->kind != os::Kind::regular) return {};
  if (!place.object) {
    return Refusal(Code::file_unreadable, candidate.scope.display() + " cannot be read, so no baseline can be captured",
                   Json{{"scope", candidate.scope.full()}});
  }
  if (is_folder) {
    HF_TRY(candidate.captured, capture_folder(context, *place.object, *place.facts, before));
  } else {
    // While it is read a writer that the guard would divert waits: else its bytes would be read in the orphan.
    HF_TRY(const std::optional<os::Handle> still, held_still(guard_over(context, candidate), *place.facts));
    HF_TRY(candidate.captured.digest, context.vault->store(vault::Tier::primary, still ? *still : *place.object));
    if (still) { HF_TRY(candidate.captured.facts, os::facts_of_open(*still)); }
    candidate.identity = candidate.captured.facts.identity;
  }
  candidate.pre_write.fnv1a = candidate.captured.digest.fnv1a;
  candidate.pre_write.byte_count = candidate.captured.digest.byte_count;
  candidate.pre_write.sha256 = candidate.captured.digest.sha256;
  HF_FAULT_POINT("acquire_after_capture");
  return {};
}

// What was taken outside still stands, and nothing has changed since.
bool is_as_prepared(Context& context, const Candidate& candidate) {
  const bool guard_stands = candidate.guard == nullptr || candidate.guard->check().ok();
  return candidate.ready && guard_stands && still_so(context, candidate.scope, candidate.captured);
}

}  // namespace

// Outside the transition, what takes long: guard and baseline; of a re-grant the look at the old tenancy's end comes
// before the new baseline. A guard of the old tenancy that still stands is not doubled (see below).
Result<void> prepare_outside(Context& context, const AcquireRequest& request, Candidate& candidate) {
  const auto standing = candidate.superseding ? context.guard_table.find(*candidate.superseding) : nullptr;
  if (!standing) HF_CHECK(take_guard(context, request, candidate));
  if (candidate.superseding) {
    candidate.ending = look_at_end_of(context, *candidate.superseding, nullptr, candidate.guard);
    HF_FAULT_POINT("regrant_after_look");
  }
  return capture_baseline(context, candidate);
}

// A candidate that could not be prepared outside, or is no longer what was captured, is prepared under the transition;
// a guard that was taken outside and has seen something since is taken again.
Result<void> prepare_under_transition(Context& context, const AcquireRequest& request, Candidate& candidate) {
  if (!candidate.superseding && is_as_prepared(context, candidate)) {
    if (candidate.guard) candidate.enforcement = candidate.guard->enforcement();
    return {};
  }
  candidate.superseding.reset();  // it ended meanwhile
  candidate.guard.reset();
  HF_CHECK(take_guard(context, request, candidate));
  return capture_baseline(context, candidate);
}

Result<void> guard_regrant(Context& context, const AcquireRequest& request, Candidate& candidate, const Tenancy& old) {
  if (candidate.superseding && candidate.superseding->generation != old.generation) candidate.ready = false;
  candidate.superseding = old;
  const auto standing = context.guard_table.find(old);
  // Two guards of one process on one object would take each other's diverts for a stranger's work: the one that stands
  // goes on for the new generation.
  if (standing && !request.no_guard && standing->check().ok()) {
    candidate.guard = standing;
    candidate.enforcement = standing->enforcement();
    HF_TRY(const PinnedPlace place, pin_place(context.folder, candidate.scope, true));
    candidate.parent_identity = place.parent_facts.identity;
    return {};
  }
  if (candidate.guard && candidate.guard->check().ok()) {
    candidate.enforcement = candidate.guard->enforcement();
    return {};
  }
  candidate.guard.reset();
  return take_guard(context, request, candidate);
}

Result<void> capture_again(Context& context, Candidate& candidate) {
  if (is_as_prepared(context, candidate)) return {};
  return capture_baseline(context, candidate);
}

}  // namespace holdfast::engine
