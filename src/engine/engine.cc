#include "engine/engine.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/base64.h"
#include "base/json.h"
#include "engine/acquire.h"
#include "engine/acts.h"
#include "engine/arguments.h"
#include "engine/command.h"
#include "engine/deliveries.h"
#include "engine/due.h"
#include "engine/ending.h"
#include "engine/evidence_export.h"
#include "engine/handoffs.h"
#include "engine/handover.h"
#include "engine/heartbeat.h"
#include "engine/listing.h"
#include "engine/observing.h"
#include "engine/operator.h"
#include "engine/prune.h"
#include "engine/reconcile.h"
#include "engine/recover.h"
#include "engine/tasks.h"
#include "engine/transfer.h"
#include "engine/workspace.h"
#include "engine/write.h"
#include "scope/resolve.h"

namespace holdfast {

struct Engine::State {
  std::unique_ptr<engine::Context> context;
};

namespace {

using engine::Context;

constexpr int kTickMs = 100;
constexpr std::uint64_t kInlineReadMax = 64ULL << 20U;

struct Call {
  Context& context;
  const Json& arguments;
  const Caller& caller;
  ContentSource* content;
  const ProgressReport& progress;
};

struct Verb {
  bool mutating;
  Result<Json> (*run)(const Call&);
};

Result<Json> read_inline(const Call& call) {
  HF_TRY(Engine::Bytes bytes, engine::read_bytes(call.context, call.arguments));
  const engine::Arguments arguments(call.arguments);
  HF_TRY(const auto offset, arguments.number("offset"));
  HF_TRY(const auto limit, arguments.number("limit"));
  std::string content;
  if (!offset && !limit) {
    HF_TRY(content, os::read_whole(bytes.object, kInlineReadMax));
  } else {
    content.resize(std::min(limit.value_or(kInlineReadMax), kInlineReadMax));
    HF_TRY(const std::size_t count, os::read_at(bytes.object, offset.value_or(0), content.data(), content.size()));
    content.resize(count);
    bytes.document["offset"] = offset.value_or(0);
  }
  bytes.document["content_base64"] = base64_encode(content);
  return std::move(bytes.document);
}

// The one table of verbs (docs/formats/socket.md).
const std::map<std::string, Verb>& verbs() {
  static const std::map<std::string, Verb> table = {
      {"scope", {false, [](const Call& c) { return engine::scope_document(c.context, c.arguments); }}},
      {"acquire", {true, [](const Call& c) { return engine::acquire(c.context, c.arguments, c.caller, c.progress); }}},
      {"command_begin", {true, [](const Call& c) { return engine::command_begin(c.context, c.arguments, c.caller); }}},
      {"command_end", {true, [](const Call& c) { return engine::command_end(c.context, c.arguments, c.caller); }}},
      {"task_set", {true, [](const Call& c) { return engine::task_set(c.context, c.arguments); }}},
      {"task_show", {false, [](const Call& c) { return engine::task_show(c.context, c.arguments); }}},
      {"receiver_add", {true, [](const Call& c) { return engine::receiver_add(c.context, c.arguments); }}},
      {"receiver_reseed", {true, [](const Call& c) { return engine::receiver_reseed(c.context, c.arguments); }}},
      {"receiver_settle", {true, [](const Call& c) { return engine::receiver_settle(c.context, c.arguments); }}},
      {"command_issue", {true, [](const Call& c) { return engine::command_issue(c.context, c.arguments); }}},
      {"delivery_end", {true, [](const Call& c) { return engine::delivery_end(c.context, c.arguments); }}},
      {"act_list", {false, [](const Call& c) { return engine::act_list(c.context); }}},
      {"deliver", {true, [](const Call& c) { return engine::deliver(c.context, c.arguments); }}},
      {"act_prepare", {true, [](const Call& c) { return engine::act_prepare(c.context, c.arguments); }}},
      {"act_approve", {true, [](const Call& c) { return engine::act_approve(c.context, c.arguments); }}},
      {"act_commit", {true, [](const Call& c) { return engine::act_commit(c.context, c.arguments); }}},
      {"act_show", {false, [](const Call& c) { return engine::act_show(c.context, c.arguments); }}},
      {"result_grant", {true, [](const Call& c) { return engine::result_grant(c.context, c.arguments); }}},
      {"result_get", {true, [](const Call& c) { return engine::result_get(c.context, c.arguments); }}},
      {"handoff_open", {true, [](const Call& c) { return engine::handoff_open(c.context, c.arguments); }}},
      {"handoff_status", {true, [](const Call& c) { return engine::handoff_status(c.context, c.arguments); }}},
      {"handoff_close", {true, [](const Call& c) { return engine::handoff_close(c.context, c.arguments); }}},
      {"vault_prune", {true, [](const Call& c) { return engine::vault_prune(c.context, c.arguments); }}},
      {"bind", {true, [](const Call& c) { return engine::bind(c.context, c.arguments, c.caller); }}},
      {"heartbeat", {true, [](const Call& c) { return engine::heartbeat(c.context, c.arguments, c.caller); }}},
      {"release", {true, [](const Call& c) { return engine::release(c.context, c.arguments, c.caller); }}},
      {"write", {true, [](const Call& c) { return engine::write(c.context, c.arguments, c.content, c.progress); }}},
      {"edit", {true, [](const Call& c) { return engine::edit(c.context, c.arguments); }}},
      {"recover", {true, [](const Call& c) { return engine::recover(c.context); }}},
      {"reconcile_resolve", {true, [](const Call& c) { return engine::reconcile_resolve(c.context, c.arguments); }}},
      {"epoch_advance",
       {true, [](const Call& c) { return engine::epoch_change(c.context, c.arguments, "epoch_advance"); }}},
      {"epoch_engage",
       {true, [](const Call& c) { return engine::epoch_change(c.context, c.arguments, "epoch_engage"); }}},
      {"epoch_disengage",
       {true, [](const Call& c) { return engine::epoch_change(c.context, c.arguments, "epoch_disengage"); }}},
      {"generations_repair", {true, [](const Call& c) { return engine::generations_repair(c.context, c.arguments); }}},
      {"leases", {false, [](const Call& c) { return engine::leases(c.context); }}},
      {"status", {false, [](const Call& c) { return engine::status(c.context); }}},
      {"read", {false, read_inline}},
      {"reconcile_list", {false, [](const Call& c) { return engine::reconcile_list(c.context); }}},
      {"reconcile_show", {false, [](const Call& c) { return engine::reconcile_show(c.context, c.arguments); }}},
      {"quarantine_list", {false, [](const Call& c) { return engine::quarantine_list(c.context); }}},
      {"quarantine_show", {false, [](const Call& c) { return engine::quarantine_show(c.context, c.arguments); }}},
      {"generations_show", {false, [](const Call& c) { return engine::generations_show(c.context); }}},
      {"generations_verify", {false, [](const Call& c) { return engine::generations_verify(c.context); }}},
      {"epoch_show", {false, [](const Call& c) { return engine::epoch_show(c.context); }}},
      {"evidence_log", {false, [](const Call& c) { return engine::evidence_log(c.context, c.arguments); }}},
      {"evidence_head", {false, [](const Call& c) { return engine::evidence_head(c.context); }}},
      {"evidence_show", {false, [](const Call& c) { return engine::evidence_show(c.context, c.arguments); }}},
      {"evidence_verify", {false, [](const Call& c) { return engine::evidence_verify(c.context); }}},
      {"evidence_export", {false, [](const Call& c) { return engine::evidence_export(c.context, c.arguments); }}},
      {"receiver_list", {false, [](const Call& c) { return engine::receiver_list(c.context); }}},
  };
  return table;
}

// A refusal is an outcome and goes into the evidence, but where it is only about the request's form, where it has its
// own event, or where the evidence itself could not be written.
bool is_recorded(Code code) {
  static constexpr std::array kNot = {Code::usage,
                                      Code::request_malformed,
                                      Code::number_invalid,
                                      Code::not_found,
                                      Code::lease_ttl_invalid,
                                      Code::lease_transition_busy,
                                      Code::state_persist_failed,
                                      Code::generation_persist_failed,
                                      Code::workspace_insecure,
                                      Code::state_unreadable,
                                      Code::control_epoch_rolled_back,
                                      Code::content_unreadable,
                                      Code::handoff_in_progress,
                                      Code::workspace_permission_denied};
  const std::string_view name = facts_of(code).name;
  return !name.starts_with("scope_") && std::find(kNot.begin(), kNot.end(), code) == kNot.end();
}

// Whoever polls for a held scope is refused many times by the same tenancy: that is one outcome, recorded once.
void record_refusal(Context& context, const std::string& verb, const Json& arguments, const Caller& caller,
                    Refusal& refusal) {
  if (!is_recorded(refusal.code()) || !refusal.evidence().empty()) return;
  auto held = context.mutex->acquire();
  if (!held.ok()) return;
  evidence::Event event;
  event.kind = "refused";
  const Json scope = refusal.details().value("scope", Json());
  if (refusal.code() == Code::lease_scope_conflict && context.asked_before(refusal.details(), arguments)) return;
  if (scope.is_string()) event.scope = scope.get<std::string>();
  Json presented = Json::object();
  for (const char* key : {"owner", "task", "generation", "started_at", "operation_id", "preimage_sha256", "reason"}) {
    if (arguments.contains(key)) presented[key] = arguments[key];
  }
  event.facts = {{"verb", verb},
                 {"code", refusal.code_name()},
                 {"message", refusal.message()},
                 {"effect", name_of(refusal.effect())},
                 {"presented", std::move(presented)},
                 {"details", refusal.details()},
                 {"caller_pid", caller.process.pid}};
  const auto ids = context.chain->append({std::move(event)}, context.clock.now());
  if (ids.ok()) refusal.set_evidence(ids->front());
}

}  // namespace

Engine::Engine(std::unique_ptr<State> state) : state_(std::move(state)) {}
Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::open(const std::string& root, EngineOptions options) {
  auto state = std::make_unique<State>();
  HF_TRY(state->context, engine::open_context(root, std::move(options)));
  return std::unique_ptr<Engine>(new Engine(std::move(state)));
}

Result<Json> Engine::initialise(const std::string& root, const Json& arguments) {
  return engine::initialise_workspace(root, arguments);
}

bool Engine::is_mutating(const std::string& verb) {
  const auto found = verbs().find(verb);
  return found != verbs().end() && found->second.mutating;
}

bool Engine::knows(const std::string& verb) { return verbs().contains(verb); }

Result<Json> Engine::perform(const Json& request, const Caller& caller, ContentSource* content,
                             const ProgressReport& progress) {
  Context& context = *state_->context;
  const std::string verb = text_member(request, "verb");
  const Json arguments = request.is_object() ? request.value("arguments", Json::object()) : Json();
  const auto found = verbs().find(verb);
  if (found == verbs().end() || !arguments.is_object()) {
    return Refusal(Code::request_malformed, "request_malformed: no verb " + printable(verb));
  }
  if (found->second.mutating && context.options.mode == EngineMode::observer) {
    return Refusal(Code::request_malformed, "request_malformed: an observer changes nothing");
  }
  auto answer = found->second.run(Call{context, arguments, caller, content, progress});
  if (!answer.ok() && found->second.mutating) { record_refusal(context, verb, arguments, caller, answer.refusal()); }
  return answer;
}

Result<Engine::Bytes> Engine::open_bytes(const Json& request) {
  const std::string verb = text_member(request, "verb");
  const Json arguments = request.value("arguments", Json::object());
  if (verb == "quarantine_export") return engine::quarantine_bytes(*state_->context, arguments);
  return engine::read_bytes(*state_->context, arguments);
}

Result<Engine::Place> Engine::open_place(const std::string& text) {
  HF_TRY(const Scope scope, parse_canonical_scope(text));
  if (!scope.is_file()) return Place{std::nullopt, "none", false};
  HF_TRY(PinnedPlace place, pin_place(state_->context->folder, scope, true));
  std::string kind = "none";
  if (place.facts) {
    kind = place.facts->kind == os::Kind::folder ? "folder" : place.facts->kind == os::Kind::regular ? "file" : "other";
  }
  return Place{std::move(place.object), std::move(kind), scope.relative().empty()};
}

Result<Json> Engine::recover(const Caller&) { return engine::recover(*state_->context); }

int Engine::tick() {
  Context& context = *state_->context;
  const bool observed = context.guards && context.guards->wait_until_observed(kTickMs);
  const bool due = observed || context.unrecorded.are_due() || engine::is_anything_due(context);
  if (!due) return context.guards ? 0 : kTickMs;
  auto seen = engine::look_at_what_is_due(context);
  auto transition = engine::begin_transition(context);
  if (!transition.ok()) return kTickMs;
  (void)engine::record_observations(context, *transition);
  transition->seen = std::move(seen);
  engine::end_what_became_due(context, *transition);
  return context.guards ? 0 : kTickMs;
}

Result<Json> Engine::transfer_holder(const std::vector<std::string>& scopes, const os::ProcessIdentity& process,
                                     const std::string& session) {
  return engine::transfer_holder(*state_->context, scopes, Holder{true, process, session});
}

void Engine::suspend_waiting() { state_->context->waiting.suspend(); }
void Engine::resume_waiting() { state_->context->waiting.resume(); }
std::size_t Engine::waiting_count() const { return state_->context->waiting.count(); }
Result<std::vector<std::string>> Engine::begin_handover() { return engine::begin_handover(*state_->context); }
Result<void> Engine::share_guards(const std::shared_ptr<Successor>& successor) {
  return engine::share_guards(*state_->context, successor);
}
Json Engine::guards_stand_by() { return engine::guards_stand_by(*state_->context); }
void Engine::guards_answer_again() { engine::guards_answer_again(*state_->context); }
Result<void> Engine::begin_guard(GuardedPlace place) { return engine::begin_guard(*state_->context, std::move(place)); }
Result<bool> Engine::offer_object(const std::string& scope, os::Handle object, const std::string& temporary_name,
                                  bool leased) {
  return engine::offer_object(*state_->context, scope, std::move(object), temporary_name, leased);
}
void Engine::settle_object(const std::string& scope, bool taken) {
  engine::settle_object(*state_->context, scope, taken);
}
Result<void> Engine::learn(const Json& states) { return engine::learn(*state_->context, states); }
void Engine::guards_answer() { engine::guards_answer(*state_->context); }
Result<Json> Engine::take_over(const os::ProcessIdentity& process, const std::string& session) {
  return engine::take_over(*state_->context, Holder{true, process, session});
}

void Engine::end_waiting() { state_->context->waiting.close(); }

void Engine::shut_down() {
  Context& context = *state_->context;
  if (context.guards) {
    context.guards->settle_orphans();
    if (auto transition = engine::begin_transition(context); transition.ok()) {
      (void)engine::record_observations(context, *transition);
    }
  }
  context.guard_table.clear();
}

// The guards go first: what is still to be recorded then is bytes that diverted writers left, and no lease is marked by
// a guard that knows less than the one that answers now.
void Engine::withdraw() {
  Context& context = *state_->context;
  context.guard_table.clear();
  shut_down();
}

}  // namespace holdfast
