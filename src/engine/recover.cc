#include "engine/recover.h"

#include <set>

#include "base/fault_point.h"
#include "base/json.h"
#include "engine/due.h"
#include "engine/ending.h"
#include "engine/faults.h"
#include "engine/observing.h"
#include "engine/reconcile.h"
#include "os/unnamed_file.h"
#include "replace/classify.h"
#include "scope/resolve.h"

namespace holdfast::engine {
namespace {

struct Looked {
  replace::Found found;
  std::optional<PinnedPlace> place;
  std::optional<os::Handle> temporary;
  std::string temporary_sha256;
};

Looked look(Context& context, const Scope& scope, const replace::Intent& intent) {
  Looked looked;
  auto place = pin_place(context.folder, scope);
  if (!place.ok() || (place->facts && place->facts->kind != os::Kind::regular)) {
    looked.found.readable = false;
    return looked;
  }
  if (place->facts) {
    const auto digest = place->object ? os::sha256_of_open(*place->object)
                                      : Result<ContentDigest>(Refusal(Code::file_unreadable, "no permission"));
    looked.found.readable = digest.ok();
    looked.found.destination = place->facts->identity;
    if (digest.ok()) looked.found.destination_sha256 = digest->sha256;
  }
  if (os::name_exists(place->parent, intent.temporary_name)) {
    auto object = os::open_for_reading(place->parent, intent.temporary_name);
    if (object.ok()) {
      if (const auto facts = os::facts_of_open(*object); facts.ok()) looked.found.at_temporary = facts->identity;
      if (const auto digest = os::sha256_of_open(*object); digest.ok()) looked.temporary_sha256 = digest->sha256;
      looked.temporary = std::move(*object);
    }
  }
  looked.place = std::move(*place);
  return looked;
}

// A divert gives the preimage's bytes another object: what bears the temporary name is ours by identity or by content.
bool is_foreign_at_temporary(const replace::Intent& intent, const Looked& looked) {
  if (!looked.temporary || !looked.found.at_temporary) return false;
  const os::Identity& found = *looked.found.at_temporary;
  if (found == intent.staged || found == intent.preimage.identity) return false;
  return !intent.preimage.exists || looked.temporary_sha256 != intent.preimage.sha256;
}

// What bears the temporary name goes only once its bytes are in the vault: ours (T, or the preimage) to Primary,
// anything else to Amber with a quarantine record.
Result<Json> clear_temporary(Context& context, Transition& transition, const Scope& scope,
                             const replace::Intent& intent, Looked& looked) {
  if (!looked.temporary) return Json(nullptr);
  const os::Identity identity = looked.found.at_temporary.value_or(os::Identity());
  Json kept = nullptr;
  if (!is_foreign_at_temporary(intent, looked)) {
    if (!(identity == intent.staged)) {
      auto stored = context.vault->store(vault::Tier::primary, *looked.temporary);
      if (!stored.ok()) return std::move(stored).refusal();
    }
  } else {
    HF_TRY(kept, keep_foreign(context, transition.now, scope, *looked.temporary, "displaced_foreign",
                              Json{{"operation_id", intent.operation_id}}));
  }
  // Where the folder does not let it go, it is named instead of keeping everything else from being recovered.
  (void)os::remove_name(looked.place->parent, intent.temporary_name);
  return kept;
}

replace::Plan plan_from(const replace::Intent& intent, const Scope& scope) {
  replace::Plan plan;
  plan.scope = scope.full();
  plan.path = scope.display();
  plan.planned.sha256 = intent.planned_sha256;
  plan.planned.byte_count = intent.planned_byte_count;
  plan.preimage = intent.preimage;
  plan.temporary_name = intent.temporary_name;
  return plan;
}

// published_unverified: identity and content were just compared, so it is verified now, and closed.
Result<void> settle(Context& context, Transition& transition, const Scope& scope, replace::Intent& intent,
                    const Looked& looked) {
  const std::string generation = text_member(intent.command, "generation");
  Json outcome =
      replace::success_document(plan_from(intent, scope), *looked.found.destination, intent.operation_id, generation);
  // No guard stood by: what was compared is the object and its bytes.
  outcome["recovered"] = true;
  outcome["verification"] = "recovered";
  outcome["new_long_term_guard"] = nullptr;
  evidence::Event event;
  event.kind = "write_recovered";
  event.id = evidence::new_event_id();
  event.scope = scope.full();
  event.facts = {{"command", intent.command}, {"outcome", outcome}, {"verdict", "published_unverified"}};
  outcome["evidence"] = event.id;
  authority::Batch batch;
  const Tenancy* held = transition.state.find(scope);
  if (held != nullptr && held->generation.text() == generation) {
    Tenancy written = *held;
    if (!written.event.empty()) event.parents.push_back(written.event);
    written.post_sha256 = intent.planned_sha256;
    written.post_absent = false;
    written.last_operation_id = intent.operation_id;
    written.identity = *looked.found.destination;
    batch.updates.push_back(std::move(written));
  }
  intent.state = "settled";
  intent.outcome = outcome;
  intent.event = event.id;
  batch.events.push_back(std::move(event));
  HF_CHECK(context.store->commit(transition.held, transition.state, std::move(batch), transition.now));
  return replace::IntentJournal(*context.files).put(intent);
}

Result<Json> classify_one(Context& context, Transition& transition, replace::Intent& intent) {
  HF_TRY(const Scope scope, parse_canonical_scope(intent.scope));
  Looked looked = look(context, scope, intent);
  replace::Verdict verdict = replace::classify(intent, looked.found);
  if (verdict.kind == "published_unverified" && is_foreign_at_temporary(intent, looked)) {
    verdict = {"fault", Code::destination_unverifiable,
               "an object that was not the captured preimage bore the name at the rename; it was captured and kept",
               true};
  }
  Json report = {{"operation_id", intent.operation_id}, {"scope", intent.scope}, {"verdict", verdict.kind}};
  if (looked.place) {
    HF_TRY(const Json kept, clear_temporary(context, transition, scope, intent, looked));
    if (!kept.is_null()) report["quarantine_id"] = kept;
  }
  HF_FAULT_POINT("recover_before_settle");
  if (verdict.kind == "published_unverified") {
    HF_CHECK(settle(context, transition, scope, intent, looked));
    report["settled"] = true;
    return report;
  }
  if (verdict.kind == "not_published") {
    evidence::Event event;
    event.kind = "write_not_published";
    event.id = evidence::new_event_id();
    event.scope = intent.scope;
    event.facts = {{"command", intent.command}, {"verdict", verdict.kind}};
    intent.state = "not_published";
    intent.event = event.id;
    HF_TRY(const auto ids, record(context, transition, {std::move(event)}));
    HF_CHECK(replace::IntentJournal(*context.files).put(intent));
    return report;
  }
  const replace::Fault fault{verdict.fault, verdict.error, verdict.rename_completed, std::nullopt};
  HF_TRY(const RecordedFault recorded, record_fault(context, transition, intent, plan_from(intent, scope), fault));
  report["verdict"] = facts_of(verdict.fault).name;
  report["reconcile_id"] = recorded.id;
  return report;
}

// A grant that was announced in the evidence just before a crash, and that nobody has.
Result<void> note_grants_without_records(Context& context, Transition& transition) {
  std::map<std::string, std::string> last_grant;  // generation -> scope, of grants not yet accounted for
  HF_CHECK(context.chain->each([&](const Json& event) {
    const std::string kind = text_member(event, "kind");
    const std::string generation = text_member(event.value("facts", Json::object()), "generation");
    if (kind == "lease_acquired") last_grant[generation] = text_member(event, "scope");
    if (kind == "grant_not_completed" || kind == "tenancy_ended" || kind == "released_with_ungated_content") {
      last_grant.erase(generation);
    }
    return true;
  }));
  std::vector<evidence::Event> events;
  for (const auto& [generation, full] : last_grant) {
    const auto held = transition.state.held.find(full);
    if (held != transition.state.held.end() && held->second.generation.text() == generation) continue;
    HF_TRY(const Scope scope, parse_canonical_scope(full));
    HF_TRY(const auto last, context.store->last_ended(scope));
    if (last && last->tenancy.generation.text() == generation) continue;
    evidence::Event event;
    event.kind = "grant_not_completed";
    event.scope = full;
    event.facts = {{"generation", generation}, {"reason", "a crash came between the event and the record"}};
    events.push_back(std::move(event));
  }
  if (events.empty()) return {};
  HF_TRY(const auto ids, record(context, transition, std::move(events)));
  return {};
}

bool is_divert_leftover(const std::string& name) {
  return name.size() == 33 && name.starts_with(".holdfast-") && name.ends_with(".divert") &&
         name.find_first_not_of("0123456789abcdef", 10) == 26;
}

// A crash in the middle of a divert leaves the twin, or the old object with whatever its writer put there since, under
// a temporary name beside the leased file. Known bytes go; others go to Amber first.
Result<void> sweep_diverts(Context& context, Transition& transition, Json& recovered) {
  const std::map<std::string, Tenancy> held = transition.state.held;
  for (const auto& [full, tenancy] : held) {
    if (!tenancy.scope.is_file() || tenancy.scope.relative().empty()) continue;
    if (context.guard_table.find(tenancy)) continue;  // its own diverts are under way, and need their names
    auto place = pin_place(context.folder, tenancy.scope, true);
    if (!place.ok() || !place->parent) continue;
    const auto names = os::names_in(place->parent);
    if (!names.ok()) continue;
    for (const std::string& name : *names) {
      if (!is_divert_leftover(name)) continue;
      auto object = os::open_for_reading(place->parent, name);
      if (!object.ok()) continue;
      const auto read = os::sha256_of_open(*object);
      if (!read.ok()) continue;
      const ContentDigest& digest = *read;
      Json report = {{"scope", full}, {"name", name}, {"verdict", "divert_swept"}};
      if (digest.sha256 != tenancy.post_sha256 && digest.sha256 != tenancy.pre_write.sha256) {
        HF_TRY(report["quarantine_id"], keep_foreign(context, transition.now, tenancy.scope, *object, "diverted_write",
                                                     Json{{"generation", tenancy.generation.text()}}));
      }
      evidence::Event event;
      event.kind = "divert_swept";
      event.scope = full;
      event.facts = report;
      HF_TRY(const auto ids, record(context, transition, {std::move(event)}));
      if (auto removed = os::remove_name(place->parent, name); !removed.ok()) {
        report["left"] = removed.refusal().message();
      }
      recovered.push_back(std::move(report));
    }
  }
  return {};
}

}  // namespace

Result<void> settle_intents_of(Context& context, Transition& transition, const Scope& scope) {
  if (context.is_server() && !context.unsettled.contains(scope.full())) return {};
  replace::IntentJournal journal(*context.files);
  HF_TRY(const bool named, journal.has_open_names());
  if (!named) {
    HF_TRY(const auto every, journal.prepared());
    HF_CHECK(journal.give_open_names(every.found));
  }
  // The state `settled` is flushed with the next intent: a power cut may have brought `prepared` back.
  std::vector<std::string> last;
  if (const Tenancy* held = transition.state.find(scope)) last.push_back(held->last_operation_id);
  HF_TRY(const auto ended, context.store->last_ended(scope));
  if (ended) last.push_back(ended->tenancy.last_operation_id);
  HF_TRY(auto intents, journal.prepared_on(scope.full(), last));
  for (replace::Intent& intent : intents) {
    auto report = classify_one(context, transition, intent);
    if (!report.ok()) return std::move(report).refusal();
  }
  context.unsettled.erase(scope.full());
  return {};
}

Result<Json> recover(Context& context) {
  Json recovered = Json::array();
  Sights seen = look_at_what_is_due(context);
  HF_TRY(const Held outer, context.mutex->acquire());
  HF_TRY(const auto set_aside, context.store->set_aside_unreadable(outer));
  HF_TRY(Transition transition, begin_transition(context));
  transition.seen = std::move(seen);
  for (const std::string& name : set_aside) {
    evidence::Event event;
    event.kind = "record_set_aside";
    event.facts = {{"record", "locks/write/" + name}, {"reason", "not what Holdfast writes"}};
    HF_TRY(const auto ids, record(context, transition, {std::move(event)}));
    recovered.push_back({{"record", name}, {"verdict", "set_aside"}});
  }
  HF_TRY(const auto mended, context.chain->append({}, transition.now));  // sets a torn tail aside, if there is one
  HF_CHECK(note_grants_without_records(context, transition));
  replace::IntentJournal journal(*context.files);
  HF_TRY(auto intents, journal.prepared());
  HF_TRY(const bool named, journal.has_open_names());
  if (!named) HF_CHECK(journal.give_open_names(intents.found));
  HF_CHECK(context.records->give_open_names());
  for (const replace::Unreadable& unreadable : intents.unreadable) {
    recovered.push_back({{"intent", unreadable.name}, {"verdict", "unreadable"}, {"reason", unreadable.reason}});
  }
  for (replace::Intent& intent : intents.found) {
    auto report = classify_one(context, transition, intent);
    if (report.ok()) {
      context.unsettled.erase(intent.scope);
      recovered.push_back(std::move(*report));
      continue;
    }
    context.unsettled.insert(intent.scope);
    recovered.push_back({{"operation_id", intent.operation_id},
                         {"scope", intent.scope},
                         {"verdict", "not_classified"},
                         {"reason", report.refusal().message()}});
  }
  HF_CHECK(sweep_diverts(context, transition, recovered));
  // A bound lease whose client is proven gone is released in its place.
  std::vector<Tenancy> orphaned;
  for (const auto& [full, tenancy] : transition.state.held) {
    const bool ours = context.is_server() && tenancy.holder.session == context.self.session;
    if (tenancy.bound && !ours && client_liveness(tenancy) == os::Liveness::dead) { orphaned.push_back(tenancy); }
  }
  for (const Tenancy& tenancy : orphaned) {
    const auto looked = transition.seen.find(tenancy.scope.full());
    auto ended = end_tenancy_now(context, transition, tenancy, "client_death",
                                 looked == transition.seen.end() ? nullptr : &looked->second);
    if (!ended.ok()) return std::move(ended).refusal();
    recovered.push_back({{"scope", tenancy.scope.full()}, {"verdict", "released_for_dead_client"}});
  }
  HF_CHECK(end_what_is_due(context, transition, nullptr));
  HF_TRY(const Json waiting, reconcile_list(context));
  return Json{{"recovered", std::move(recovered)}, {"waiting", waiting["reconcile"]}};
}

}  // namespace holdfast::engine
