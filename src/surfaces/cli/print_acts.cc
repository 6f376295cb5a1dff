// Acts, receivers and results for people.
#include <sstream>

#include "base/base64.h"
#include "base/json.h"
#include "surfaces/cli/print.h"
#include "surfaces/cli/text_layout.h"

namespace holdfast::cli {
namespace {

Json part(const Json& document, const char* name) {
  return document.is_object() ? document.value(name, Json()) : Json();
}

// "id=7, region=north": without the types, which the document has.
std::string row_words(const Json& key) {
  std::string text;
  if (!key.is_object()) return text;
  for (const auto& [column, typed] : key.items()) {
    const std::string value = typed.is_object() && !typed.empty() ? human_scalar(typed.front()) : human_scalar(typed);
    text += (text.empty() ? "" : ", ") + plain(column) + "=" + value;
  }
  return text;
}

// What a row's change sets, read from the exact bytes; "" of other bytes, or where they are not shown.
std::string set_words(const Json& act) {
  const auto payload = base64_decode(member(act, "payload_base64"));
  const auto change = payload ? parse_json(*payload) : std::nullopt;
  return change ? row_words(part(*change, "set")) : "";
}

std::string approval_words(const Json& act) {
  const Json approval = part(act, "approval");
  if (!approval.is_object())
    return "not yet: `holdfast act approve " + member(part(act, "command"), "operation_id") + "`";
  const std::string by = member(approval, "by");
  const std::string reason = member(approval, "reason");
  return (by.empty() ? "somebody without a name" : by) + ", " + display_time(member(approval, "at")) +
         (reason.empty() ? "" : ": " + reason);
}

std::string effect_words(const Json& outcome) {
  if (!outcome.is_object()) return "";
  const std::string version = member(outcome, "version");
  if (!version.empty()) return "row " + row_words(part(outcome, "key")) + " is at version " + version;
  const std::string sha256 = member(outcome, "planned_sha256");
  if (!sha256.empty()) return display_scope(outcome) + " holds " + sha256;
  return plain(dump_ascii(outcome));
}

// The very bytes, where they are a short text: that is what somebody approves.
std::string bytes_text(const Json& act) {
  constexpr std::size_t kShownMax = 4096;
  if (!act.contains("payload_base64")) return "";
  const auto bytes = base64_decode(text_member(act, "payload_base64"));
  std::string out = "bytes\n";
  if (!act["payload_base64"].is_string() || !bytes)
    return out + "  not in the vault any more: it cannot be committed\n";
  if (bytes->size() > kShownMax || !is_valid_utf8(*bytes)) {
    return out + paragraph("  ", std::to_string(bytes->size()) + (is_valid_utf8(*bytes) ? " of text" : ", no text") +
                                     "; `--json` has them in base64");
  }
  std::istringstream lines(*bytes);
  for (std::string line; std::getline(lines, line);) out += paragraph("  ", plain(line));
  return out;
}

}  // namespace

std::string human_act(const Json& document) {
  const Json act = part(document, "act");
  const Json command = part(act, "command");
  if (!command.is_object()) return human_document(document);
  std::vector<std::pair<std::string, std::string>> lines = {{"target", member(command, "resource")}};
  const Json key = part(act, "typed_key");
  if (key.is_object() && !key.contains("file")) lines.emplace_back("row", row_words(key));
  if (const std::string set = set_words(act); !set.empty()) lines.emplace_back("sets", set);
  lines.insert(lines.end(),
               {{"planned on", member(act, "prepared_version")},
                {"bytes", member(act, "byte_count") + ", sha256 " + member(act, "payload_sha256")},
                {"bound to", member(command, "owner") + ", task " + member(command, "task_id") + ", generation " +
                                 member(command, "generation") + ", epoch " + member(command, "control_epoch")},
                {"approved", approval_words(act)}});
  return paragraph(member(act, "state") + "  ", member(command, "operation_id")) + name_value_lines(lines) +
         bytes_text(act);
}

std::string human_acts(const Json& document) {
  const Json acts = part(document, "acts");
  if (!acts.is_array() || acts.empty()) return "no act was prepared\n";
  Table table({"ACT", "STATE", "TARGET", "OWNER", "TASK", "GEN"});
  for (const Json& act : acts) {
    table.add({member(act, "operation_id"), member(act, "state"), member(act, "resource"), member(act, "owner"),
               member(act, "task_id"), member(act, "generation")});
  }
  return table.text();
}

std::string human_committed(const Json& document) {
  const Json delivery = part(document, "outcome");
  return paragraph("committed  ", member(document, "operation_id")) +
         name_value_lines({{"effect", effect_words(part(delivery, "outcome"))},
                           {"receiver", member(delivery, "receiver")},
                           {"generation", member(delivery, "generation")},
                           {"evidence", member(document, "evidence")}});
}

std::string human_receivers(const Json& document) {
  const Json receivers = part(document, "receivers");
  if (!receivers.is_array()) return human_document(document);
  Table table({"RECEIVER", "KIND", "STATE", "MARK", "RESOURCE"});
  std::string reasons;
  for (const Json& one : receivers) {
    const bool built_in = member(one, "built_in") == "yes";
    const std::string state = member(one, "reachable") == "no" ? "unreachable" : member(one, "state");
    const std::string mark = member(one, "receiver_mark");
    table.add({member(one, "name"), member(one, "kind"), state, built_in || mark.empty() ? "-" : mark,
               built_in ? "every file://" : member(one, "resource")});
    if (const std::string reason = member(one, "reason"); !reason.empty()) {
      reasons += paragraph(member(one, "name") + ": ", reason);
    }
  }
  return table.text() + reasons;
}

}  // namespace holdfast::cli
