#include "engine/faults.h"

#include "base/json.h"

namespace holdfast::engine {

Result<std::string> keep_foreign(Context& context, const Instant& now, const Scope& scope, const os::Handle& object,
                                 const std::string& kind, Json facts) {
  HF_TRY(const ContentDigest digest, context.vault->store(vault::Tier::amber, object));
  return list_foreign(context, now, scope, digest, kind, std::move(facts));
}

Result<std::string> list_foreign(Context& context, const Instant& now, const Scope& scope, const ContentDigest& digest,
                                 const std::string& kind, Json facts) {
  const std::string id = evidence::Records::new_id(evidence::RecordKind::quarantine);
  Json record = std::move(facts);
  record["id"] = id;
  record["at"] = format_wall(now.wall_us);
  record["kind"] = kind;
  record["scope"] = scope.full();
  record["path"] = scope.display();
  record["sha256"] = digest.sha256;
  record["fnv1a"] = digest.fnv1a;
  record["byte_count"] = digest.byte_count;
  record["reconciled"] = false;
  HF_CHECK(context.records->put(evidence::RecordKind::quarantine, id, record));
  return id;
}

Result<RecordedFault> record_fault(Context& context, Transition& transition, replace::Intent& intent,
                                   const replace::Plan& plan, const replace::Fault& fault, Json more) {
  RecordedFault recorded;
  recorded.id = evidence::Records::new_id(evidence::RecordKind::reconcile);
  recorded.record =
      replace::fault_record(plan, fault, recorded.id, context.self.process.pid, format_wall(transition.now.wall_us));
  recorded.record["operation_id"] = intent.operation_id;
  recorded.record["generation"] = text_member(intent.command, "generation");
  recorded.record.update(more);
  evidence::Event event;
  event.kind = "publish_fault";
  event.id = evidence::new_event_id();
  event.scope = plan.scope;
  authority::Batch batch;
  const auto held = transition.state.held.find(plan.scope);
  if (held != transition.state.held.end()) {
    Tenancy marked = held->second;
    if (!marked.event.empty()) event.parents.push_back(marked.event);
    marked.os_lock["fault"] = facts_of(fault.code).name;
    marked.os_lock["enforced"] = false;
    batch.updates.push_back(std::move(marked));
  }
  event.facts = recorded.record;
  recorded.record["event"] = event.id;
  HF_CHECK(context.records->put(evidence::RecordKind::reconcile, recorded.id, recorded.record));
  intent.state = "fault";
  intent.reconcile_id = recorded.id;
  intent.event = event.id;
  HF_CHECK(replace::IntentJournal(*context.files).put(intent));
  batch.events.push_back(std::move(event));
  HF_CHECK(context.store->commit(transition.held, transition.state, std::move(batch), transition.now));
  return recorded;
}

namespace {

// What the tenancy knows as its content, put where a restore finds it. "" where its bytes are no longer to be had.
Result<std::string> keep_held_bytes(Context& context, const Tenancy& tenancy) {
  const std::string known = tenancy.post_sha256.empty() ? tenancy.pre_write.sha256 : tenancy.post_sha256;
  if (known.empty() || context.vault->open_verified(vault::Tier::primary, known).ok()) return known;
  const auto guard = context.guard_table.find(tenancy);
  if (!guard) return std::string();
  auto held = guard->open_preimage();
  if (!held.ok() || !*held) return std::string();
  const auto digest = os::sha256_of_open(**held);
  if (!digest.ok() || digest->sha256 != known) return std::string();
  HF_TRY(const ContentDigest kept, context.vault->store(vault::Tier::primary, **held, &*digest));
  return kept.sha256 == known ? known : std::string();
}

}  // namespace

bool is_noticed_fault(const Json& record) { return record.value("noticed", Json()) == Json(true); }

Result<void> record_noticed_fault(Context& context, const Transition& transition, const Tenancy& tenancy,
                                  const guard::Observation& seen, const std::string& event) {
  const CodeFacts* fault = facts_named(seen.fault);
  if (fault == nullptr || fault->next != Next::reconcile) return {};
  HF_TRY(const auto waiting, waiting_reconciliation(context, tenancy.scope));
  if (waiting) return {};
  HF_TRY(const std::string preimage, keep_held_bytes(context, tenancy));
  const std::string id = evidence::Records::new_id(evidence::RecordKind::reconcile);
  const std::string at = format_wall(transition.now.wall_us);
  return context.records->put(evidence::RecordKind::reconcile, id,
                              Json{{"id", id},
                                   {"at", at},
                                   {"state", "open"},
                                   {"noticed", true},
                                   {"path", tenancy.scope.display()},
                                   {"scope", tenancy.scope.full()},
                                   {"error", seen.what},
                                   {"fault", seen.fault},
                                   {"rename_completed", false},
                                   {"planned_sha256", nullptr},
                                   {"preimage_sha256", preimage.empty() ? Json(nullptr) : Json(preimage)},
                                   {"destination_existed_before", tenancy.identity.known()},
                                   {"preimage_displaced_to", nullptr},
                                   {"reconcile_by", fault->hint},
                                   {"pid", context.self.process.pid},
                                   {"ts", at},
                                   {"generation", tenancy.generation.text()},
                                   {"event", event}});
}

Result<void> close_noticed_faults(Context& context, const Scope& scope, const std::string& ended_by,
                                  const Json& quarantine_id, const Instant& now) {
  HF_TRY(const auto waiting, waiting_reconciliation(context, scope));
  if (!waiting || !is_noticed_fault(*waiting)) return {};
  Json record = *waiting;
  record["state"] = "resolved";
  record["resolution"] = {{"decision", "tenancy_ended"},
                          {"reason", "the tenancy ended by " + ended_by + "; its content check kept what diverged"},
                          {"at", format_wall(now.wall_us)},
                          {"quarantine_id", quarantine_id}};
  return context.records->put(evidence::RecordKind::reconcile, text_member(record, "id"), record);
}

}  // namespace holdfast::engine
