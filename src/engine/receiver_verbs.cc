// receiver add, list, reseed and settle: what a person decides about receivers.
#include <algorithm>
#include <charconv>

#include "base/fault_point.h"
#include "base/json.h"
#include "engine/arguments.h"
#include "engine/deliveries.h"
#include "engine/receiver_registry.h"

namespace holdfast::engine {
namespace {

bool is_plain_name(const std::string& name) {
  const auto plain = [](char one) {
    return (one >= 'a' && one <= 'z') || (one >= 'A' && one <= 'Z') || (one >= '0' && one <= '9') || one == '-' ||
           one == '_' || one == '.';
  };
  return !name.empty() && name.size() <= 64 && name.front() != '.' && std::all_of(name.begin(), name.end(), plain);
}

// Two leases for the same rows would be two owners of each.
bool is_of_the_same_rows(const Registered& one, const Registered& other) {
  const auto place_of = [](const Registered& registered) {
    Json place = {{"kind", registered.kind}};
    for (const char* member : {"database", "connection", "table", "state"}) {
      place[member] = registered.config.value(member, Json());
    }
    return place;
  };
  return place_of(one) == place_of(other);
}

Json receiver_line(Context& context, const Registered& registered) {
  Json line = registered.to_json();
  line.erase("protocol");
  line["built_in"] = false;
  line["state"] = registered.closed.is_null() ? "open" : "closed";
  const auto use = use_receiver(context, registered);
  if (!use.ok()) {
    line["reachable"] = false;
    line["reason"] = use.refusal().message();
    return line;
  }
  const auto mark = (*use)->read_mark(registered.resource);
  line["reachable"] = mark.ok();
  if (!mark.ok()) {
    line["reason"] = mark.refusal().message();
    return line;
  }
  line["receiver_mark"] = *mark ? Json((*mark)->text()) : Json();
  const bool lost = registered.mark() && (!*mark || **mark < *registered.mark());
  if (lost) line["state"] = "closed";
  if (lost) line["reason"] = "receiver_high_water_missing";
  return line;
}

}  // namespace

Result<Json> receiver_add(Context& context, const Json& json) {
  const Arguments arguments(json);
  HF_TRY(const std::string name, arguments.text("name"));
  HF_TRY(const std::string kind, arguments.text("kind"));
  HF_TRY(const auto reason, arguments.optional_text("reason"));
  if (!is_plain_name(name) || name == "file") return usage("a receiver's name is 1 to 64 of A-Z a-z 0-9 - _ .");
  Registered registered;
  registered.name = name;
  registered.kind = kind;
  registered.config = json.value("config", Json::object());
  if (!registered.config.is_object()) return usage("config is no object");
  HF_CHECK(check_no_password(registered.config));
  registered.config = kept_config(context, registered.config);
  if (kind == "command" && !registered.config.contains("state")) {
    registered.config["state"] = "project:/.squad/receivers/" + name + ".sqlite";
  }
  HF_TRY(const auto resource, arguments.optional_text("resource"));
  HF_TRY(const Scope scope, parse_canonical_scope(resource.value_or("session://" + kind + ".records/" + name)));
  if (scope.is_file()) return usage("the receiver of files is built in");
  registered.resource = scope.full();
  HF_TRY(Transition transition, begin_transition(context));
  HF_TRY(const auto all, registered_receivers(context));
  for (const Registered& one : all) {
    if (one.name != name && one.resource != registered.resource && !is_of_the_same_rows(one, registered)) continue;
    return Refusal(Code::target_exists, "target_exists: " + one.name + " is the receiver of " + one.resource,
                   Json{{"name", one.name}, {"resource", one.resource}});
  }
  // It is opened once, so that what cannot work is refused now, and not at the first command; and anew, because what an
  // attempt before left open under this name may be another database.
  forget_receiver(context, name);
  HF_TRY(const ReceiverInUse use, use_receiver(context, registered));
  HF_TRY(const auto mark, use->read_mark(registered.resource));
  evidence::Event event;
  event.kind = "receiver_added";
  event.scope = registered.resource;
  event.facts = {{"receiver", name},
                 {"kind", kind},
                 {"config", registered.config},
                 {"receiver_mark", mark ? Json(mark->text()) : Json()},
                 {"reason", reason.value_or("")}};
  HF_TRY(const auto ids, record(context, transition, {std::move(event)}));
  HF_FAULT_POINT("receiver_add_after_event");
  HF_CHECK(save_receiver(context, registered));
  return Json{{"name", name}, {"kind", kind}, {"resource", registered.resource}, {"evidence", ids.front()}};
}

Result<Json> receiver_list(Context& context) {
  Json lines = Json::array({Json{{"name", "file"}, {"kind", "file"}, {"built_in", true}, {"state", "open"}}});
  HF_TRY(const auto all, registered_receivers(context));
  for (const Registered& one : all) lines.push_back(receiver_line(context, one));
  return Json{{"receivers", std::move(lines)}};
}

Result<Json> receiver_reseed(Context& context, const Json& json) {
  const Arguments arguments(json);
  HF_TRY(const std::string name, arguments.text("name"));
  HF_TRY(const std::string reason, arguments.text("reason"));
  HF_TRY(Transition transition, begin_transition(context, authority::Need::generations));
  HF_TRY(Registered registered, receiver_named(context, name));
  // The current tenancy's, or, where nobody holds it, the highest that was ever issued: nothing older that is on its
  // way can be taken for current.
  const auto held = transition.state.held.find(registered.resource);
  const Generation high = held != transition.state.held.end() ? held->second.generation
                                                              : Generation{high_water_of(transition.state.counters)};
  HF_TRY(const ReceiverInUse use, use_receiver(context, registered));
  HF_TRY(const auto before, use->read_mark(registered.resource));
  const std::uint64_t issued = high_water_of(transition.state.counters);
  if (before && before->value > issued) {
    return Refusal(Code::generation_incomparable,
                   "generation_incomparable: the receiver's own mark, " + before->text() +
                       ", is above everything that was issued here, " + std::to_string(issued),
                   Json{{"name", name}, {"receiver_mark", before->text()}, {"high_water", std::to_string(issued)}})
        .with_hint("`holdfast generations repair --floor " + before->text() + " --reason TEXT`, then acquire anew");
  }
  HF_TRY(const Generation mark,
         use->reseed(registered.resource, std::max(high, registered.mark().value_or(Generation{}))));
  HF_FAULT_POINT("reseed_after_receiver");
  evidence::Event event;
  event.kind = "receiver_reseeded";
  event.scope = registered.resource;
  event.facts = {{"receiver", name},
                 {"receiver_mark_before", before ? Json(before->text()) : Json()},
                 {"workspace_mark_before", registered.mark() ? Json(registered.mark()->text()) : Json()},
                 {"mark", mark.text()},
                 {"reason", reason}};
  HF_TRY(const auto ids, record(context, transition, {std::move(event)}));
  HF_FAULT_POINT("reseed_after_event");
  registered.marks[registered.resource] = mark;
  registered.closed = nullptr;
  HF_CHECK(save_receiver(context, registered));
  return Json{{"name", name}, {"resource", registered.resource}, {"mark", mark.text()}, {"evidence", ids.front()}};
}

Result<Json> receiver_settle(Context& context, const Json& json) {
  const Arguments arguments(json);
  HF_TRY(const std::string name, arguments.text("name"));
  HF_TRY(const std::string operation_id, arguments.text("operation_id"));
  HF_TRY(const std::string reason, arguments.text("reason"));
  HF_TRY(const bool ran, arguments.flag("ran"));
  HF_TRY(const bool not_run, arguments.flag("not_run"));
  if (ran == not_run) return usage("say whether it ran or not");
  HF_TRY(Transition transition, begin_transition(context));
  HF_TRY(const Registered registered, receiver_named(context, name));
  const Json outcome = {{"state", "finished"}, {"exit_status", nullptr}, {"settled_by_a_person", reason}};
  {
    HF_TRY(const ReceiverInUse use, use_receiver(context, registered));
    HF_CHECK(use->settle(operation_id, ran ? std::optional(outcome) : std::nullopt));
  }
  HF_FAULT_POINT("settle_after_receiver");
  evidence::Event event;
  event.kind = "command_settled";
  event.scope = registered.resource;
  event.facts = {{"receiver", name}, {"operation_id", operation_id}, {"ran", ran}, {"reason", reason}};
  HF_TRY(const auto ids, record(context, transition, {std::move(event)}));
  return Json{{"name", name}, {"operation_id", operation_id}, {"ran", ran}, {"evidence", ids.front()}};
}

}  // namespace holdfast::engine
