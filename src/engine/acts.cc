#include "engine/acts.h"

#include <algorithm>
#include <array>

#include "base/base64.h"
#include "base/digest.h"
#include "base/fault_point.h"
#include "base/ids.h"
#include "base/json.h"
#include "engine/act_presented.h"
#include "engine/arguments.h"
#include "engine/command.h"
#include "engine/deliveries.h"
#include "engine/due.h"
#include "engine/ending.h"
#include "engine/observing.h"
#include "engine/receiver_registry.h"
#include "engine/tasks.h"
#include "receivers/row_change.h"
#include "replace/intent.h"
#include "scope/resolve.h"

namespace holdfast::engine {
namespace {

constexpr std::string_view kProtocol = "holdfast.act.1";

std::string act_path(const std::string& operation_id) { return "acts/" + sha256_hex(operation_id) + ".json"; }

Result<Json> act_of(Context& context, const Arguments& arguments) {
  HF_TRY(const std::string id, arguments.text("operation_id"));
  HF_TRY(auto act, find_act(context, id));
  if (act) return std::move(*act);
  return Refusal(Code::not_found, "not_found: no act was prepared as " + id, Json{{"operation_id", id}});
}

Result<std::vector<Json>> every_act(Context& context) {
  HF_TRY(const auto names, context.files->list("acts"));
  std::vector<Json> acts;
  for (const std::string& name : names) {
    if (!name.ends_with(".json")) continue;
    HF_TRY(const auto bytes, context.files->read("acts/" + name));
    auto act = bytes ? parse_json(*bytes) : std::nullopt;
    if (!act || !act->is_object() || !act->value("command", Json()).is_object()) {
      return Refusal(Code::state_unreadable, "state_unreadable: acts/" + name + " is no act");
    }
    acts.push_back(std::move(*act));
  }
  return acts;
}

Result<void> save_act(Context& context, const Json& act) {
  return context.files->publish(act_path(text_member(act["command"], "operation_id")), dump_pretty(act) + "\n");
}

std::string digest_of(const Json& act) { return sha256_hex(dump_canonical(act["command"])); }

Refusal consumed(const Json& act) {
  return Refusal(Code::act_consumed,
                 "act_consumed: " + text_member(act["command"], "operation_id") + " was committed at " +
                     text_member(act, "consumed_at"),
                 Json{{"operation_id", act["command"]["operation_id"]}, {"outcome", act.value("outcome", Json())}});
}

// Approved, and still what was approved.
Result<void> check_approval(const Json& act) {
  const Json approval = act.value("approval", Json());
  if (!approval.is_object()) {
    return Refusal(Code::approval_required,
                   "approval_required: " + text_member(act["command"], "operation_id") + " has not been approved",
                   Json{{"operation_id", act["command"]["operation_id"]}});
  }
  if (text_member(approval, "act_sha256") == digest_of(act)) return {};
  return Refusal(Code::act_mismatch, "act_mismatch: the act was changed after it was approved",
                 Json{{"operation_id", act["command"]["operation_id"]}});
}

// The command is the tenancy's own, in every part that the lease decides.
Result<void> check_tenancy(const Json& act, const Tenancy& tenancy) {
  const Json& command = act["command"];
  const bool same = exact_u64(command["generation"]) == tenancy.generation.value && command["owner"] == tenancy.owner &&
                    command["task_id"] == tenancy.task_id &&
                    exact_u64(command["control_epoch"]) == tenancy.control_epoch.value;
  if (same) return {};
  return Refusal(Code::stale_lease_generation,
                 "stale_lease_generation: expected " + text_member(command, "generation") + ", current " +
                     tenancy.generation.text() + " (the act was prepared under another tenancy)",
                 Json{{"expected", command["generation"]},
                      {"current", tenancy.generation.text()},
                      {"operation_id", command["operation_id"]}});
}

Result<std::string> payload_of(Context& context, const Json& act) {
  HF_TRY(const os::Handle bytes,
         context.vault->open_verified(vault::Tier::primary, text_member(act, "payload_sha256")));
  return os::read_whole(bytes, kPayloadMax);
}

Result<Json> recorded(Context& context, Transition& transition, const char* kind, const Json& act, Json facts) {
  evidence::Event event;
  event.kind = kind;
  event.scope = text_member(act["command"], "resource");
  for (const Json& parent : act.value("events", Json::array())) event.parents.push_back(parent.get<std::string>());
  event.facts = std::move(facts);
  event.facts["operation_id"] = act["command"]["operation_id"];
  HF_TRY(const auto ids, record(context, transition, {std::move(event)}));
  return Json(ids.front());
}

// A refusal from which it is known that no attempt has applied the act: the receiver's own "no", with evidence, that it
// gave after it looked for the operation; of a first attempt also what stopped it before its receiver.
bool was_not_applied(const Refusal& refusal, bool is_first) {
  static constexpr std::array kBeforeReceiver = {Code::governing_source_is_destination,
                                                 Code::usage,
                                                 Code::not_found,
                                                 Code::act_mismatch,
                                                 Code::approval_required,
                                                 Code::vault_entry_missing,
                                                 Code::vault_entry_corrupt,
                                                 Code::receiver_unreachable};
  static constexpr std::array kAfterItsOperations = {Code::stale_lease_generation, Code::control_epoch_revoked,
                                                     Code::lease_expired, Code::record_missing,
                                                     Code::record_version_changed};
  const auto is_of = [&](const auto& codes) {
    return std::find(codes.begin(), codes.end(), refusal.code()) != codes.end();
  };
  if (refusal.effect() != Effect::none) return false;
  if (is_first) return !refusal.evidence().empty() || is_of(kBeforeReceiver);
  // Asked once more: only what the receiver judges after it has looked for the operation tells that it is not there.
  return !refusal.evidence().empty() && is_of(kAfterItsOperations);
}

// The attempt came to nothing: the act is as it was before, unless another attempt has begun since.
void put_back(Context& context, const Arguments& arguments, const Json& attempted) {
  const auto transition = begin_transition(context);
  auto act = transition.ok() ? act_of(context, arguments) : Result<Json>(transition.refusal());
  if (!act.ok() || text_member(*act, "state") != "committing" || (*act)["attempt"] != attempted["attempt"]) return;
  (*act)["state"] = "approved";
  act->erase("attempt");
  (void)save_act(context, *act);  // else it stays open, and the next commit tells
}

// What the act is planned on. Of a file it is what is there now, where the caller names nothing; a row's version only
// whoever planned on it knows. Outside of the transition: a file may be large.
Result<std::string> prepared_version_of(Context& context, const Arguments& arguments) {
  HF_TRY(const auto given, arguments.optional_text("precondition"));
  HF_TRY(const std::string text, arguments.scope());
  HF_TRY(const std::string cwd, arguments.current_folder());
  HF_TRY(const Scope scope, resolve_scope(context.folder, text, cwd));
  if (given && scope.is_file() && *given != "absent" && !is_sha256_hex(*given)) {
    return usage("precondition is neither `absent` nor 64 lowercase hex digits");
  }
  if (given) return *given;
  if (!scope.is_file()) return usage("precondition is missing: the version that the act is planned on");
  const Sight sight = look_at(context, scope, false);
  if (sight.kind == "file") return sight.digest.sha256;
  if (sight.kind == "none") return std::string("absent");
  return Refusal(Code::destination_not_a_file, "destination_not_a_file: " + scope.display() + " " + sight.reason,
                 Json{{"scope", scope.full()}});
}

// The row, typed, that exactly these bytes change; of a file its scope. A change that its receiver could not read is
// refused now, not after somebody approved it.
Result<Json> typed_key_of(Context& context, const Scope& scope, const Json& command, const std::string& payload) {
  if (scope.is_file()) return Json{{"file", scope.full()}};
  HF_TRY(const auto registered, receiver_of(context, scope.full()));
  if (!registered) return no_receiver(scope.full());
  if (registered->kind == "command") {
    return usage("the receiver of " + printable(scope.full()) + " runs programs, and a commit runs none: `issue` a " +
                 "command to it");
  }
  if (!registered->config.contains("table")) return Json();
  HF_TRY(const auto target, receivers::row_target_from_json(registered->config));
  HF_TRY(const Command read, command_from_json(command));
  HF_TRY(const auto change, receivers::read_row_change(read, payload, target));
  return receivers::values_to_json(change.key);
}

}  // namespace

Result<std::optional<Json>> find_act(Context& context, const std::string& operation_id) {
  const std::string path = act_path(operation_id);
  HF_TRY(const auto bytes, context.files->read(path));
  if (!bytes) return std::optional<Json>();
  auto act = parse_json(*bytes);
  const bool is_act = act && text_member(*act, "protocol") == kProtocol && act->value("command", Json()).is_object() &&
                      text_member((*act)["command"], "operation_id") == operation_id;
  if (is_act) return act;
  return Refusal(Code::state_unreadable, "state_unreadable: " + path + " is no act", Json{{"path", path}});
}

Result<Json> act_prepare(Context& context, const Json& json) {
  const Arguments arguments(json);
  HF_TRY(const auto operation_id, arguments.optional_text("operation_id"));
  HF_TRY(const auto reason, arguments.optional_text("reason"));
  const auto payload = base64_decode(text_member(json, "payload_base64"));
  if (!payload || !json.contains("payload_base64") || payload->size() > kPayloadMax) {
    return usage("payload_base64 is missing, no base64, or over 16 MiB");
  }
  HF_TRY(const ContentDigest kept, context.vault->store_bytes(vault::Tier::primary, *payload));
  HF_TRY(const std::string prepared_version, prepared_version_of(context, arguments));
  HF_TRY(Transition transition, begin_transition_on(context, arguments));
  HF_CHECK(record_observations(context, transition));
  HF_TRY(const Tenancy tenancy, current_tenancy(context, transition, arguments));
  HF_CHECK(check_governing_sources(context, tenancy.task_id, tenancy.scope));
  const std::string id = operation_id.value_or("op-" + random_hex(16));
  const Json command =
      command_envelope(context, tenancy, id, tenancy.scope.is_file() ? "write" : "act", prepared_version, kept.sha256);
  HF_TRY(const Json typed_key, typed_key_of(context, tenancy.scope, command, *payload));
  HF_TRY(const auto before, find_act(context, id));
  if (before) {
    if ((*before)["command"] == command) return Json{{"act", *before}};
    return Refusal(Code::operation_id_reused, "operation_id_reused: " + id + " was used for another act",
                   Json{{"operation_id", id}});
  }
  Json act = {{"protocol", kProtocol},
              {"command", command},
              {"typed_key", typed_key},
              {"prepared_version", prepared_version},
              {"payload_sha256", kept.sha256},
              {"byte_count", kept.byte_count},
              {"state", "prepared"},
              {"prepared_at", format_wall(transition.now.wall_us)},
              {"reason", reason.value_or("")},
              {"approval", nullptr},
              {"outcome", nullptr},
              {"events", Json::array()}};
  if (!tenancy.event.empty()) act["events"].push_back(tenancy.event);
  HF_TRY(const Json event, recorded(context, transition, "act_prepared", act, Json{{"command", command}}));
  act["events"] = Json::array({event});
  HF_CHECK(save_act(context, act));
  return Json{{"act", std::move(act)}};
}

Result<Json> act_approve(Context& context, const Json& json) {
  const Arguments arguments(json);
  HF_TRY(const auto by, arguments.optional_text("by"));
  HF_TRY(const auto reason, arguments.optional_text("reason"));
  HF_TRY(Transition transition, begin_transition(context));
  HF_TRY(Json act, act_of(context, arguments));
  HF_CHECK(check_presented(act, json));
  if (text_member(act, "state") == "consumed") return consumed(act);
  if (text_member(act, "state") != "prepared") {
    HF_CHECK(check_approval(act));
    return Json{{"act", std::move(act)}};
  }
  const Json approval = {{"by", by.value_or("")},
                         {"reason", reason.value_or("")},
                         {"at", format_wall(transition.now.wall_us)},
                         {"act_sha256", digest_of(act)}};
  HF_TRY(const Json event, recorded(context, transition, "act_approved", act, Json{{"approval", approval}}));
  act["state"] = "approved";
  act["approval"] = approval;
  act["events"].push_back(event);
  HF_CHECK(save_act(context, act));
  return Json{{"act", std::move(act)}};
}

Result<Json> act_commit(Context& context, const Json& json) {
  const Arguments arguments(json);
  Json act;
  bool is_first = true;
  {
    HF_TRY(Transition transition, begin_transition(context));
    HF_CHECK(record_observations(context, transition));
    HF_TRY(act, act_of(context, arguments));
    HF_CHECK(check_presented(act, json));
    if (text_member(act, "state") == "consumed") return consumed(act);
    HF_CHECK(check_approval(act));
    HF_TRY(const TenancyKeys keys, arguments.keys());
    // A commit that was begun may have had its effect: then the receiver tells, whoever holds the lease by now.
    is_first = text_member(act, "state") != "committing";
    if (is_first) {
      HF_TRY(const Scope scope, parse_canonical_scope(text_member(act["command"], "resource")));
      HF_TRY(const Tenancy tenancy, current_tenancy(context, transition, scope, keys));
      HF_CHECK(check_tenancy(act, tenancy));
    }
    act["state"] = "committing";
    act["attempt"] = random_hex(8);
    HF_CHECK(save_act(context, act));
  }
  HF_FAULT_POINT("act_before_effect");
  // The effect judges the generation once more, where it happens.
  const auto still_approved = [&]() -> Result<void> {
    HF_TRY(const Json now, act_of(context, arguments));
    if (text_member(now, "state") == "consumed") return consumed(now);
    HF_CHECK(check_approval(now));
    if (now["command"] == act["command"]) return {};
    return Refusal(Code::act_mismatch, "act_mismatch: the act was changed while it was committed",
                   Json{{"operation_id", act["command"]["operation_id"]}});
  };
  auto delivered = [&]() -> Result<Json> {
    HF_TRY(const std::string payload, payload_of(context, act));
    DeliveryTerms terms;
    terms.revalidate = still_approved;
    return deliver_command(context, act["command"], payload, terms);
  }();
  if (!delivered.ok()) {
    if (was_not_applied(delivered.refusal(), is_first)) put_back(context, arguments, act);
    return std::move(delivered).refusal();
  }
  Json outcome = std::move(*delivered);
  HF_FAULT_POINT("act_after_effect");
  HF_TRY(Transition transition, begin_transition(context));
  HF_TRY(act, act_of(context, arguments));
  if (text_member(act, "state") == "consumed") return consumed(act);
  HF_TRY(const Json event, recorded(context, transition, "act_committed", act, Json{{"outcome", outcome}}));
  HF_FAULT_POINT("act_after_event");
  act["state"] = "consumed";
  act.erase("attempt");
  act["consumed_at"] = format_wall(transition.now.wall_us);
  act["outcome"] = outcome;
  act["events"].push_back(event);
  HF_CHECK(save_act(context, act));
  return Json{{"operation_id", act["command"]["operation_id"]}, {"outcome", std::move(outcome)}, {"evidence", event}};
}

Result<Json> act_show(Context& context, const Json& json) {
  HF_TRY(Json act, act_of(context, Arguments(json)));
  // What was lost cannot be approved by showing it: null is not the bytes.
  const auto payload = payload_of(context, act);
  act["payload_base64"] = payload.ok() ? Json(base64_encode(*payload)) : Json();
  return Json{{"act", std::move(act)}};
}

Result<Json> act_list(Context& context) {
  Json acts = Json::array();
  HF_TRY(const auto all, every_act(context));
  for (const Json& act : all) {
    acts.push_back({{"operation_id", act["command"].value("operation_id", Json())},
                    {"resource", act["command"].value("resource", Json())},
                    {"owner", act["command"].value("owner", Json())},
                    {"task_id", act["command"].value("task_id", Json())},
                    {"generation", act["command"].value("generation", Json())},
                    {"state", act.value("state", Json())},
                    {"prepared_at", act.value("prepared_at", Json())}});
  }
  return Json{{"acts", std::move(acts)}};
}

Result<std::vector<Json>> open_acts(Context& context, const Scope& scope) {
  HF_TRY(auto open, every_act(context));
  std::erase_if(open, [&](const Json& act) {
    const auto resource = parse_canonical_scope(text_member(act["command"], "resource"));
    return !resource.ok() || !overlaps(*resource, scope) || text_member(act, "state") == "consumed";
  });
  return open;
}

}  // namespace holdfast::engine
