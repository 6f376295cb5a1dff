#include "surfaces/cli/print.h"

#include <array>

#include "base/json.h"
#include "surfaces/cli/text_layout.h"

namespace holdfast::cli {
namespace {

std::string human_scope(const Json& document) {
  return name_value_lines({{"scope", member(document, "scope")},
                           {"namespace", member(document, "namespace")},
                           {"resource id", member(document, "resource_id")},
                           {"routing key", member(document, "routing_key")}},
                          0);
}

std::string human_written(const Json& document) {
  std::vector<std::pair<std::string, std::string>> lines;
  for (const auto& [label, name] : {std::pair{"sha256", "planned_sha256"},
                                    {"generation", "generation"},
                                    {"operation", "operation_id"},
                                    {"verification", "verification"}}) {
    const std::string value = member(document, name);
    if (!value.empty()) lines.emplace_back(label, value);
  }
  return paragraph("written  ", display_scope(document)) + name_value_lines(lines);
}

std::string human_init(const Json& document) {
  const bool created = member(document, "created") == "yes";
  return paragraph(created ? "made the workspace " : "a workspace already: ", member(document, "workspace_id"));
}

std::string holder_line(const Json& holder) {
  std::string line = display_scope(holder);
  line += (line.empty() ? "" : ": ") + member(holder, "owner");
  for (const auto& [label, name] :
       {std::pair{"task", "task_id"}, {"task", "task"}, {"generation", "generation"}, {"pid", "pid"}}) {
    const std::string value = member(holder, name);
    if (!value.empty() && value != "-") line += std::string(", ") + label + " " + value;
  }
  for (const auto& [label, names] :
       {std::pair{"since", std::array{"since", "started_at"}}, {"until", std::array{"until", "expires_at"}}}) {
    for (const char* name : names) {
      const std::string value = member(holder, name);
      if (value.empty() || value == "-") continue;
      line += std::string(", ") + label + " " + display_time(value);
      break;
    }
  }
  return line;
}

}  // namespace

std::string human_answer(const std::string& verb, const Json& document, std::int64_t now_us) {
  if (verb == "scope") return human_scope(document);
  if (verb == "init") return human_init(document);
  if (verb == "acquire") return human_acquired(document, now_us);
  if (verb == "heartbeat") return human_renewed(document, now_us);
  if (verb == "release") return human_released(document);
  if (verb == "leases") return human_leases(document, now_us);
  if (verb == "status") return human_status(document);
  if (verb == "write" || verb == "edit") return human_written(document);
  if (verb == "reconcile_list") return human_reconcile_list(document);
  if (verb == "quarantine_list") return human_quarantine_list(document);
  if (verb == "command_issue") {
    return dump_ascii(Json{{"command", document.value("command", Json())},
                           {"payload_base64", document.value("payload_base64", Json())}}) +
           "\n";
  }
  if (verb == "act_prepare" || verb == "act_approve" || verb == "act_show") return human_act(document);
  if (verb == "act_list") return human_acts(document);
  if (verb == "act_commit") return human_committed(document);
  if (verb == "receiver_list") return human_receivers(document);
  if (verb == "handoff_status") return human_handoffs(document);
  if (verb == "handoff_open" || verb == "handoff_close") {
    return human_handoffs(Json{{"handoffs", Json::array({document.value("handoff", Json::object())})}});
  }
  if (verb == "evidence_log") return human_timeline(document);
  return human_document(document);
}

std::string human_refusal(const Refusal& refusal) {
  const Json error = refusal.to_json()["error"];
  // Some messages begin with their code, as the seed writes them; it is said once.
  const std::string code(refusal.code_name());
  const bool says_code = refusal.message().find(code) != std::string::npos;
  std::string out = paragraph("refused: ", plain(refusal.message()) + (says_code ? "" : " (" + code + ")"));
  const Json& details = refusal.details();
  if (details.contains("holders") && details["holders"].is_array()) {
    for (const Json& holder : details["holders"]) {
      if (holder.is_object()) out += paragraph("  held by ", holder_line(holder));
    }
  } else if (details.contains("holder") && details["holder"].is_object()) {
    out += paragraph("  held by ", holder_line(details["holder"]));
  }
  const Json in_the_way = details.contains("in_the_way") ? details["in_the_way"] : Json();
  for (const Json& entry : in_the_way.is_array() ? in_the_way : Json::array()) {
    if (!entry.is_object()) continue;
    out += paragraph("  - ", plain(text_member(entry, "why")));
    out += paragraph("    closed by ", plain(text_member(entry, "closes_with")));
  }
  std::vector<std::pair<std::string, std::string>> facts;
  for (const auto& [name, value] : details.items()) {
    if (value.is_structured() || value.is_null()) continue;
    const std::string text = name == "scope" ? display_scope(details) : human_scalar(value);
    if (plain(refusal.message()).find(text) == std::string::npos)
      facts.emplace_back(shortened(words_of(name), 30), text);
  }
  out += name_value_lines(facts);
  if (refusal.effect() != Effect::none) out += paragraph("effect: ", std::string(name_of(refusal.effect())));
  if (!refusal.evidence().empty()) out += paragraph("evidence: ", plain(refusal.evidence()));
  return out + paragraph("next: ", plain(error["next"]["hint"].get<std::string>()));
}

}  // namespace holdfast::cli
