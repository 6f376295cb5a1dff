#include "engine/ending.h"

#include "base/fault_point.h"
#include "engine/due.h"
#include "engine/faults.h"
#include "engine/folder_check.h"
#include "engine/observing.h"
#include "engine/recover.h"
#include "engine/session_binding.h"
#include "scope/resolve.h"

namespace holdfast::engine {
namespace {

bool same_bytes_as_far_as_known(const os::Facts& one, const os::Facts& other) {
  return one.identity == other.identity && one.byte_count == other.byte_count && one.modified_ns == other.modified_ns &&
         one.changed_ns == other.changed_ns;
}

Json quarantine_record(const Tenancy& tenancy, const Sight& sight, const std::string& ended_by,
                       const ContentCheck& check, const std::string& id, const Instant& now) {
  Json record{{"id", id},
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
              {"content_check", check.document},
              {"reconciled", false}};
  // The digest above is the manifest's; the files are entries of Amber of their own.
  if (sight.folder) record.update(kept_files(check.ungated));
  return record;
}

constexpr const char* kWarning =
    "Divergent bytes preserved in Amber and released_with_ungated_content recorded; baseline was not silently restored";

}  // namespace

Result<std::optional<os::Handle>> held_still(const std::shared_ptr<guard::Guard>& guard, const os::Facts& at_name) {
  if (!guard) return std::optional<os::Handle>();
  // Asked first: a name that a stranger took is looked at as it is.
  const auto checked = guard->check();
  if (!checked.ok()) return std::optional<os::Handle>();
  HF_TRY(std::optional<os::Handle> still, guard->open_preimage());
  if (!still) return still;
  HF_TRY(const os::Facts facts, os::facts_of_open(*still));
  // At worst the name's object was diverted since it was looked at; a third one is nobody's twin.
  const bool same = facts.identity == at_name.identity || guard->identity() == facts.identity;
  return same ? std::move(still) : std::optional<os::Handle>();
}

Sight look_at(Context& context, const Scope& scope, bool archive, const std::shared_ptr<guard::Guard>& guard) {
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
  auto still = held_still(guard, *place->facts);
  if (!still.ok()) return unverifiable(still.refusal());
  const os::Handle& object = *still ? **still : *place->object;
  const auto facts = os::facts_of_open(object);
  if (!facts.ok()) return unverifiable(facts.refusal());
  sight.facts = *facts;
  auto digest = archive ? context.vault->store(vault::Tier::amber, object) : os::digest_of_open(object);
  if (!digest.ok() && archive && digest.refusal().code() == Code::state_persist_failed) {
    // Not kept is not unread: what diverges then cannot end its tenancy, what does not diverge can.
    sight.reason = digest.refusal().message();
    digest = os::digest_of_open(object);
    archive = false;
  }
  if (!digest.ok()) return unverifiable(digest.refusal());
  sight.digest = *digest;
  sight.archived = archive;
  sight.kind = "file";
  return sight;
}

Sight look_at_end_of(Context& context, const Tenancy& tenancy, const Sight* before,
                     const std::shared_ptr<guard::Guard>& guard) {
  Sight sight = look_at(context, tenancy.scope, true, guard ? guard : context.guard_table.find(tenancy));
  sight.generation = tenancy.generation;
  if (before != nullptr && before->generation != tenancy.generation) before = nullptr;
  // A folder that was leased before folders had manifests has nothing to be compared with.
  const bool comparable = has_manifest(tenancy) || tenancy.pre_write.kind != "folder";
  if (sight.kind == "folder" && comparable) look_into_folder(context, tenancy, before, sight);
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
  if (place->facts->kind == os::Kind::folder) {
    if (sight.kind != "folder" || !sight.folder) return sight.kind == "folder";
    if (!place->object) return false;
    const auto still = tree_is_still(*place->object, context.folder.squad_facts.identity, sight.folder->tree);
    return still.ok() && *still;
  }
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
    check.document = {{"status", "unchecked"},
                      {"baseline_source", "none"},
                      {"reason", "the folder was leased by a version that captured no manifest"}};
    return check;
  }
  const bool exists = sight.kind == "file";
  if (tenancy.post_absent) {
    check.mismatch = exists || sight.kind == "folder";
    check.document = {{"baseline_source", "reconciled_as_absent"},
                      {"expected_exists", false},
                      {"actual_exists", check.mismatch},
                      {"actual_sha256", exists ? Json(sight.digest.sha256) : Json(nullptr)},
                      {"status", check.mismatch ? "mismatch" : "match"}};
    check.amber_kind = check.mismatch ? "quarantine_ungated" : "post_edit";
    return check;
  }
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
  if (sight.folder) {
    check.document["actual_manifest_sha256"] = sight.digest.sha256;
    check.ungated = sight.folder->comparison.differences;
  }
  check.document["status"] = check.mismatch ? "mismatch" : "match";
  check.amber_kind = check.mismatch ? "quarantine_ungated" : "post_edit";
  return check;
}

Result<PreparedEnd> prepare_end(Context& context, Transition& transition, const Tenancy& tenancy,
                                const std::string& ended_by, const Sight& sight, std::vector<evidence::Event> also) {
  PreparedEnd end;
  if (has_manifest(tenancy)) {
    HF_TRY(end.check, check_folder(context, transition, tenancy, sight));
  } else {
    end.check = check_content(tenancy, sight);
  }
  if (end.check.mismatch && (sight.kind == "file" || sight.folder)) {
    if (!sight.archived) {
      return Refusal(Code::state_persist_failed,
                     "the bytes of " + tenancy.scope.display() + " diverge and could not be kept: " + sight.reason,
                     Json{{"scope", tenancy.scope.full()}, {"content_check", end.check.document}});
    }
    const std::string id = evidence::Records::new_id(evidence::RecordKind::quarantine);
    HF_CHECK(context.records->put(evidence::RecordKind::quarantine, id,
                                  quarantine_record(tenancy, sight, ended_by, end.check, id, transition.now)));
    end.quarantine_id = id;
  }
  HF_FAULT_POINT("release_after_archive");
  evidence::Event event;
  event.kind = end.check.mismatch ? "released_with_ungated_content" : "tenancy_ended";
  event.id = evidence::new_event_id();
  event.scope = tenancy.scope.full();
  event.generation = tenancy.generation;
  event.epoch = tenancy.control_epoch;
  if (!tenancy.event.empty()) event.parents.push_back(tenancy.event);
  event.facts = {{"ended_by", ended_by},
                 {"owner", tenancy.owner},
                 {"task_id", tenancy.task_id},
                 {"generation", tenancy.generation.text()},
                 {"content_check", end.check.document},
                 {"amber_kind", end.check.amber_kind},
                 {"quarantine_id", end.quarantine_id},
                 {"deadline", tenancy.expires_at},
                 {"observed_at", format_wall(transition.now.wall_us)}};
  end.ended.tenancy = tenancy;
  end.ended.ended_at = format_wall(transition.now.wall_us);
  end.ended.ended_by = ended_by;
  end.ended.event = event.id;
  end.ended.content_check = end.check.document;
  end.events = std::move(also);
  for (evidence::Event& extra : end.events) {
    if (extra.id.empty()) extra.id = evidence::new_event_id();
    event.parents.push_back(extra.id);
  }
  end.events.push_back(std::move(event));
  return end;
}

Json finish_end(Context& context, const PreparedEnd& end, const Instant& now) {
  HF_FAULT_POINT("release_before_guard_drops");
  const Tenancy& tenancy = end.ended.tenancy;
  std::string fault = guard::Enforcement::from_json(tenancy.os_lock).fault;
  if (const auto guard = context.guard_table.find(tenancy); guard && fault.empty()) fault = guard->enforcement().fault;
  context.guard_table.drop(tenancy.scope.full(), tenancy.generation);
  // The tenancy has ended whatever becomes of this: a record that stays open is there to be decided on.
  (void)close_noticed_faults(context, tenancy.scope, end.ended.ended_by, end.quarantine_id, now);
  for (const Scope& freed : with_files_behind(context, {tenancy.scope})) context.waiting.freed(freed);
  Json document = {{"released", tenancy.scope.display()},
                   {"owner", tenancy.owner},
                   {"task_id", tenancy.task_id},
                   {"generation", tenancy.generation.text()},
                   {"was_held", true},
                   {"ended_by", end.ended.ended_by},
                   {"amber_kind", end.check.amber_kind},
                   {"content_mismatch", end.check.mismatch},
                   {"content_check", end.check.document},
                   {"quarantine_id", end.quarantine_id},
                   {"observed", tenancy.observed},
                   {"guard_fault", fault.empty() ? Json(nullptr) : Json(fault)},
                   {"evidence", end.ended.event}};
  if (!end.quarantine_id.is_null()) document["warning"] = kWarning;
  return document;
}

Result<Json> end_tenancy(Context& context, Transition& transition, const Tenancy& tenancy, const std::string& ended_by,
                         const Sight& sight, std::vector<evidence::Event> also) {
  HF_TRY(const PreparedEnd end, prepare_end(context, transition, tenancy, ended_by, sight, std::move(also)));
  authority::Batch batch;
  batch.ends.push_back(end.ended);
  batch.events = end.events;
  HF_CHECK(context.store->commit(transition.held, transition.state, std::move(batch), transition.now));
  return finish_end(context, end, transition.now);
}

Result<PreparedEnd> prepare_end_now(Context& context, Transition& transition, const Tenancy& tenancy,
                                    const std::string& ended_by, const Sight* seen) {
  if (const auto guard = context.guard_table.find(tenancy)) (void)guard->check();  // the end says what it finds
  HF_CHECK(settle_intents_of(context, transition, tenancy.scope));
  HF_CHECK(record_observations(context, transition));
  const Tenancy* current = transition.state.find(tenancy.scope);
  const Tenancy ending = current != nullptr ? *current : tenancy;
  const bool as_seen =
      seen != nullptr && seen->generation == ending.generation && still_so(context, ending.scope, *seen);
  return prepare_end(context, transition, ending, ended_by, as_seen ? *seen : look_at_end_of(context, ending, seen),
                     {});
}

Result<Json> end_tenancy_now(Context& context, Transition& transition, const Tenancy& tenancy,
                             const std::string& ended_by, const Sight* seen) {
  HF_TRY(const PreparedEnd end, prepare_end_now(context, transition, tenancy, ended_by, seen));
  authority::Batch batch;
  batch.ends.push_back(end.ended);
  batch.events = end.events;
  HF_CHECK(context.store->commit(transition.held, transition.state, std::move(batch), transition.now));
  return finish_end(context, end, transition.now);
}

Result<Tenancy> current_tenancy(Context& context, Transition& transition, const Scope& scope, const TenancyKeys& keys) {
  HF_CHECK(end_what_is_due(context, transition, &scope));
  const Tenancy* held = transition.state.find(scope);
  HF_TRY(const auto last, context.store->last_ended(scope));
  HF_CHECK(judge_keys(scope, keys, held == nullptr ? std::nullopt : std::optional(*held), last,
                      transition.state.epoch.epoch, transition.now));
  return *held;
}

Result<Tenancy> current_tenancy(Context& context, Transition& transition, const Arguments& arguments) {
  HF_TRY(const TenancyKeys keys, arguments.keys());
  HF_TRY(const std::string text, arguments.scope());
  HF_TRY(const std::string cwd, arguments.current_folder());
  HF_TRY(const Scope scope, scope_of_lease(context, transition.state, text, cwd));
  return current_tenancy(context, transition, scope, keys);
}

}  // namespace holdfast::engine
