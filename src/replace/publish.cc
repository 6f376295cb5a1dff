#include "replace/publish.h"

#include "base/fault_point.h"

namespace holdfast::replace {
namespace {

Fault fault_of(Code code, std::string error, bool rename_completed = true) {
  return Fault{code, std::move(error), rename_completed, std::nullopt};
}

// The seed's three conditions: every link kept, not deleted, and an ordinary path elsewhere.
std::optional<std::string> displacement(const Plan& plan, const os::Handle* preimage) {
  if (preimage == nullptr) return std::nullopt;
  const auto facts = os::facts_of_open(*preimage);
  if (!facts.ok() || facts->link_count == 0 || facts->link_count != plan.preimage_links) return std::nullopt;
  return plan.displaced_to ? plan.displaced_to(*preimage) : std::nullopt;
}

std::optional<Fault> judge(const Plan& plan, const Publication& done, const os::Handle* preimage) {
  const guard::Verified& verified = done.verified;
  if (!verified.guard_resolved_path_matches_scope) {
    return fault_of(Code::destination_name_redirected, "the guarded object does not resolve to the leased path");
  }
  if (!verified.guard_identity_matches_published) {
    return fault_of(Code::destination_identity_changed,
                    "the object at the leased name is not the one that was published");
  }
  const auto content = os::sha256_of_open(verified.object);
  if (!content.ok()) {
    return fault_of(Code::destination_unverifiable,
                    "the published object cannot be read: " + content.refusal().message());
  }
  if (content->sha256 != plan.planned.sha256 || content->byte_count != plan.planned.byte_count) {
    return fault_of(Code::destination_content_diverged, "the guarded object does not hold the planned bytes");
  }
  if (!done.foreign_displaced) return std::nullopt;
  if (auto elsewhere = displacement(plan, preimage)) {
    Fault fault = fault_of(Code::destination_preimage_displaced,
                           "the captured preimage was moved before the rename, so an uncaptured object was replaced");
    fault.preimage_displaced_to = std::move(elsewhere);
    return fault;
  }
  return fault_of(Code::destination_unverifiable,
                  "an object that was not the captured preimage bore the name at the rename; it was captured and kept");
}

}  // namespace

Result<Publication> publish(guard::Guard& guard, guard::StagedFile& staged, const Plan& plan,
                            const os::Handle* preimage) {
  Publication done;
  HF_TRY(done.exchanged, guard.exchange(staged, plan.temporary_name, [] {
    HF_FAULT_POINT("write_before_exchange");
    return Result<void>();
  }));
  HF_FAULT_POINT("write_after_exchange");
  // Not the identity that was planned on: a divert since then gave the same bytes another object, and the guard knows.
  done.foreign_displaced = done.exchanged.destination_existed != plan.preimage.exists ||
                           (plan.preimage.exists && !done.exchanged.displaced_was_guarded);
  auto verified = guard.verify(done.exchanged.published);
  if (!verified.ok()) {
    done.fault = fault_of(Code::destination_unverifiable, verified.refusal().message());
    return done;
  }
  done.verified = std::move(*verified);
  done.fault = judge(plan, done, preimage);
  if (!done.fault && guard.enforcement().fault == facts_of(Code::destination_guard_lost).name) {
    done.fault = fault_of(Code::destination_guard_lost, "the guard was lost while the replacement was published");
  }
  HF_FAULT_POINT("write_after_verify");
  return done;
}

Json success_document(const Plan& plan, const os::Identity& published, const std::string& operation_id,
                      const std::string& generation) {
  return Json{{"leased_scope", plan.path},
              {"planned_sha256", plan.planned.sha256},
              {"byte_count", plan.planned.byte_count},
              {"preimage_sha256", plan.preimage.exists ? Json(plan.preimage.sha256) : Json(nullptr)},
              {"published_identity", published.text()},
              {"guard_identity_matches_published", true},
              {"guard_content_matches_planned", true},
              {"guard_resolved_path_matches_scope", true},
              {"preimage_displaced_to", nullptr},
              {"new_long_term_guard", "G'"},
              {"verification", "complete"},
              {"operation_id", operation_id},
              {"generation", generation}};
}

Json fault_record(const Plan& plan, const Fault& fault, const std::string& id, std::int64_t pid,
                  const std::string& at) {
  const CodeFacts& facts = facts_of(fault.code);
  return Json{
      {"id", id},
      {"at", at},
      {"state", "open"},
      {"path", plan.path},
      {"scope", plan.scope},
      {"error", fault.error},
      {"fault", facts.name},
      {"rename_completed", fault.rename_completed},
      {"planned_sha256", plan.planned.sha256},
      {"preimage_sha256", plan.preimage.exists ? Json(plan.preimage.sha256) : Json(nullptr)},
      {"destination_existed_before", plan.preimage.exists},
      {"preimage_displaced_to", fault.preimage_displaced_to ? Json(*fault.preimage_displaced_to) : Json(nullptr)},
      {"reconcile_by", facts.hint},
      {"pid", pid},
      {"ts", at}};
}

}  // namespace holdfast::replace
