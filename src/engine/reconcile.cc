#include "engine/reconcile.h"

#include "base/fault_point.h"
#include "base/json.h"
#include "base/piece.h"
#include "engine/due.h"
#include "engine/ending.h"
#include "engine/faults.h"
#include "engine/prune.h"
#include "engine/write.h"
#include "replace/intent.h"
#include "scope/resolve.h"

namespace holdfast::engine {
namespace {

constexpr auto kReconcile = evidence::RecordKind::reconcile;

Result<Json> open_record(Context& context, const std::string& id) {
  HF_TRY(Json record, context.records->get(kReconcile, id));
  if (text_member(record, "state") != "open") {
    return Refusal(Code::not_found, "not_found: " + id + " was resolved already", Json{{"id", id}, {"record", record}});
  }
  return record;
}

// What is there, in Amber: as it was seen, or looked at again.
Sight still_archived(Context& context, const Scope& scope, const Sight& seen) {
  const bool as_seen = (seen.archived || seen.kind == "none") && still_so(context, scope, seen);
  return as_seen ? seen : look_at(context, scope, true);
}

// Closes the record; the tenancy's baseline becomes what is there now, and the guard takes it.
// `seen`: what was looked at, and archived, before the transition.
Result<Json> close(Context& context, Transition& transition, Json record, const std::string& decision,
                   const std::string& reason, const Sight& seen) {
  HF_CHECK(open_record(context, text_member(record, "id")));  // nobody else has decided meanwhile
  HF_TRY(const Scope scope, parse_canonical_scope(text_member(record, "scope")));
  const Sight sight = still_archived(context, scope, seen);
  if (sight.kind == "unverifiable") {
    return Refusal(Code::destination_unverifiable, "destination_unverifiable: " + sight.reason,
                   Json{{"scope", scope.full()}});
  }
  if (decision == "restore" && sight.digest.sha256 != text_member(record, "preimage_sha256")) {
    return Refusal(Code::destination_content_diverged,
                   "destination_content_diverged: what was restored is no longer at " + scope.display(),
                   Json{{"scope", scope.full()}, {"reconcile", record}})
        .with_effect(Effect::applied);
  }
  evidence::Event event;
  event.kind = "reconciled";
  event.id = evidence::new_event_id();
  event.scope = scope.full();
  const std::string fault_event = text_member(record, "event");
  if (!fault_event.empty()) event.parents.push_back(fault_event);
  record["state"] = "resolved";
  record["resolution"] = {{"decision", decision},
                          {"reason", reason},
                          {"at", format_wall(transition.now.wall_us)},
                          {"sha256", sight.kind == "file" ? Json(sight.digest.sha256) : Json(nullptr)},
                          {"event", event.id}};
  event.facts = {{"reconcile_id", record["id"]}, {"fault", record["fault"]}, {"resolution", record["resolution"]}};
  authority::Batch batch;
  if (const Tenancy* held = transition.state.find(scope); held != nullptr) {
    Tenancy settled = *held;
    settled.post_sha256 = sight.kind == "file" ? sight.digest.sha256 : "";
    settled.post_absent = sight.kind == "none";
    if (sight.kind == "file") settled.identity = sight.facts.identity;
    settled.os_lock["fault"] = nullptr;
    if (const auto guard = context.guard_table.find(settled)) {
      HF_CHECK(guard->adopt_current());
      settled.os_lock = guard->enforcement().to_json();
    }
    batch.updates.push_back(std::move(settled));
  }
  batch.events.push_back(std::move(event));
  HF_CHECK(context.store->commit(transition.held, transition.state, std::move(batch), transition.now));
  HF_FAULT_POINT("reconcile_before_close");
  HF_CHECK(context.records->put(kReconcile, text_member(record, "id"), record));
  replace::IntentJournal journal(*context.files);
  HF_TRY(auto intent,
         journal.find(text_member(record, "operation_id").empty() ? "-" : text_member(record, "operation_id")));
  if (intent && intent->state == "fault") {
    intent->state = "reconciled";
    HF_CHECK(journal.put(*intent));
  }
  return record;
}

Result<Json> restore(Context& context, const Json& json, const Json& record, const std::string& reason) {
  const Arguments arguments(json);
  const std::string preimage = text_member(record, "preimage_sha256");
  if (preimage.empty()) {
    return Refusal(Code::vault_entry_missing, "there was no file before; nothing can be restored (use --accept)",
                   Json{{"reconcile", record}});
  }
  HF_TRY(const os::Handle bytes, context.vault->open_verified(vault::Tier::primary, preimage));
  Replacement replacement;
  HF_TRY(replacement.keys, arguments.keys());
  replacement.scope_text = text_member(record, "scope");
  replacement.current_folder = "/";
  replacement.operation_id = "restore-" + text_member(record, "id") + "-" + random_hex(4);  // each try is its own
  replacement.family = "restore";
  replacement.allow_hard_links = true;
  replacement.restores_reconciliation = true;
  replacement.produce = [&](guard::StagedFile& staged, const os::Handle*) -> Result<std::string> {
    Piece piece;
    for (std::uint64_t offset = 0;;) {
      HF_TRY(const std::size_t count, os::read_at(bytes, offset, piece.data(), piece.size()));
      if (count == 0) return preimage;
      HF_CHECK(staged.write(piece.first(count)));
      offset += count;
    }
  };
  Json kept = nullptr;
  {
    // The guard has to take what is there as its own before it can be replaced under guard; the bytes are kept first.
    HF_TRY(const Scope scope, parse_canonical_scope(replacement.scope_text));
    const Sight seen = look_at(context, scope, true);
    HF_FAULT_POINT("reconcile_after_look");
    HF_TRY(Transition transition, begin_transition_on(context, replacement.scope_text, replacement.current_folder));
    HF_TRY(const Tenancy held, current_tenancy(context, transition, scope, replacement.keys));
    const Sight sight = still_archived(context, scope, seen);
    if (sight.kind == "unverifiable") {
      return Refusal(Code::destination_unverifiable, "destination_unverifiable: " + sight.reason);
    }
    if (sight.kind == "file" && sight.digest.sha256 != preimage) {
      // What the restore takes the place of was written by nobody's lease: it stays findable.
      if (!sight.archived) {
        return Refusal(Code::state_persist_failed, "what a restore would displace could not be kept: " + sight.reason,
                       Json{{"scope", scope.full()}});
      }
      HF_TRY(kept, list_foreign(context, transition.now, scope, sight.digest, "displaced_foreign",
                                Json{{"reconcile_id", record["id"]}}));
    }
    if (const auto guard = context.guard_table.find(held)) HF_CHECK(guard->adopt_current());
  }
  HF_TRY(const Json outcome, replace_guarded(context, replacement));
  HF_TRY(const Scope scope, parse_canonical_scope(replacement.scope_text));
  const Sight restored = look_at(context, scope, true);
  HF_TRY(Transition transition, begin_transition(context));
  Json with_kept = record;
  if (!kept.is_null()) with_kept["displaced_quarantine_id"] = kept;
  HF_TRY(Json closed, close(context, transition, std::move(with_kept), "restore", reason, restored));
  return Json{{"record", std::move(closed)}, {"outcome", outcome}};
}

}  // namespace

Result<Json> reconcile_list(Context& context) {
  HF_TRY(const auto records, context.records->all(kReconcile));
  Json open = Json::array();
  for (const Json& found : records) {
    if (text_member(found, "state") != "resolved") open.push_back(found);
  }
  return Json{{"reconcile", std::move(open)}};
}

Result<Json> reconcile_show(Context& context, const Json& arguments) {
  HF_TRY(const std::string id, Arguments(arguments).text("id"));
  // Wrapped: the record has a member "error" (Exhibit 4), which alone would read as a refusal.
  HF_TRY(Json record, context.records->get(kReconcile, id));
  return Json{{"record", std::move(record)}};
}

Result<Json> reconcile_resolve(Context& context, const Json& json) {
  const Arguments arguments(json);
  HF_TRY(const std::string id, arguments.text("id"));
  HF_TRY(const std::string decision, arguments.text("decision"));
  HF_TRY(const auto reason, arguments.optional_text("reason"));
  if (id.starts_with("q-")) {
    if (decision != "accept") return usage("set-aside bytes are accepted; nothing is restored from them by a verb");
    if (!reason) return usage("reason is missing");
    return accept_quarantine(context, id, *reason);
  }
  HF_TRY(Json record, open_record(context, id));
  if (decision == "restore") return restore(context, json, record, reason.value_or("none given"));
  if (decision != "accept") return usage("decision is neither accept nor restore");
  HF_TRY(const Scope scope, parse_canonical_scope(text_member(record, "scope")));
  const Sight seen = look_at(context, scope, true);
  HF_FAULT_POINT("reconcile_after_look");
  HF_TRY(Transition transition, begin_transition(context));
  HF_TRY(Json closed, close(context, transition, std::move(record), "accept", reason.value_or("none given"), seen));
  return Json{{"record", std::move(closed)}};
}

}  // namespace holdfast::engine
