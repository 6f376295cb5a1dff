#include <array>

#include "base/json.h"
#include "surfaces/cli/print.h"
#include "surfaces/cli/text_layout.h"

namespace holdfast::cli {
namespace {

const Json& list_member(const Json& document, const char* name) {
  static const Json kEmpty = Json::array();
  if (!document.is_object() || !document.contains(name) || !document[name].is_array()) return kEmpty;
  return document[name];
}

std::string first_of(const Json& record, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    std::string found = member(record, name);
    if (!found.empty() && found != "-") return found;
  }
  return "";
}

std::string id_of(const Json& record) { return first_of(record, {"id", "quarantine_id", "reconcile_id"}); }
std::string time_of(const Json& record) { return first_of(record, {"at", "ts", "time"}); }

bool is_unreadable(const Json& record) { return member(record, "unreadable") == "yes"; }

std::string unreadable_entry(const Json& record) {
  return paragraph("", id_of(record)) + paragraph("  ", "unreadable: " + member(record, "reason"));
}

// What an event's facts say that a reader of a timeline wants to know, in the order that reads well.
std::string facts_line(const Json& facts) {
  constexpr std::array kTold = {"owner",      "task",   "task_id",      "generation", "granted",   "ended_by",
                                "code",       "verb",   "operation_id", "fault",      "mechanism", "content_mismatch",
                                "amber_kind", "reason", "pid"};
  std::string line;
  if (!facts.is_object()) return line;
  for (const char* name : kTold) {
    const std::string value = member(facts, name);
    if (value.empty() || value == "-") continue;
    line += (line.empty() ? "" : ", ") + words_of(name) + " " + value;
  }
  return line;
}

std::string event_lines(const Json& event, const std::string& clock) {
  constexpr std::size_t kIndent = 10;
  const std::string kind =
      is_unreadable(event) ? "unreadable line " + member(event, "line") : words_of(member(event, "kind"));
  const std::string scope = display_scope(event);
  std::string out = paragraph(padded(clock, kIndent), kind + (scope.empty() ? "" : "  " + scope));
  const Json none = Json::object();
  const std::string facts = facts_line(event.contains("facts") ? event["facts"] : none);
  const std::string id = id_of(event);
  if (!facts.empty()) out += paragraph(std::string(kIndent, ' '), facts);
  if (!id.empty()) out += paragraph(std::string(kIndent, ' '), id);
  return out;
}

}  // namespace

std::string human_reconcile_list(const Json& document) {
  const Json& records = list_member(document, "reconcile");
  if (records.empty()) return "nothing waits for a decision\n";
  std::string out;
  for (const Json& record : records) {
    if (!record.is_object()) continue;
    if (!out.empty()) out += "\n";
    if (is_unreadable(record)) {
      out += unreadable_entry(record);
      continue;
    }
    out += paragraph("", id_of(record) + "  " + display_scope(record));
    std::vector<std::pair<std::string, std::string>> lines = {
        {"fault", words_of(first_of(record, {"fault", "verdict"}))}, {"at", display_time(time_of(record))}};
    for (const auto& [label, name] : {std::pair{"planned", "planned_sha256"},
                                      {"preimage", "preimage_sha256"},
                                      {"displaced to", "preimage_displaced_to"},
                                      {"state", "state"},
                                      {"decision", "decision"},
                                      {"what to do", "reconcile_by"}}) {
      const std::string value = member(record, name);
      if (!value.empty() && value != "-") lines.emplace_back(label, value);
    }
    out += name_value_lines(lines);
  }
  return out;
}

std::string human_quarantine_list(const Json& document) {
  const Json& records = list_member(document, "quarantine");
  if (records.empty()) return "nothing is in quarantine\n";
  std::string out;
  for (const Json& record : records) {
    if (!record.is_object()) continue;
    if (!out.empty()) out += "\n";
    if (is_unreadable(record)) {
      out += unreadable_entry(record);
      continue;
    }
    out += paragraph("", id_of(record) + "  " + display_scope(record));
    std::vector<std::pair<std::string, std::string>> lines = {{"at", display_time(time_of(record))}};
    const std::string kind = first_of(record, {"amber_kind", "kind"});
    if (!kind.empty()) lines.emplace_back("kind", words_of(kind));
    if (record.contains("byte_count") && record["byte_count"].is_number_unsigned()) {
      lines.emplace_back("size", human_bytes(record["byte_count"].get<std::uint64_t>()));
    }
    for (const auto& [label, name] : {std::pair{"sha256", "sha256"},
                                      {"owner", "owner"},
                                      {"generation", "generation"},
                                      {"ended by", "ended_by"},
                                      {"reason", "reason"}}) {
      const std::string value = member(record, name);
      if (!value.empty() && value != "-") lines.emplace_back(label, value);
    }
    out += name_value_lines(lines);
  }
  return out;
}

std::string human_timeline(const Json& document) {
  const Json& events = list_member(document, "events");
  if (events.empty()) return "no events\n";
  std::string out;
  std::string day;
  for (const Json& event : events) {
    if (!event.is_object()) continue;
    const std::string when = display_time(time_of(event));
    if (when.size() >= 19 && when.substr(0, 10) != day) {
      day = when.substr(0, 10);
      out += (out.empty() ? "" : "\n") + day + " (UTC)\n";
    }
    out += event_lines(event, when.size() >= 19 ? when.substr(11, 8) : "");
  }
  return out;
}

}  // namespace holdfast::cli
