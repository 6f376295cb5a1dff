#include "engine/tasks.h"

#include "base/digest.h"
#include "base/json.h"
#include "engine/arguments.h"
#include "engine/session_binding.h"
#include "lease/generation/generation_store.h"
#include "scope/resolve.h"

namespace holdfast::engine {
namespace {

constexpr std::string_view kProtocol = "holdfast.task.1";

struct Found {
  std::string path;  // where the task's file is, or would be
  std::optional<Json> document;
};

Result<Found> find_task(Context& context, const std::string& id) {
  const std::string key = fnv1a_hex("task://" + id);
  const std::string own = "tasks/" + key + "." + sha256_hex(id).substr(0, 16) + ".json";
  const std::string plain = "tasks/" + key + ".json";
  bool plain_is_taken = false;
  for (const std::string& path : {plain, own}) {
    HF_TRY(const auto bytes, context.files->read(path));
    if (!bytes) continue;
    JsonProblem problem;
    auto document = parse_json(*bytes, &problem);
    if (!document || text_member(*document, "protocol") != kProtocol ||
        !document->value("sources", Json()).is_array()) {
      return Refusal(Code::state_unreadable, "state_unreadable: " + path + " is no task", Json{{"path", path}});
    }
    if (text_member(*document, "id") == id) return Found{path, std::move(*document)};
    plain_is_taken = plain_is_taken || path == plain;
  }
  return Found{plain_is_taken ? own : plain, std::nullopt};
}

}  // namespace

Result<Json> task_set(Context& context, const Json& json) {
  const Arguments arguments(json);
  HF_TRY(const std::string id, arguments.text("id"));
  HF_TRY(const auto reason, arguments.optional_text("reason"));
  HF_TRY(const std::string cwd, arguments.current_folder());
  Json sources = Json::array();
  for (const Json& source : json.value("sources", Json::array())) {
    if (!source.is_string()) return usage("a source is no text");
    HF_TRY(const Scope scope, resolve_scope(context.folder, source.get<std::string>(), cwd));
    sources.push_back(scope.full());
  }
  HF_TRY(Transition transition, begin_transition(context, authority::Need::generations));
  HF_TRY(const Found found, find_task(context, id));
  const Json task = {{"protocol", kProtocol},
                     {"id", id},
                     {"sources", sources},
                     {"generation", std::to_string(high_water_of(transition.state.counters))},
                     {"control_epoch", transition.state.epoch.epoch.text()},
                     {"reason", reason.value_or("")},
                     {"at", format_wall(transition.now.wall_us)}};
  evidence::Event event;
  event.kind = "task_set";
  event.facts = {{"task_id", id}, {"sources", sources}, {"reason", reason.value_or("")}};
  if (found.document) event.facts["sources_before"] = found.document->value("sources", Json::array());
  HF_TRY(const auto ids, record(context, transition, {std::move(event)}));
  HF_CHECK(context.files->make_folder("tasks"));
  HF_CHECK(context.files->publish(found.path, dump_pretty(task) + "\n"));
  return Json{{"task_id", id},
              {"sources", sources},
              {"generation", task["generation"]},
              {"control_epoch", task["control_epoch"]},
              {"evidence", ids.front()}};
}

Result<Json> task_show(Context& context, const Json& json) {
  HF_TRY(const std::string id, Arguments(json).text("id"));
  HF_TRY(const Found found, find_task(context, id));
  if (!found.document) return Refusal(Code::not_found, "no task was set under this id", Json{{"task_id", id}});
  Json task = *found.document;
  task["task_id"] = id;
  task.erase("id");
  task.erase("protocol");
  return task;
}

Result<void> check_governing_sources(Context& context, const std::string& task_id, const Scope& destination) {
  HF_TRY(const Found found, find_task(context, task_id));
  if (!found.document) return {};
  SessionBindings bindings(context);
  for (const Json& source : (*found.document)["sources"]) {
    const auto scope = parse_canonical_scope(source.is_string() ? source.get<std::string>() : "");
    if (!scope.ok()) {
      return Refusal(Code::state_unreadable, "state_unreadable: " + found.path + " names no scope",
                     Json{{"path", found.path}});
    }
    HF_TRY(const bool bound, bindings.bound(*scope, destination));
    if (!bound && !overlaps(*scope, destination)) continue;
    return Refusal(Code::governing_source_is_destination,
                   "governing_source_is_destination: " + destination.display() + " governs task " + task_id + " (" +
                       scope->display() + ")",
                   Json{{"scope", destination.full()}, {"task_id", task_id}, {"source", scope->full()}});
  }
  return {};
}

}  // namespace holdfast::engine
