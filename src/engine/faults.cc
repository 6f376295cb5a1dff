#include "engine/faults.h"

namespace holdfast::engine {

Result<std::string> keep_foreign(Context& context, const Instant& now, const Scope& scope, const os::Handle& object,
                                 const std::string& kind, Json facts) {
  HF_TRY(const ContentDigest digest, context.vault->store(vault::Tier::amber, object));
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
                                   const replace::Plan& plan, const replace::Fault& fault) {
  RecordedFault recorded;
  recorded.id = evidence::Records::new_id(evidence::RecordKind::reconcile);
  recorded.record =
      replace::fault_record(plan, fault, recorded.id, context.self.process.pid, format_wall(transition.now.wall_us));
  recorded.record["operation_id"] = intent.operation_id;
  recorded.record["generation"] = intent.command.value("generation", "");
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

}  // namespace holdfast::engine
