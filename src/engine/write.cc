#include "engine/write.h"

#include "base/fault_point.h"
#include "base/json.h"
#include "engine/command.h"
#include "engine/due.h"
#include "engine/ending.h"
#include "engine/faults.h"
#include "engine/write_binding.h"
#include "os/unnamed_file.h"
#include "replace/publish.h"
#include "scope/resolve.h"

namespace holdfast::engine {
namespace {

// W, observed before the transition and compared inside it.
struct Observed {
  std::optional<os::Handle> preimage;
  replace::Preimage facts;
  std::uint64_t links = 0;
  std::uint64_t content_token = 0;
  std::optional<guard::Metadata> metadata;
};

Refusal mismatch(const Scope& scope, const std::string& planned, const Observed& observed) {
  const std::string current = observed.facts.exists ? observed.facts.sha256 : "absent";
  return Refusal(Code::preimage_hash_mismatch,
                 "preimage_hash_mismatch: " + scope.display() + " was planned on " + planned + ", it is " + current,
                 Json{{"scope", scope.full()}, {"planned_preimage", planned}, {"current_sha256", current}});
}

// An SQLite database whose journal has content is being changed by somebody through SQLite (field report B119).
Result<void> refuse_live_database(const PinnedPlace& place, const os::Handle& object, const Scope& scope) {
  static constexpr std::string_view kMagic("SQLite format 3\0", 16);
  std::string head(kMagic.size(), '\0');
  HF_TRY(const std::size_t count, os::read_at(object, 0, head.data(), head.size()));
  if (count != head.size() || head != kMagic) return {};
  for (const char* suffix : {"-wal", "-journal"}) {
    if (!os::name_exists(place.parent, place.leaf + suffix)) continue;
    HF_TRY(const os::Handle journal, os::open_for_reading(place.parent, place.leaf + suffix));
    HF_TRY(const os::Facts facts, os::facts_of_open(journal));
    if (facts.byte_count == 0) continue;
    return Refusal(Code::destination_is_live_database,
                   "destination_is_live_database: " + scope.display() + " has a live journal (" + suffix + ")",
                   Json{{"scope", scope.full()}, {"journal", place.leaf + suffix}});
  }
  return {};
}

Result<Observed> observe(Context& context, const Binding& binding, const Replacement& replacement, const Scope& scope) {
  HF_CHECK(binding.guard->check());
  Observed observed;
  observed.content_token = binding.guard->content_token();
  HF_TRY(observed.preimage, binding.guard->open_preimage());
  if (observed.preimage) {
    HF_TRY(const os::Facts facts, os::facts_of_open(*observed.preimage));
    HF_TRY(const PinnedPlace place, pin_place(context.folder, scope));
    HF_CHECK(refuse_live_database(place, *observed.preimage, scope));
    if (facts.link_count > 1 && !replacement.allow_hard_links) {
      return Refusal(Code::destination_has_hard_links,
                     "destination_has_hard_links: " + scope.display() + " has " + std::to_string(facts.link_count) +
                         " names; a replacement would part them",
                     Json{{"scope", scope.full()}, {"link_count", facts.link_count}});
    }
    HF_TRY(const ContentDigest digest, os::sha256_of_open(*observed.preimage));
    observed.facts = {true, digest.sha256, digest.byte_count, facts.identity};
    observed.links = facts.link_count;
    HF_TRY(observed.metadata, guard::metadata_of_open(*observed.preimage));
  }
  const std::string current = observed.facts.exists ? observed.facts.sha256 : "absent";
  if (!replacement.precondition.empty() && replacement.precondition != current) {
    return mismatch(scope, replacement.precondition, observed);
  }
  return observed;
}

// Inside the transition: what W showed still holds, or the precondition is judged on what is there now.
Result<void> still_as_observed(Context& context, const Binding& before, const Binding& now,
                               const Replacement& replacement, const Scope& scope, Observed& observed) {
  HF_CHECK(now.guard->check());
  const bool untouched = before.tenancy.last_operation_id == now.tenancy.last_operation_id &&
                         before.tenancy.post_sha256 == now.tenancy.post_sha256 &&
                         observed.content_token == now.guard->content_token();
  if (untouched && (!observed.preimage || now.guard->identity() == observed.facts.identity)) return {};
  Replacement unconditional = replacement;
  unconditional.precondition.clear();
  HF_TRY(Observed again, observe(context, now, unconditional, scope));
  if (again.facts.exists != observed.facts.exists || again.facts.sha256 != observed.facts.sha256) {
    return mismatch(scope, observed.facts.exists ? observed.facts.sha256 : "absent", again);
  }
  observed = std::move(again);
  return {};
}

// nullopt: run it. A document: the first outcome of this very command.
Result<std::optional<Json>> earlier_outcome(Context& context, const Replacement& replacement, const Scope& scope,
                                            const std::string& payload, const Tenancy* current) {
  HF_TRY(const auto intent, replace::IntentJournal(*context.files).find(replacement.operation_id));
  if (!intent) return std::optional<Json>();
  const Json& first = intent->command;
  Json differing = Json::array();
  if (intent->scope != scope.full()) differing.push_back("resource");
  if (text_member(first, "operation_family") != replacement.family) differing.push_back("operation_family");
  if (text_member(first, "precondition") != replacement.precondition) differing.push_back("precondition");
  if (text_member(first, "payload_sha256") != payload) differing.push_back("payload_sha256");
  if (!differing.empty()) {
    return Refusal(Code::operation_id_reused,
                   "operation_id_reused: " + replacement.operation_id + " was used for another command",
                   Json{{"operation_id", replacement.operation_id}, {"differing", differing}, {"first", first}});
  }
  if (intent->state == "not_published") return std::optional<Json>();
  if (intent->state == "settled" && intent->outcome.is_object()) {
    Json outcome = intent->outcome;
    if (current != nullptr && !current->last_operation_id.empty() &&
        current->last_operation_id != replacement.operation_id) {
      outcome["superseded_by"] = current->last_operation_id;
    }
    outcome["repeated"] = true;
    return std::optional<Json>(std::move(outcome));
  }
  return Refusal(Code::reconciliation_required,
                 "reconciliation_required: operation " + replacement.operation_id + " ended in " + intent->state,
                 Json{{"operation_id", replacement.operation_id},
                      {"state", intent->state},
                      {"reconcile_id", intent->reconcile_id}});
}

replace::Plan plan_of(Context& context, const Scope& scope, const ContentDigest& planned, const Observed& observed) {
  replace::Plan plan;
  plan.scope = scope.full();
  plan.path = scope.display();
  plan.planned = planned;
  plan.preimage = observed.facts;
  plan.preimage_links = observed.links;
  plan.temporary_name = replace::new_temporary_name();
  plan.displaced_to = [&context, scope](const os::Handle& object) -> std::optional<std::string> {
    auto elsewhere = opened_file_scope(context.folder, object);
    if (!elsewhere.ok() || *elsewhere == scope) return std::nullopt;
    return elsewhere->display();
  };
  return plan;
}

// Where no guard proved that nobody had the file open for writing, such a writer may have gone on until the exchange.
Result<Json> keep_late_bytes(Context& context, Transition& transition, const Scope& scope, const Binding& binding,
                             const replace::Plan& plan, const replace::Publication& done) {
  if (!done.exchanged.displaced || text_member(binding.tenancy.os_lock, "preexisting_writers") == "excluded")
    return Json();
  HF_TRY(const ContentDigest now, os::sha256_of_open(*done.exchanged.displaced));
  if (now.sha256 == plan.preimage.sha256) return Json();
  HF_TRY(std::string id, keep_foreign(context, transition.now, scope, *done.exchanged.displaced, "displaced_late_write",
                                      Json{{"generation", binding.tenancy.generation.text()}}));
  return Json(std::move(id));
}

Result<Json> settle_published(Context& context, Transition& transition, const Scope& scope, const Binding& binding,
                              const replace::Plan& plan, replace::Intent& intent, replace::Publication& done) {
  HF_TRY(const Json late, keep_late_bytes(context, transition, scope, binding, plan, done));
  HF_CHECK(binding.guard->drop_displaced(done.exchanged));
  HF_FAULT_POINT("write_after_displaced_dropped");
  evidence::Event event;
  event.kind = "write_published";
  event.id = evidence::new_event_id();
  event.scope = plan.scope;
  event.generation = binding.tenancy.generation;
  if (!binding.tenancy.event.empty()) event.parents.push_back(binding.tenancy.event);
  Json outcome =
      replace::success_document(plan, done.exchanged.published, intent.operation_id, binding.tenancy.generation.text());
  if (!binding.tenancy.observed.empty()) outcome["observed"] = binding.tenancy.observed;
  if (!late.is_null()) outcome["displaced_quarantine_id"] = late;
  event.facts = {{"command", intent.command}, {"outcome", outcome}};
  outcome["evidence"] = event.id;
  Tenancy written = binding.tenancy;
  written.post_sha256 = plan.planned.sha256;
  written.post_absent = false;
  written.last_operation_id = intent.operation_id;
  written.identity = binding.guard->identity();
  written.os_lock = binding.guard->enforcement().to_json();
  intent.state = "settled";
  intent.outcome = outcome;
  intent.event = event.id;
  authority::Batch batch;
  batch.updates.push_back(std::move(written));
  batch.events.push_back(std::move(event));
  batch.beside.push_back(replace::IntentJournal::staged(intent));
  HF_CHECK(context.store->commit(transition.held, transition.state, std::move(batch), transition.now));
  HF_FAULT_POINT("write_after_commit");
  HF_CHECK(replace::IntentJournal(*context.files).settle(intent));
  HF_FAULT_POINT("write_after_settled");
  return outcome;
}

Result<Json> settle_fault(Context& context, Transition& transition, const Scope& scope, const Binding& binding,
                          const replace::Plan& plan, replace::Intent& intent, replace::Publication& done) {
  // Bytes that cannot be kept (a link, a file that cannot be read, a full disk) stay where the exchange put them.
  Json displaced = Json::object();
  bool may_go = !done.foreign_displaced;
  if (done.foreign_displaced && done.exchanged.displaced) {
    auto kept = keep_foreign(context, transition.now, scope, *done.exchanged.displaced, "displaced_foreign",
                             Json{{"generation", binding.tenancy.generation.text()}});
    may_go = kept.ok();
    if (kept.ok())
      displaced["displaced_quarantine_id"] = *kept;
    else
      displaced["displaced_not_kept"] = kept.refusal().message();
  }
  if (may_go && done.exchanged.destination_existed) may_go = binding.guard->drop_displaced(done.exchanged).ok();
  if (!may_go && done.exchanged.destination_existed) displaced["displaced_at"] = done.exchanged.temporary_name;
  HF_TRY(RecordedFault recorded, record_fault(context, transition, intent, plan, *done.fault, std::move(displaced)));
  Refusal refusal(done.fault->code, std::string(facts_of(done.fault->code).name) + ": " + done.fault->error,
                  Json{{"scope", scope.full()}, {"reconcile", recorded.record}});
  refusal.set_evidence(text_member(recorded.record, "event"));
  return std::move(refusal).with_effect(done.fault->rename_completed ? Effect::applied : Effect::unknown);
}

Result<Json> publish_under(Context& context, Transition& transition, const Scope& scope, const Binding& binding,
                           const Replacement& replacement, guard::StagedFile& staged, const ContentDigest& planned,
                           const std::string& payload, Observed& observed) {
  const replace::Plan plan = plan_of(context, scope, planned, observed);
  replace::Intent intent;
  intent.operation_id = replacement.operation_id;
  intent.scope = plan.scope;
  intent.command = command_envelope(context, binding.tenancy, replacement.operation_id, replacement.family,
                                    replacement.precondition, payload);
  intent.planned_sha256 = planned.sha256;
  intent.planned_byte_count = planned.byte_count;
  intent.preimage = observed.facts;
  intent.staged = staged.identity();
  intent.temporary_name = plan.temporary_name;
  intent.at = format_wall(transition.now.wall_us);
  replace::IntentJournal journal(*context.files);
  HF_CHECK(journal.put(intent));
  HF_FAULT_POINT("write_after_intent");
  auto done = replace::publish(*binding.guard, staged, plan, observed.preimage ? &*observed.preimage : nullptr);
  if (!done.ok()) {
    intent.state = "not_published";
    if (auto settled = journal.put(intent); !settled.ok()) return std::move(settled).refusal();
    return std::move(done).refusal();
  }
  auto settled = done->fault ? settle_fault(context, transition, scope, binding, plan, intent, *done)
                             : settle_published(context, transition, scope, binding, plan, intent, *done);
  if (settled.ok() || done->fault) return settled;
  // Published, and not recorded: the next act on the scope settles the intent first.
  context.unsettled.insert(scope.full());
  return std::move(settled).refusal().with_effect(Effect::applied);
}

// Takes bytes and keeps none: for the digest of a payload that is not going to be written.
class Discarded : public guard::StagedFile {
 public:
  Result<void> write(std::string_view) override { return {}; }
  Result<ContentDigest> seal(const std::optional<guard::Metadata>&) override { return ContentDigest{}; }
  os::Identity identity() const override { return {}; }
};

// A repeated operation id is answered with its first outcome even where the tenancy has ended since (CONTRACT section
// 5, in its order); only the payload's digest tells whether it is the same command.
Result<Json> answer_refused(Context& context, const Replacement& replacement, const Scope& scope, Refusal refusal) {
  HF_TRY(const auto known, replace::IntentJournal(*context.files).find(replacement.operation_id));
  if (!known || replacement.family != "write") return refusal;
  Discarded discarded;
  HF_TRY(const std::string payload, replacement.produce(discarded, nullptr));
  HF_TRY(auto earlier, earlier_outcome(context, replacement, scope, payload, nullptr));
  if (earlier) return std::move(*earlier);
  return refusal;
}

}  // namespace

Result<Json> replace_guarded(Context& context, const Replacement& replacement) {
  Scope scope;
  std::optional<Binding> bound;
  std::optional<Refusal> refused;
  {
    HF_TRY(Transition transition, begin_transition_on(context, replacement.scope_text, replacement.current_folder));
    HF_TRY(scope, scope_of_lease(context, transition.state, replacement.scope_text, replacement.current_folder));
    HF_CHECK(look_before_acting(context, transition, scope));
    if (!replacement.expected_payload_sha256.empty()) {
      HF_TRY(auto earlier, earlier_outcome(context, replacement, scope, replacement.expected_payload_sha256,
                                           transition.state.find(scope)));
      if (earlier) return std::move(*earlier);
    }
    auto binding = require_write_binding(context, transition, replacement, scope);
    if (binding.ok())
      bound = std::move(*binding);
    else
      refused = std::move(binding).refusal();
  }
  // Outside the transition: the payload is still on its way, as slow as its sender.
  if (refused) return answer_refused(context, replacement, scope, std::move(*refused));
  HF_FAULT_POINT("write_before_staging");
  // A precondition that fails now may be that of a command which was applied already: its digest decides below.
  Replacement unconditional = replacement;
  HF_TRY(const auto known, replace::IntentJournal(*context.files).find(replacement.operation_id));
  if (known) unconditional.precondition.clear();
  HF_TRY(Observed observed, observe(context, *bound, unconditional, scope));
  HF_TRY(auto staged, bound->guard->stage());
  HF_TRY(const std::string payload, replacement.produce(*staged, observed.preimage ? &*observed.preimage : nullptr));
  HF_TRY(const ContentDigest planned, staged->seal(observed.metadata));
  if (replacement.family == "write" && planned.sha256 != payload) {
    return Refusal(Code::staging_failed, "staging_failed: the staged file does not hold the bytes that arrived",
                   Json{{"scope", scope.full()}});
  }
  HF_FAULT_POINT("write_after_staging");
  if (observed.preimage) {
    const ContentDigest before{observed.facts.sha256, "", observed.facts.byte_count};
    HF_TRY(const ContentDigest kept, context.vault->store(vault::Tier::primary, *observed.preimage, &before));
    if (kept.sha256 != observed.facts.sha256) return mismatch(scope, observed.facts.sha256, observed);
  }
  HF_TRY(Transition transition, begin_transition_on(context, replacement.scope_text, replacement.current_folder));
  HF_CHECK(look_before_acting(context, transition, scope));
  HF_TRY(auto earlier, earlier_outcome(context, replacement, scope, payload, transition.state.find(scope)));
  if (earlier) return std::move(*earlier);
  HF_TRY(const Binding now, require_write_binding(context, transition, replacement, scope));
  if (replacement.sender_is_gone && replacement.sender_is_gone()) {
    return Refusal(Code::content_unreadable, "the one who asked for the write is gone; nothing was published",
                   Json{{"scope", scope.full()}});
  }
  if (replacement.revalidate) HF_CHECK(replacement.revalidate());
  HF_CHECK(still_as_observed(context, *bound, now, replacement, scope, observed));
  const std::string current = observed.facts.exists ? observed.facts.sha256 : "absent";
  if (!replacement.precondition.empty() && replacement.precondition != current) {
    return mismatch(scope, replacement.precondition, observed);
  }
  return publish_under(context, transition, scope, now, replacement, *staged, planned, payload, observed);
}

}  // namespace holdfast::engine
