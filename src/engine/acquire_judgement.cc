#include "engine/acquire_judgement.h"

#include <algorithm>

#include "engine/arguments.h"
#include "engine/exclusions.h"
#include "engine/session_binding.h"
#include "scope/resolve.h"

namespace holdfast::engine {
namespace {

constexpr std::uint64_t kWaitMaxSeconds = 7ULL * 24 * 3600;

bool is_folder(Context& context, const Scope& scope) {
  auto place = pin_place(context.folder, scope, true);
  return place.ok() && place->facts && place->facts->kind == os::Kind::folder;
}

// An exact file below one's own folder lease does not conflict with it.
bool is_own_nested_file(Context& context, const AcquireRequest& request, const Scope& scope, const Tenancy& held) {
  return scope.is_file() && is_below(scope, held.scope) && held.owner == request.owner &&
         held.task_id == request.task_id && !is_folder(context, scope);
}

Refusal conflict(Context& context, const Scope& scope, const std::vector<const Tenancy*>& holders,
                 const std::string& how, const Instant& now) {
  Json described = Json::array();
  for (const Tenancy* holder : holders) {
    Json one = describe_holder(*holder, now);
    one["liveness"] = os::name_of(holder_liveness(context, *holder));
    described.push_back(std::move(one));
  }
  const Tenancy& first = *holders.front();
  return Refusal(Code::lease_scope_conflict,
                 "lease_scope_conflict: " + scope.display() + how + "; held by " + first.owner + " for task " +
                     first.task_id + " under generation " + first.generation.text() + " since " + first.started_at +
                     " until " + first.expires_at,
                 Json{{"scope", scope.full()}, {"holders", std::move(described)}});
}

// The held object, if any, that another name of is asked for.
const Tenancy* alias_of(Context& context, const authority::Loaded& state, const Scope& scope,
                        const os::Identity& identity) {
  if (!identity.known() || !scope.is_file()) return nullptr;
  for (const auto& [full, held] : state.held) {
    if (!held.scope.is_file() || held.scope == scope || held.expired_at(context.clock.now())) continue;
    os::Identity at_scope = held.identity;
    if (const auto guard = context.guard_table.find(held)) at_scope = guard->identity();
    if (at_scope == identity) return &held;
    // The record's identity is that of the grant or the last write: look at what bears the held name now as well.
    auto place = pin_place(context.folder, held.scope, true);
    if (place.ok() && place->facts && place->facts->identity == identity) return &held;
  }
  return nullptr;
}

bool presents_keys_of(const AcquireRequest& request, const Tenancy& held) {
  return request.keys && request.keys->owner == held.owner && request.keys->task_id == held.task_id &&
         request.keys->generation == held.generation && request.keys->started_at == held.started_at;
}

Result<Verdict> judge_existing(Context& context, const AcquireRequest& request, const Tenancy& held) {
  const os::Liveness liveness = holder_liveness(context, held);
  if (!held.holder.is_server || liveness == os::Liveness::alive) {
    const bool client_gone = held.client && client_liveness(held) == os::Liveness::dead;
    if ((held.bound || request.bound) && !client_gone && !presents_keys_of(request, held)) {
      return conflict(context, held.scope, {&held}, " is bound to another process of yours", context.clock.now());
    }
    return request.fresh || client_gone ? Verdict::regrant : Verdict::existing;
  }
  Json details = {{"scope", held.scope.full()},
                  {"holder", describe_holder(held, context.clock.now())},
                  {"liveness", os::name_of(liveness)},
                  {"enforced_at_grant", held.enforced_at_grant}};
  if (liveness == os::Liveness::dead) {
    const bool is_bound_session =
        !held.scope.is_file() && held.identity.known() && held.identity == database_identity(context, held.scope);
    const bool proven = held.enforced_at_grant || is_bound_session || presents_keys_of(request, held);
    if (proven) return Verdict::regrant;
    return Refusal(Code::dead_holder_not_proven,
                   "dead_holder_not_proven: the server of " + held.scope.display() +
                       " is gone, but the tenancy was not enforced when it was granted",
                   std::move(details));
  }
  return Refusal(Code::dead_holder_not_proven,
                 "dead_holder_not_proven: whether the server of " + held.scope.display() + " lives cannot be told",
                 std::move(details));
}

}  // namespace

namespace {

os::Identity identity_at(Context& context, const Scope& scope) {
  if (!scope.is_file()) return {};
  auto place = pin_place(context.folder, scope, true);
  return place.ok() && place->facts ? place->facts->identity : os::Identity{};
}

// All or none is no way around the conflict rules: what two requests may not hold, one may not either.
Result<void> refuse_rivals_in_one_request(Context& context, const AcquireRequest& request) {
  SessionBindings bindings(context);
  for (std::size_t at = 0; at < request.scopes.size(); ++at) {
    const Scope& scope = request.scopes[at];
    const os::Identity identity = identity_at(context, scope);
    for (std::size_t earlier = 0; earlier < at; ++earlier) {
      const Scope& other = request.scopes[earlier];
      const bool nested_file = scope.is_file() && is_below(scope, other) && !is_folder(context, scope);
      const bool alias = identity.known() && identity == identity_at(context, other);
      HF_TRY(const bool bound, bindings.bound(scope, other));
      if (!alias && !bound && (nested_file || !overlaps(scope, other))) continue;
      return Refusal(Code::lease_scope_conflict,
                     "lease_scope_conflict: " + scope.display() + " and " + other.display() +
                         (alias   ? " are two names of one object"
                          : bound ? " are a session and what is behind it"
                                  : " overlap") +
                         ", in one request",
                     Json{{"scope", scope.full()}, {"holders", Json::array()}, {"with", other.full()}});
    }
  }
  return {};
}

}  // namespace

Result<AcquireRequest> read_acquire_request(Context& context, const Json& json) {
  const Arguments arguments(json);
  AcquireRequest request;
  HF_TRY(request.owner, arguments.text("owner"));
  HF_TRY(request.task_id, arguments.text("task"));
  HF_TRY(const auto ttl, arguments.optional_text("ttl"));
  if (ttl) { HF_TRY(request.ttl_seconds, parse_ttl(*ttl)); }
  HF_TRY(request.fresh, arguments.flag("fresh"));
  HF_TRY(request.no_guard, arguments.flag("no_guard"));
  HF_TRY(request.confined, arguments.flag("confined"));
  HF_TRY(const auto require, arguments.optional_text("require"));
  request.require = require.value_or("");
  HF_TRY(const auto reason, arguments.optional_text("reason"));
  request.reason = reason.value_or("");
  HF_TRY(const auto family, arguments.optional_text("family"));
  request.family = family.value_or("write");
  HF_TRY(const auto consequence, arguments.optional_text("consequence"));
  request.consequence = consequence.value_or("reversible_by_vault");
  HF_TRY(const auto wait, arguments.number("wait_seconds"));
  request.wait_seconds = wait.value_or(0);
  if (request.wait_seconds > kWaitMaxSeconds) return usage("wait_seconds is more than a week");
  if (json.contains("keys") && json["keys"].is_object()) {
    Json record = json["keys"];
    if (record.contains("task_id")) record["task"] = record["task_id"];
    HF_TRY(request.keys, Arguments(record).keys());
  }
  HF_TRY(const auto texts, arguments.scopes());
  HF_TRY(const std::string cwd, arguments.current_folder());
  for (const std::string& text : texts) {
    HF_TRY(Scope scope, resolve_scope(context.folder, text, cwd));
    if (std::find(request.scopes.begin(), request.scopes.end(), scope) == request.scopes.end()) {
      request.scopes.push_back(std::move(scope));
    }
  }
  std::sort(request.scopes.begin(), request.scopes.end(),
            [](const Scope& one, const Scope& other) { return one.full() < other.full(); });
  HF_CHECK(refuse_rivals_in_one_request(context, request));
  return request;
}

Result<void> refuse_overtaking(Context& context, const authority::Loaded& state, const AcquireRequest& request,
                               const Scope& scope) {
  const std::size_t before = context.waiting.before(request.place, with_files_behind(context, {scope}));
  if (before == 0) return {};
  for (const auto& [full, held] : state.held) {
    if (is_below(scope, held.scope) && held.owner == request.owner && held.task_id == request.task_id) return {};
  }
  return Refusal(Code::lease_scope_conflict,
                 "lease_scope_conflict: " + scope.display() + " is free, and " + std::to_string(before) +
                     (before == 1 ? " who came earlier waits for it" : " who came earlier wait for it"),
                 Json{{"scope", scope.full()}, {"holders", Json::array()}, {"waiting", before}});
}

Result<Verdict> judge_acquisition(Context& context, Transition& transition, const AcquireRequest& request,
                                  const Scope& scope, const os::Identity& identity) {
  const authority::Loaded& state = transition.state;
  if (state.epoch.break_glass) {
    return Refusal(Code::break_glass_engaged, "break_glass_engaged: nothing is acquired (" + state.epoch.reason + ")",
                   Json{{"reason", state.epoch.reason},
                        {"since", state.epoch.changed_at},
                        {"control_epoch", state.epoch.epoch.text()}});
  }
  HF_CHECK(check_exclusions(context, scope));
  std::vector<const Tenancy*> holders;
  SessionBindings bindings(context);
  for (const auto& [full, held] : state.held) {
    HF_TRY(const bool bound, bindings.bound(scope, held.scope));
    if (held.scope == scope || (!bound && !overlaps(scope, held.scope))) continue;
    if (!is_own_nested_file(context, request, scope, held)) holders.push_back(&held);
  }
  if (!holders.empty()) {
    return conflict(context, scope, holders, " overlaps " + holders.front()->scope.display(), transition.now);
  }
  if (const Tenancy* alias = alias_of(context, state, scope, identity); alias != nullptr) {
    return conflict(context, scope, {alias}, " is another name of " + alias->scope.display(), transition.now);
  }
  const Tenancy* held = state.find(scope);
  if (held == nullptr) return Verdict::grant;
  if (held->owner != request.owner) return conflict(context, scope, {held}, " is taken", transition.now);
  if (held->task_id != request.task_id) {
    return Refusal(Code::lease_task_mismatch,
                   "lease_task_mismatch: " + held->owner + " holds " + scope.display() + " for task " + held->task_id +
                       ", not " + request.task_id,
                   Json{{"scope", scope.full()}, {"holder", describe_holder(*held, transition.now)}});
  }
  return judge_existing(context, request, *held);
}

}  // namespace holdfast::engine
