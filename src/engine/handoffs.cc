#include "engine/handoffs.h"

#include <algorithm>

#include "base/digest.h"
#include "base/fault_point.h"
#include "base/json.h"
#include "engine/arguments.h"
#include "engine/handoff_survey.h"
#include "engine/observing.h"
#include "scope/resolve.h"

namespace holdfast::engine {
namespace {

constexpr std::string_view kProtocol = "holdfast.transition.1";

std::string path_of(const Scope& scope) { return "handoffs/" + sha256_hex(scope.full()) + ".json"; }

Result<std::optional<Json>> read_handoff(Context& context, const std::string& path) {
  HF_TRY(const auto bytes, context.files->read(path));
  if (!bytes) return std::optional<Json>();
  auto handoff = parse_json(*bytes);
  if (handoff && text_member(*handoff, "protocol") == kProtocol) return handoff;
  return Refusal(Code::state_unreadable, "state_unreadable: " + path + " is no handoff", Json{{"path", path}});
}

Result<Scope> scope_of(Context& context, const Arguments& arguments) {
  HF_TRY(const std::string text, arguments.scope());
  HF_TRY(const std::string cwd, arguments.current_folder());
  return resolve_scope(context.folder, text, cwd);
}

Result<Json> open_handoff_of(Context& context, const Scope& scope) {
  HF_TRY(auto handoff, read_handoff(context, path_of(scope)));
  if (handoff) return std::move(*handoff);
  return Refusal(Code::not_found, "not_found: no handoff of " + scope.display() + " was opened",
                 Json{{"scope", scope.full()}})
      .with_hint("begin with `holdfast handoff open`");
}

// Who held it when the handoff was opened: the living tenancy, or the last one that ended.
Result<Json> old_owner(Context& context, const Transition& transition, const Scope& scope) {
  const auto described = [](const Tenancy& tenancy) {
    return Json{{"owner", tenancy.owner},
                {"task_id", tenancy.task_id},
                {"generation", tenancy.generation.text()},
                {"event", tenancy.event}};
  };
  if (const Tenancy* held = transition.state.find(scope); held != nullptr) return described(*held);
  HF_TRY(const auto last, context.store->last_ended(scope));
  if (last) return described(last->tenancy);
  return Refusal(Code::not_found, "not_found: nobody ever held " + scope.display() + "; there is nothing to hand over",
                 Json{{"scope", scope.full()}});
}

Json with_survey(Json handoff, const Survey& survey) {
  handoff.erase("protocol");
  handoff["old_owner_ended"] = survey.old_owner_ended;
  handoff["new_owner"] = survey.new_owner;
  handoff["first_accepted_generation"] = survey.first_accepted;
  handoff["inventory"] = survey.inventory;
  handoff["receivers"] = survey.receivers;
  handoff["ambiguous_effects"] = survey.ambiguous;
  if (text_member(handoff, "state") == "open") handoff["in_the_way"] = survey.in_the_way;
  return handoff;
}

// A closed one as it was closed: what happened since is another handoff's.
Result<Json> as_it_stands(Context& context, Transition& transition, const Scope& scope, Json handoff) {
  if (text_member(handoff, "state") == "open") {
    HF_TRY(const Survey found, survey(context, transition, scope, handoff));
    return with_survey(std::move(handoff), found);
  }
  handoff.erase("protocol");
  return handoff;
}

}  // namespace

Result<Json> handoff_open(Context& context, const Json& json) {
  const Arguments arguments(json);
  HF_TRY(const Scope scope, scope_of(context, arguments));
  HF_TRY(const std::string reason, arguments.text("reason"));
  HF_TRY(const auto owner, arguments.optional_text("reconciliation_owner"));
  HF_TRY(const auto trigger, arguments.optional_text("review_trigger"));
  HF_TRY(Transition transition, begin_transition(context));
  HF_CHECK(record_observations(context, transition));
  HF_TRY(const auto before, read_handoff(context, path_of(scope)));
  if (before && text_member(*before, "state") == "open") {
    return Refusal(Code::target_exists, "target_exists: the handoff of " + scope.display() + " is open already",
                   Json{{"scope", scope.full()}, {"opened_at", before->value("opened_at", Json())}})
        .with_hint("see `holdfast handoff status`, and close it first");
  }
  HF_TRY(const Json from, old_owner(context, transition, scope));
  evidence::Event event;
  event.kind = "handoff_opened";
  event.scope = scope.full();
  if (!text_member(from, "event").empty()) event.parents.push_back(text_member(from, "event"));
  event.facts = {{"from", from}, {"reason", reason}};
  HF_TRY(const auto ids, record(context, transition, {std::move(event)}));
  HF_FAULT_POINT("handoff_open_after_event");
  const Json handoff = {
      {"protocol", kProtocol},
      {"scope", scope.full()},
      {"state", "open"},
      {"opened_at", format_wall(transition.now.wall_us)},
      {"reason", reason},
      {"from", from},
      {"reconciliation_owner", owner.value_or(text_member(from, "owner"))},
      {"review_trigger", trigger.value_or("any refusal of generation " + text_member(from, "generation") +
                                          " or a reconciliation "
                                          "record on this scope")},
      // A person's word for a program that will never report holds for the next handoff as well.
      {"accepted", before ? before->value("accepted", Json::object()) : Json::object()},
      {"evidence", ids.front()}};
  HF_CHECK(context.files->publish(path_of(scope), dump_pretty(handoff) + "\n"));
  HF_TRY(const Survey found, survey(context, transition, scope, handoff));
  return Json{{"handoff", with_survey(handoff, found)}};
}

Result<Json> handoff_status(Context& context, const Json& json) {
  const Arguments arguments(json);
  HF_TRY(Transition transition, begin_transition(context));
  if (arguments.has("scope")) {
    HF_TRY(const Scope scope, scope_of(context, arguments));
    HF_TRY(const Json handoff, open_handoff_of(context, scope));
    HF_TRY(Json shown, as_it_stands(context, transition, scope, handoff));
    return Json{{"handoffs", Json::array({std::move(shown)})}};
  }
  Json all = Json::array();
  HF_TRY(const auto names, context.files->list("handoffs"));
  for (const std::string& name : names) {
    HF_TRY(const auto handoff, read_handoff(context, "handoffs/" + name));
    if (!handoff) continue;
    HF_TRY(const Scope scope, parse_canonical_scope(text_member(*handoff, "scope")));
    HF_TRY(Json shown, as_it_stands(context, transition, scope, *handoff));
    all.push_back(std::move(shown));
  }
  return Json{{"handoffs", std::move(all)}};
}

Result<Json> handoff_close(Context& context, const Json& json) {
  const Arguments arguments(json);
  HF_TRY(const Scope scope, scope_of(context, arguments));
  HF_TRY(const std::string reason, arguments.text("reason"));
  HF_TRY(Transition transition, begin_transition(context));
  HF_CHECK(record_observations(context, transition));
  HF_TRY(Json handoff, open_handoff_of(context, scope));
  if (text_member(handoff, "state") != "open") {
    return Refusal(
               Code::not_found,
               "not_found: the handoff of " + scope.display() + " was closed at " + text_member(handoff, "closed_at"),
               Json{{"scope", scope.full()}})
        .with_hint("open another with `holdfast handoff open`");
  }
  const Json accepted = json.value("accepted", Json::array());
  if (!accepted.is_array()) return usage("accepted is no list");
  for (const Json& id : accepted) {
    if (!id.is_string()) return usage("accepted has an element that is no text");
    handoff["accepted"][id.get<std::string>()] = reason;
  }
  HF_TRY(const Survey found, survey(context, transition, scope, handoff));
  if (!found.in_the_way.empty()) {
    return Refusal(Code::transition_open,
                   "transition_open: " + std::to_string(found.in_the_way.size()) +
                       (found.in_the_way.size() == 1 ? " thing stands" : " things stand") +
                       " in the way of closing the handoff of " + scope.display() + ": " +
                       text_member(found.in_the_way.front(), "why"),
                   Json{{"scope", scope.full()}, {"in_the_way", found.in_the_way}});
  }
  for (const Json& id : accepted) {
    const Json& out = found.inventory["commands"];
    const bool is_out = std::any_of(out.begin(), out.end(), [&](const Json& one) { return one["operation_id"] == id; });
    if (is_out) continue;
    return Refusal(Code::not_found, "not_found: no command " + printable(id.get<std::string>()) + " is out",
                   Json{{"scope", scope.full()}, {"operation_id", id}})
        .with_hint("`holdfast --json handoff status` lists what is out, in inventory.commands");
  }
  evidence::Event event;
  event.kind = "handoff_closed";
  event.scope = scope.full();
  event.parents.push_back(text_member(handoff, "evidence"));
  event.facts = {{"from", handoff["from"]},
                 {"to", found.new_owner},
                 {"old_owner_ended", found.old_owner_ended},
                 {"first_accepted_generation", found.first_accepted},
                 {"receivers", found.receivers},
                 {"inventory", found.inventory},
                 {"accepted", handoff["accepted"]},
                 {"reason", reason}};
  HF_TRY(const auto ids, record(context, transition, {std::move(event)}));
  HF_FAULT_POINT("handoff_close_after_event");
  handoff["state"] = "closed";
  handoff["closed_at"] = format_wall(transition.now.wall_us);
  handoff["closing_evidence"] = ids.front();
  Json closed = with_survey(std::move(handoff), found);
  Json kept = closed;
  kept["protocol"] = kProtocol;
  HF_CHECK(context.files->publish(path_of(scope), dump_pretty(kept) + "\n"));
  return Json{{"handoff", std::move(closed)}};
}

}  // namespace holdfast::engine
