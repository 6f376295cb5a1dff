// acquire: guard, baseline and grant. Who may have a scope is decided in acquire_judgement.cc.
//
// Capture and guard come before the transition that grants: the guard first, so that what is captured is what the lease
// protects; then everything is judged again inside.
#include "engine/acquire.h"

#include <algorithm>

#include "base/fault_point.h"
#include "base/json.h"
#include "engine/acquire_judgement.h"
#include "engine/ending.h"
#include "engine/observing.h"
#include "scope/resolve.h"

namespace holdfast::engine {
namespace {

// One scope on its way to a grant.
struct Candidate {
  Scope scope;
  PreWrite pre_write;
  os::Identity identity;
  os::Identity parent_identity;
  guard::Enforcement enforcement;
  std::shared_ptr<guard::Guard> guard;
  Sight captured;
  bool capture_outside = false;
  bool ready = false;  // guard and baseline were taken
};

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

// What is there while the guard stands: the baseline, in the vault before the lease exists.
Result<void> capture_baseline(Context& context, Candidate& candidate) {
  candidate.ready = true;
  candidate.pre_write = {};
  candidate.captured = {};
  candidate.identity = {};
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
  if (place.facts->kind != os::Kind::regular) return {};
  if (!place.object) {
    return Refusal(Code::file_unreadable, candidate.scope.display() + " cannot be read, so no baseline can be captured",
                   Json{{"scope", candidate.scope.full()}});
  }
  HF_TRY(candidate.captured.digest, context.vault->store(vault::Tier::primary, *place.object));
  candidate.pre_write.fnv1a = candidate.captured.digest.fnv1a;
  candidate.pre_write.byte_count = candidate.captured.digest.byte_count;
  candidate.pre_write.sha256 = candidate.captured.digest.sha256;
  HF_FAULT_POINT("acquire_after_capture");
  return {};
}

Result<Tenancy> make_tenancy(Context& context, const Transition& transition, const AcquireRequest& request,
                             const Candidate& candidate, Generation generation, const Caller& caller) {
  Tenancy tenancy;
  tenancy.scope = candidate.scope;
  tenancy.owner = request.owner;
  tenancy.task_id = request.task_id;
  tenancy.generation = generation;
  tenancy.started_at = format_wall(transition.now.wall_us);
  tenancy.renew(transition.now, request.ttl_seconds);
  tenancy.holder = context.self;
  tenancy.bound = caller.bound;
  if (caller.bound) tenancy.client = caller.process;
  tenancy.control_epoch = transition.state.epoch.epoch;
  tenancy.os_lock = candidate.enforcement.to_json();
  tenancy.pre_write = candidate.pre_write;
  tenancy.identity = candidate.identity;
  tenancy.parent_identity = candidate.parent_identity;
  tenancy.event = evidence::new_event_id();
  HF_TRY(const auto last, context.store->last_ended(candidate.scope));
  const std::string superseded =
      last ? "the tenancy of generation " + last->tenancy.generation.text() + " ended by " + last->ended_by
           : "the first tenancy of this resource";
  tenancy.contract = {{"fenced_resource", candidate.scope.full()},
                      {"operation_family", request.family},
                      {"consequence_class", request.consequence},
                      {"owner", request.owner},
                      {"generation", generation.text()},
                      {"issuer", {{"workspace_id", context.workspace_id()}, {"authority", "local"}}},
                      {"issued_at", tenancy.started_at},
                      {"parent_generation", last ? last->tenancy.generation.text() : std::string("none")},
                      {"supersession_reason", request.reason.empty() ? superseded : request.reason},
                      {"transition_authority",
                       "the workspace's transition mutex, under control epoch " + tenancy.control_epoch.text()}};
  return tenancy;
}

evidence::Event grant_event(const Tenancy& tenancy, bool regrant) {
  evidence::Event event;
  event.kind = "lease_acquired";
  event.id = tenancy.event;
  event.scope = tenancy.scope.full();
  event.generation = tenancy.generation;
  event.epoch = tenancy.control_epoch;
  event.facts = {{"owner", tenancy.owner},
                 {"task_id", tenancy.task_id},
                 {"generation", tenancy.generation.text()},
                 {"granted", regrant ? "regrant" : "new"},
                 {"expires_at", tenancy.expires_at},
                 {"pre_write", tenancy.pre_write.to_json()},
                 {"os_lock", tenancy.os_lock},
                 {"contract", tenancy.contract}};
  return event;
}

Result<void> check_requirement(const AcquireRequest& request, const Candidate& candidate) {
  if (request.require.empty()) return {};
  const bool enough = request.require == "enforced"
                          ? candidate.enforcement.enforced
                          : candidate.enforcement.enforced && candidate.enforcement.mechanism == request.require;
  if (enough) return {};
  return Refusal(Code::enforcement_insufficient,
                 "enforcement_insufficient: " + candidate.scope.display() + " would be guarded by " +
                     candidate.enforcement.mechanism + ", not " + request.require,
                 Json{{"scope", candidate.scope.full()}, {"os_lock", candidate.enforcement.to_json()}});
}

os::Identity identity_now(Context& context, const Scope& scope) {
  if (!scope.is_file()) return {};
  auto place = pin_place(context.folder, scope, true);
  return place.ok() && place->facts ? place->facts->identity : os::Identity{};
}

struct Granted {
  std::vector<Tenancy> leases;
  bool any_new = false;
  bool any_regrant = false;
};

// A candidate that could not be prepared outside, or is no longer what was captured, is prepared under the transition.
// Of a re-grant the new guard stands before the old tenancy's end is checked and its guard drops, and the baseline is
// captured after that check: nothing ungated becomes a baseline unseen.
Result<void> prepare_under_transition(Context& context, Transition& transition, const AcquireRequest& request,
                                      Candidate& candidate, const Tenancy* superseded) {
  if (superseded != nullptr) {
    const Tenancy old = *superseded;
    HF_CHECK(take_guard(context, request, candidate));
    auto ended = end_tenancy_now(context, transition, old, "regrant");
    if (!ended.ok()) return std::move(ended).refusal();
    return capture_baseline(context, candidate);
  }
  const bool as_captured = candidate.ready && still_so(context, candidate.scope, candidate.captured);
  if (as_captured) return {};
  if (!candidate.ready) HF_CHECK(take_guard(context, request, candidate));
  return capture_baseline(context, candidate);
}

// Inside the granting transition: all scopes or none.
Result<Granted> grant(Context& context, Transition& transition, const AcquireRequest& request,
                      std::vector<Candidate>& candidates, const Caller& caller) {
  Granted granted;
  std::vector<std::pair<Candidate*, bool>> wanted;  // and whether it is a re-grant
  std::map<std::string, Tenancy> existing;
  for (Candidate& candidate : candidates) {
    HF_CHECK(end_what_is_due(context, transition, &candidate.scope));
    HF_TRY(const Verdict verdict,
           judge_acquisition(context, transition, request, candidate.scope, identity_now(context, candidate.scope)));
    if (verdict == Verdict::existing) {
      existing.emplace(candidate.scope.full(), *transition.state.find(candidate.scope));
    } else {
      wanted.emplace_back(&candidate, verdict == Verdict::regrant);
    }
  }
  for (auto& [candidate, regrant] : wanted) {
    HF_CHECK(prepare_under_transition(context, transition, request, *candidate,
                                      regrant ? transition.state.find(candidate->scope) : nullptr));
    HF_CHECK(check_requirement(request, *candidate));
    granted.any_regrant = granted.any_regrant || regrant;
  }
  authority::Batch batch;
  Counters issued = transition.state.counters;
  for (auto& [candidate, regrant] : wanted) {
    HF_TRY(const Generation generation, GenerationStore::next(issued));
    issued[candidate->scope.routing_key()] = generation.value;
    HF_TRY(Tenancy tenancy, make_tenancy(context, transition, request, *candidate, generation, caller));
    batch.events.push_back(grant_event(tenancy, regrant));
    batch.grants.push_back(std::move(tenancy));
  }
  HF_FAULT_POINT("acquire_before_commit");
  const std::vector<Tenancy> grants = batch.grants;
  if (!grants.empty()) {
    HF_CHECK(context.store->commit(transition.held, transition.state, std::move(batch), transition.now));
    granted.any_new = !granted.any_regrant;
  }
  HF_FAULT_POINT("acquire_after_commit");
  for (const Candidate& candidate : candidates) {
    const auto found = std::find_if(grants.begin(), grants.end(),
                                    [&](const Tenancy& tenancy) { return tenancy.scope == candidate.scope; });
    if (found == grants.end()) {
      granted.leases.push_back(existing.at(candidate.scope.full()));
      continue;
    }
    if (candidate.guard) context.guard_table.put(candidate.scope.full(), found->generation, candidate.guard);
    granted.leases.push_back(*found);
  }
  return granted;
}

Json answer_of(Context& context, const Granted& granted) {
  Json leases = Json::array();
  for (const Tenancy& tenancy : granted.leases) {
    Json record = tenancy.to_json();
    record["os_lock"] = current_enforcement(context, tenancy, holder_liveness(context, tenancy)).to_json();
    leases.push_back(std::move(record));
  }
  const char* how = granted.any_regrant ? "regrant" : granted.any_new ? "new" : "existing";
  return Json{{"leases", std::move(leases)}, {"granted", how}};
}

}  // namespace

Result<Json> acquire(Context& context, const Json& arguments, const Caller& caller) {
  HF_TRY(const AcquireRequest request, read_acquire_request(context, arguments));
  std::vector<Candidate> candidates(request.scopes.size());
  std::vector<std::string> names;
  for (const Scope& scope : request.scopes) names.push_back(scope.full());
  const auto turns = context.scope_turns.take(names);
  {
    // Ends what is due and refuses early, before anything is read or hashed; what is quick is granted at once.
    HF_TRY(Transition transition, begin_transition(context, authority::Need::generations));
    HF_CHECK(record_observations(context, transition));
    bool quick = true;
    for (std::size_t at = 0; at < candidates.size(); ++at) {
      candidates[at].scope = request.scopes[at];
      HF_CHECK(end_what_is_due(context, transition, &candidates[at].scope));
      HF_TRY(const Verdict verdict, judge_acquisition(context, transition, request, candidates[at].scope,
                                                      identity_now(context, candidates[at].scope)));
      candidates[at].capture_outside = verdict == Verdict::grant;
      quick = quick && is_quick_to_look_at(context, candidates[at].scope);
    }
    if (quick) {
      HF_TRY(const Granted granted, grant(context, transition, request, candidates, caller));
      return answer_of(context, granted);
    }
  }
  for (Candidate& candidate : candidates) {
    if (!candidate.capture_outside) continue;
    HF_CHECK(take_guard(context, request, candidate));
    HF_CHECK(capture_baseline(context, candidate));
  }
  HF_TRY(Transition transition, begin_transition(context, authority::Need::generations));
  HF_TRY(const Granted granted, grant(context, transition, request, candidates, caller));
  return answer_of(context, granted);
}

}  // namespace holdfast::engine
