#include "base/json.h"
#include "surfaces/cli/print.h"
#include "surfaces/cli/text_layout.h"

namespace holdfast::cli {
namespace {

const Json& part(const Json& document, const char* name) {
  static const Json kNone = Json::object();
  if (!document.is_object() || !document.contains(name) || !document[name].is_object()) return kNone;
  return document[name];
}

std::string server_text(const Json& document) {
  const Json& server = part(document, "server");
  if (server.empty()) return "none: what is acquired now is not enforced by the kernel";
  std::string pid = member(server, "pid");
  if (pid.empty()) pid = member(part(server, "process"), "pid");
  std::string text = "pid " + pid;
  for (const char* name : {"started_at", "since"}) {
    const std::string value = member(server, name);
    if (value.size() >= 19) return text + ", since " + display_time(value);
  }
  return text;
}

// A part of the state that could not be read says why, in its place.
std::string or_refusal(const Json& part, const std::string& text) {
  if (!part.contains("refusal")) return text;
  return "NOT SOUND: " + member(part["refusal"], "message") + " (" + member(part["refusal"], "code") + ")";
}

std::string lease_counts(const Json& leases) {
  return member(leases, "held") + " held, " + member(leases, "live") + " live, " + member(leases, "enforced") +
         " enforced";
}

std::string anchor_text(const Json& document) {
  if (!document.contains("anchor")) return "";
  return document["anchor"].is_structured() ? plain(dump_ascii(document["anchor"])) : human_scalar(document["anchor"]);
}

std::string holders_table(const Json& leases) {
  if (!leases.contains("holders") || !leases["holders"].is_array() || leases["holders"].empty()) return "";
  Table table({"SCOPE", "OWNER", "TASK", "GEN", "LEFT", "HOLDER"});
  for (const Json& holder : leases["holders"]) {
    if (!holder.is_object()) continue;
    const Json left = holder.value("remaining_seconds", Json());
    table.add({display_scope(holder), member(holder, "owner"), member(holder, "task_id"), member(holder, "generation"),
               left.is_number_integer() ? (left <= 0 ? "expired" : human_duration(left.get<std::int64_t>())) : "-",
               liveness_words(member(holder, "liveness"))});
  }
  return "\n" + table.text();
}

}  // namespace

std::string human_status(const Json& document) {
  if (!document.is_object() || !document.contains("workspace_id")) return human_document(document);
  const Json& file_system = part(document, "file_system");
  const Json& leases = part(document, "leases");
  const Json& generations = part(document, "generations");
  const Json& epoch = part(document, "epoch");
  const Json& waiting = part(document, "waiting");
  const bool engaged = member(epoch, "break_glass") == "yes";
  return name_value_lines(
             {{"workspace", member(document, "workspace_id")},
              {"file system",
               member(file_system, "name") + (member(file_system, "local") == "no" ? ", not local" : "")},
              {"server", server_text(document)},
              {"leases", lease_counts(leases)},
              {"generations", or_refusal(generations, "high water " + member(generations, "high_water"))},
              {"epoch", or_refusal(epoch, member(epoch, "control_epoch") + (engaged ? ", BREAK-GLASS ENGAGED" : ""))},
              {"evidence", "events: " + member(part(document, "evidence"), "events")},
              {"waiting",
               member(waiting, "reconcile") + " to reconcile, " + member(waiting, "quarantine") + " in quarantine"},
              {"anchor", anchor_text(document)}},
             0) +
         holders_table(leases);
}

}  // namespace holdfast::cli
