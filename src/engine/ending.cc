#include "engine/ending.h"

#include "base/fault_point.h"
#include "engine/faults.h"
#include "engine/observing.h"
#include "scope/resolve.h"

namespace holdfast::engine {
namespace {

bool same_bytes_as_far_as_known(const os::Facts& one, const os::Facts& other) {
  return one.identity == other.identity && one.byte_count == other.byte_count && one.modified_ns == other.modified_ns &&
         one.changed_ns == other.changed_ns;
}

Json quarantine_record(const Tenancy& tenancy, const Sight& sight, const std::string& ended_by, const Json& check,
                       const std::string& id, const Instant& now) {
  return Json{{"id", id},
              {"at", format_wall(now.wall_us)},
              {"kind", "quarantine_ungated"},
              {"scope", tenancy.scope.full()},
              {"path", tenancy.scope.display()},
              {"sha256", sight.digest.sha256},
              {"fnv1a", sight.digest.fnv1a},
              {"byte_count", sight.digest.byte_count},
              {"owner", tenancy.owner},
              {"task_id", tenancy.task_id},
              {"generation", tenancy.generation.text()},
              {"ended_by", ended_by},
              {"content_check", check},
              {"reconciled", false}};
}

constexpr const char* kWarning =
    "Divergent bytes preserved in Amber and released_with_ungated_content recorded; baseline was not silently restored";

}  // namespace

Sight look_at(Context& context, const Scope& scope, bool archive, const os::Progress& progress) {
  Sight sight;
  if (!scope.is_file()) return sight;
  auto place = pin_place(context.folder, scope, true);
  if (!place.ok()) {
    sight.kind = "unverifiable";
    sight.reason = place.refusal().message();
    return sight;
  }
  if (!place->facts) return sight;
  if (place->facts->kind == os::Kind::folder) sight.kind = "folder";
  if (place->facts->kind == os::Kind::link || place->facts->kind == os::Kind::other) sight.kind = "other";
  if (place->facts->kind != os::Kind::regular) return sight;
  const auto unverifiable = [&](const Refusal& why) {
    sight.kind = "unverifiable";
    sight.reason = why.message();
    return sight;
  };
  if (!place->object) return unverifiable(Refusal(Code::file_unreadable, "the file cannot be opened for reading"));
  sight.facts = *place->facts;
  auto digest = archive ? context.vault->store(vault::Tier::amber, *place->object, nullptr, progress)
                        : os::digest_of_open(*place->object, progress);
  if (!digest.ok()) return unverifiable(digest.refusal());
  sight.digest = *digest;
  sight.archived = archive;
  sight.kind = "file";
  return sight;
}

bool is_quick_to_look_at(Context& context, const Scope& scope) {
  static constexpr std::uint64_t kQuickBytes = 256U * 1024U;
  if (!scope.is_file()) return true;
  const auto place = pin_place(context.folder, scope, true);
  if (!place.ok() || !place->facts) return true;
  return place->facts->kind == os::Kind::regular && place->facts->byte_count <= kQuickBytes;
}

bool still_so(Context& context, const Scope& scope, const Sight& sight) {
  if (!scope.is_file()) return true;
  if (sight.kind == "unverifiable") return false;
  auto place = pin_place(context.folder, scope, true);
  if (!place.ok()) return false;
  if (!place->facts) return sight.kind == "none";
  if (place->facts->kind == os::Kind::folder) return sight.kind == "folder";
  if (place->facts->kind != os::Kind::regular) return sight.kind == "other";
  return sight.kind == "file" && same_bytes_as_far_as_known(*place->facts, sight.facts);
}

ContentCheck check_content(const Tenancy& tenancy, const Sight& sight) {
  ContentCheck check;
  check.amber_kind = "none";
  if (!tenancy.scope.is_file()) {
    check.document = {{"status", "not_applicable"}, {"baseline_source", "none"}};
    return check;
  }
  if (sight.kind == "unverifiable" || sight.kind == "other") {
    // Nothing is claimed of bytes that could not be read, and a release does not invent a match.
    check.document = {{"status", "unverifiable"},
                      {"baseline_source", tenancy.post_sha256.empty() ? "pre_write_fnv1a" : "gated_write_post_sha256"},
                      {"reason", sight.kind == "other" ? "a link or special file bears the name" : sight.reason}};
    check.mismatch = true;
    check.amber_kind = "quarantine_ungated";
    return check;
  }
  if (tenancy.post_sha256.empty() && tenancy.pre_write.kind == "folder" && sight.kind == "folder") {
    check.document = {
        {"status", "unchecked"}, {"baseline_source", "none"}, {"reason", "folder manifests are not in this release"}};
    return check;
  }
  const bool exists = sight.kind == "file";
  const Json actual_sha = exists ? Json(sight.digest.sha256) : Json(nullptr);
  if (!tenancy.post_sha256.empty()) {
    check.mismatch = !exists || sight.digest.sha256 != tenancy.post_sha256;
    check.document = {{"baseline_source", "gated_write_post_sha256"},
                      {"expected_sha256", tenancy.post_sha256},
                      {"actual_sha256", actual_sha}};
  } else {
    const PreWrite& before = tenancy.pre_write;
    check.mismatch = before.exists != exists || sight.kind == "folder" ||
                     (exists && (before.fnv1a != sight.digest.fnv1a || before.byte_count != sight.digest.byte_count));
    check.document = {{"baseline_source", "pre_write_fnv1a"},
                      {"expected_fnv1a", before.exists ? Json(before.fnv1a) : Json(nullptr)},
                      {"actual_fnv1a", exists ? Json(sight.digest.fnv1a) : Json(nullptr)},
                      {"expected_byte_count", before.exists ? Json(before.byte_count) : Json(nullptr)},
                      {"actual_byte_count", exists ? Json(sight.digest.byte_count) : Json(nullptr)},
                      {"actual_sha256", actual_sha}};
  }
  check.document["expected_exists"] = !tenancy.post_sha256.empty() || tenancy.pre_write.exists;
  check.document["actual_exists"] = exists || sight.kind == "folder";
  check.document["status"] = check.mismatch ? "mismatch" : "match";
  check.amber_kind = check.mismatch ? "quarantine_ungated" : "post_edit";
  return check;
}

Result<End> end_tenancy(Context& context, Transition& transition, const Tenancy& tenancy, const std::string& ended_by,
                        const Sight& sight, std::vector<evidence::Event> also) {
  const ContentCheck check = check_content(tenancy, sight);
  Json quarantine_id = nullptr;
  if (check.mismatch && sight.kind == "file") {
    if (!sight.archived) return Refusal(Code::os_failed, "bytes that were not archived cannot be released");
    const std::string id = evidence::Records::new_id(evidence::RecordKind::quarantine);
    HF_CHECK(context.records->put(evidence::RecordKind::quarantine, id,
                                  quarantine_record(tenancy, sight, ended_by, check.document, id, transition.now)));
    quarantine_id = id;
  }
  HF_FAULT_POINT("release_after_archive");
  evidence::Event event;
  event.kind = check.mismatch ? "released_with_ungated_content" : "tenancy_ended";
  event.id = evidence::new_event_id();
  event.scope = tenancy.scope.full();
  event.generation = tenancy.generation;
  event.epoch = tenancy.control_epoch;
  if (!tenancy.event.empty()) event.parents.push_back(tenancy.event);
  event.facts = {{"ended_by", ended_by},
                 {"owner", tenancy.owner},
                 {"task_id", tenancy.task_id},
                 {"generation", tenancy.generation.text()},
                 {"content_check", check.document},
                 {"amber_kind", check.amber_kind},
                 {"quarantine_id", quarantine_id},
                 {"deadline", tenancy.expires_at},
                 {"observed_at", format_wall(transition.now.wall_us)}};
  EndedTenancy ended;
  ended.tenancy = tenancy;
  ended.ended_at = format_wall(transition.now.wall_us);
  ended.ended_by = ended_by;
  ended.event = event.id;
  ended.content_check = check.document;
  authority::Batch batch;
  batch.ends.push_back(std::move(ended));
  batch.events = also;
  for (evidence::Event& extra : batch.events) event.parents.push_back(extra.id);
  batch.events.push_back(event);
  HF_CHECK(context.store->commit(transition.held, transition.state, std::move(batch), transition.now));
  HF_FAULT_POINT("release_before_guard_drops");
  HF_CHECK(close_noticed_faults(context, tenancy.scope, ended_by, quarantine_id, transition.now));
  const guard::Enforcement recorded = guard::Enforcement::from_json(tenancy.os_lock);
  std::string fault = recorded.fault;
  if (const auto guard = context.guard_table.find(tenancy); guard && fault.empty()) fault = guard->enforcement().fault;
  context.guard_table.drop(tenancy.scope.full(), tenancy.generation);
  End end;
  end.event = event.id;
  end.document = {{"released", tenancy.scope.display()},
                  {"owner", tenancy.owner},
                  {"task_id", tenancy.task_id},
                  {"generation", tenancy.generation.text()},
                  {"was_held", true},
                  {"ended_by", ended_by},
                  {"amber_kind", check.amber_kind},
                  {"content_mismatch", check.mismatch},
                  {"content_check", check.document},
                  {"quarantine_id", quarantine_id},
                  {"observed", tenancy.observed},
                  {"guard_fault", fault.empty() ? Json(nullptr) : Json(fault)},
                  {"evidence", event.id}};
  if (check.mismatch) end.document["warning"] = kWarning;
  return end;
}

Result<End> end_tenancy_now(Context& context, Transition& transition, const Tenancy& tenancy,
                            const std::string& ended_by) {
  if (const auto guard = context.guard_table.find(tenancy)) (void)guard->check();  // the end says what it finds
  HF_CHECK(record_observations(context, transition));
  const Tenancy* current = transition.state.find(tenancy.scope);
  const Tenancy ending = current != nullptr ? *current : tenancy;
  return end_tenancy(context, transition, ending, ended_by, look_at(context, ending.scope, true));
}

Result<void> end_what_is_due(Context& context, Transition& transition, const Scope* scope) {
  std::vector<std::pair<Tenancy, std::string>> due;
  for (const auto& [full, tenancy] : transition.state.held) {
    if (scope != nullptr && !overlaps(*scope, tenancy.scope)) continue;
    if (tenancy.control_epoch < transition.state.epoch.epoch) {
      due.emplace_back(tenancy, "epoch");
    } else if (tenancy.expired_at(transition.now)) {
      due.emplace_back(tenancy, "expiry");
    }
  }
  for (const auto& [tenancy, ended_by] : due) {
    auto ended = end_tenancy_now(context, transition, tenancy, ended_by);
    if (!ended.ok()) return std::move(ended).refusal();
  }
  return {};
}

}  // namespace holdfast::engine
