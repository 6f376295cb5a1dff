// acquire: the grant. Who may have a scope is decided in acquire_judgement.cc, guard and baseline are taken in
// acquire_preparation.cc, before the transition that grants; then everything is judged again inside.
#include "engine/acquire.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/fault_point.h"
#include "base/json.h"
#include "engine/acquire_judgement.h"
#include "engine/acquire_preparation.h"
#include "engine/deliveries.h"
#include "engine/due.h"
#include "engine/ending.h"
#include "engine/observing.h"
#include "engine/session_binding.h"
#include "scope/resolve.h"

namespace holdfast::engine {
namespace {

// `superseded`: of a re-grant, the tenancy that ends in the same commit.
Result<Tenancy> make_tenancy(Context& context, const Transition& transition, const AcquireRequest& request,
                             const Candidate& candidate, Generation generation, const Caller& caller,
                             const Tenancy* superseded) {
  Tenancy tenancy;
  tenancy.scope = candidate.scope;
  tenancy.owner = request.owner;
  tenancy.task_id = request.task_id;
  tenancy.generation = generation;
  tenancy.started_at = format_wall(transition.now.wall_us);
  tenancy.renew(transition.now, request.ttl_seconds);
  tenancy.holder = context.self;
  tenancy.bound = caller.bound;
  tenancy.confined = request.confined && caller.bound;
  if (caller.bound || caller.is_bridge) tenancy.client = caller.process;
  tenancy.control_epoch = transition.state.epoch.epoch;
  tenancy.os_lock = candidate.enforcement.to_json();
  tenancy.enforced_at_grant = candidate.enforcement.enforced;
  tenancy.pre_write = candidate.pre_write;
  tenancy.identity = candidate.identity;
  tenancy.parent_identity = candidate.parent_identity;
  tenancy.event = evidence::new_event_id();
  HF_TRY(const auto last, context.store->last_ended(candidate.scope));
  const std::string parent = superseded != nullptr ? superseded->generation.text()
                             : last                ? last->tenancy.generation.text()
                                                   : "none";
  const std::string reason = superseded != nullptr ? "the tenancy of generation " + parent + " ended by regrant"
                             : last ? "the tenancy of generation " + parent + " ended by " + last->ended_by
                                    : "the first tenancy of this resource";
  tenancy.contract = {{"fenced_resource", candidate.scope.full()},
                      {"operation_family", request.family},
                      {"consequence_class", request.consequence},
                      {"owner", request.owner},
                      {"generation", generation.text()},
                      {"issuer", {{"workspace_id", context.workspace_id()}, {"authority", "local"}}},
                      {"issued_at", tenancy.started_at},
                      {"parent_generation", parent},
                      {"supersession_reason", request.reason.empty() ? reason : request.reason},
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

constexpr std::size_t kQuickScopes = 16;  // more are captured outside the transition, however small they are

struct Granted {
  std::vector<Tenancy> leases;
  bool any_new = false;
  bool any_regrant = false;
  Json scopes = Json::array();  // those that were granted now; the others were held already
};

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
    if (verdict == Verdict::grant) HF_CHECK(refuse_overtaking(context, transition.state, request, candidate.scope));
    if (verdict == Verdict::existing) {
      existing.emplace(candidate.scope.full(), *transition.state.find(candidate.scope));
    } else {
      wanted.emplace_back(&candidate, verdict == Verdict::regrant);
    }
  }
  for (auto& [candidate, regrant] : wanted) {
    HF_CHECK(regrant ? guard_regrant(context, request, *candidate, *transition.state.find(candidate->scope))
                     : prepare_under_transition(context, request, *candidate));
    HF_CHECK(check_requirement(request, *candidate));
    granted.any_regrant = granted.any_regrant || regrant;
  }
  authority::Batch batch;
  // Of a re-grant the end is in the same commit as the grant: both or none. Its check comes before the new baseline is
  // captured, so that nothing ungated becomes one unseen.
  std::vector<PreparedEnd> superseded;
  for (auto& [candidate, regrant] : wanted) {
    if (!regrant) continue;
    HF_TRY(PreparedEnd end, prepare_end_now(context, transition, *transition.state.find(candidate->scope), "regrant",
                                            &candidate->ending));
    HF_CHECK(capture_again(context, *candidate));
    batch.ends.push_back(end.ended);
    for (const evidence::Event& event : end.events) batch.events.push_back(event);
    superseded.push_back(std::move(end));
  }
  Counters issued = transition.state.counters;
  for (auto& [candidate, regrant] : wanted) {
    HF_TRY(const Generation generation, GenerationStore::next(issued));
    issued[candidate->scope.routing_key()] = generation.value;
    const Tenancy* old = regrant ? transition.state.find(candidate->scope) : nullptr;
    HF_TRY(Tenancy tenancy, make_tenancy(context, transition, request, *candidate, generation, caller, old));
    batch.events.push_back(grant_event(tenancy, regrant));
    batch.grants.push_back(std::move(tenancy));
  }
  HF_FAULT_POINT("acquire_before_commit");
  const std::vector<Tenancy> grants = batch.grants;
  if (!grants.empty()) {
    HF_CHECK(context.store->commit(transition.held, transition.state, std::move(batch), transition.now));
    granted.any_new = !granted.any_regrant;
  }
  for (const PreparedEnd& end : superseded) (void)finish_end(context, end, transition.now);
  HF_FAULT_POINT("acquire_after_commit");
  for (const Candidate& candidate : candidates) {
    const auto found = std::find_if(grants.begin(), grants.end(),
                                    [&](const Tenancy& tenancy) { return tenancy.scope == candidate.scope; });
    if (found == grants.end()) {
      granted.leases.push_back(existing.at(candidate.scope.full()));
      continue;
    }
    if (candidate.guard) context.guard_table.put(candidate.scope.full(), found->generation, candidate.guard);
    granted.scopes.push_back(candidate.scope.full());
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
  return Json{{"leases", std::move(leases)}, {"granted", how}, {"granted_scopes", granted.scopes}};
}

// Refuses early, before anything is read or hashed; grants at once what is quick. nullopt: it has to be prepared first.
Result<std::optional<Granted>> judge_early(Context& context, Transition& transition, const AcquireRequest& request,
                                           std::vector<Candidate>& candidates, const Caller& caller) {
  HF_CHECK(record_observations(context, transition));
  bool quick = candidates.size() <= kQuickScopes;
  for (std::size_t at = 0; at < candidates.size(); ++at) {
    Candidate& candidate = candidates[at];
    candidate.scope = request.scopes[at];
    HF_CHECK(end_what_is_due(context, transition, &candidate.scope));
    HF_TRY(candidate.verdict,
           judge_acquisition(context, transition, request, candidate.scope, identity_now(context, candidate.scope)));
    if (candidate.verdict == Verdict::grant) {
      HF_CHECK(refuse_overtaking(context, transition.state, request, candidate.scope));
    }
    if (candidate.verdict == Verdict::regrant) candidate.superseding = *transition.state.find(candidate.scope);
    quick = quick && is_quick_to_look_at(context, candidate.scope);
  }
  if (!quick) return std::optional<Granted>();
  HF_TRY(Granted granted, grant(context, transition, request, candidates, caller));
  return std::optional(std::move(granted));
}

Result<Json> acquire_now(Context& context, const AcquireRequest& request, const Caller& caller) {
  std::vector<Candidate> candidates(request.scopes.size());
  std::vector<std::string> names;
  for (const Scope& scope : request.scopes) names.push_back(scope.full());
  const auto turns = context.scope_turns.take(names);
  const auto begin = [&] {
    return begin_transition_on(
        context, [&](const Transition&) { return request.scopes; }, authority::Need::generations);
  };
  {
    HF_TRY(Transition transition, begin());
    HF_TRY(const auto granted, judge_early(context, transition, request, candidates, caller));
    if (granted) return answer_of(context, *granted);
  }
  for (Candidate& candidate : candidates) {
    if (candidate.verdict != Verdict::existing) HF_CHECK(prepare_outside(context, request, candidate));
  }
  HF_TRY(Transition transition, begin());
  HF_TRY(const Granted granted, grant(context, transition, request, candidates, caller));
  return answer_of(context, granted);
}

// A place in the queue for as long as it lives.
class Turn {
 public:
  Turn(WaitQueue& queue, const std::vector<Scope>& scopes, std::uint64_t number)
      : queue_(queue), place_(queue.enter(scopes, number)) {}
  ~Turn() { queue_.leave(place_, granted_); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  const WaitQueue::Place& place() const { return place_; }
  void granted() { granted_ = true; }

 private:
  WaitQueue& queue_;
  WaitQueue::Place place_;
  bool granted_ = false;
};

// Held under another name: its end frees no scope that overlaps, so it has to be asked for again.
bool blocked_by_alias(const Json& holders, const std::vector<Scope>& scopes) {
  return std::any_of(holders.begin(), holders.end(), [&](const Json& holder) {
    const auto held = parse_canonical_scope(text_member(holder, "scope"));
    return held.ok() &&
           std::none_of(scopes.begin(), scopes.end(), [&](const Scope& one) { return overlaps(one, *held); });
  });
}

// One try, then one for each time that it is this one's turn, and a last one at the end of the time.
Result<Json> acquire_in_turn(Context& context, AcquireRequest request, const Caller& caller,
                             const ProgressReport& progress) {
  using std::chrono::steady_clock;
  static constexpr std::int64_t kLookMs = 1000;
  const auto began = steady_clock::now();
  const auto give_up = began + std::chrono::seconds(request.wait_seconds);
  const std::vector<Scope> waited_for = with_files_behind(context, request.scopes);
  Turn turn(context.waiting, waited_for, caller.queue_place);
  request.place = turn.place();
  Json told;
  Json holders = Json::array();
  bool by_alias = false;
  for (bool last = false;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(give_up - steady_clock::now()).count();
    const bool may_try =
        context.waiting.wait(turn.place(), static_cast<int>(std::clamp<std::int64_t>(left, 0, kLookMs)));
    if (context.waiting.is_suspended()) {
      return Refusal(Code::handoff_in_progress, "another image takes over, and the place in the queue goes on",
                     Json{{"queue_place", turn.place()->number}});
    }
    if (context.waiting.is_closed()) return Refusal(Code::server_unreachable, "the server is ending");
    if (caller.is_gone && caller.is_gone()) return Refusal(Code::server_answer_lost, "the one who waited is gone");
    last = steady_clock::now() >= give_up;
    if (may_try || last || by_alias) {
      auto answer = acquire_now(context, request, caller);
      if (answer.ok()) turn.granted();
      if (answer.ok() || answer.refusal().code() != Code::lease_scope_conflict) return answer;
      if (last) return std::move(answer).refusal().with("waited_seconds", request.wait_seconds);
      holders = answer.refusal().details().value("holders", Json::array());
      by_alias = blocked_by_alias(holders, request.scopes);
    }
    Json now = {{"place", context.waiting.before(turn.place(), waited_for) + 1}, {"holders", holders}};
    if (progress && now != told) progress(Json{{"waiting", now}});
    told = std::move(now);
  }
}

}  // namespace

Result<Json> acquire(Context& context, const Json& arguments, const Caller& caller, const ProgressReport& progress) {
  HF_TRY(AcquireRequest request, read_acquire_request(context, arguments));
  request.bound = caller.bound;
  const bool in_turn = request.wait_seconds > 0 && context.is_server();
  HF_TRY(Json answer, in_turn ? acquire_in_turn(context, std::move(request), caller, progress)
                              : acquire_now(context, request, caller));
  // Before the new owner is ready: whatever the old one sent is refused from here on.
  Json readied = ready_receivers(context, answer["leases"]);
  if (!readied.empty()) answer["receivers"] = std::move(readied);
  return answer;
}

}  // namespace holdfast::engine
