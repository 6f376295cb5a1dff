#include <optional>

#include "base/clock.h"
#include "base/json.h"
#include "surfaces/cli/print.h"
#include "surfaces/cli/text_layout.h"

namespace holdfast::cli {
namespace {

const Json kNone = Json::object();

const Json& object_member(const Json& object, const char* name) {
  if (!object.is_object() || !object.contains(name) || !object[name].is_object()) return kNone;
  return object[name];
}

// Seconds to the deadline: as the engine says by the boot clock, else by the wall clock.
std::optional<std::int64_t> seconds_left(const Json& record, std::int64_t now_us) {
  if (record.is_object() && record.contains("remaining_seconds") && record["remaining_seconds"].is_number()) {
    return record["remaining_seconds"].get<std::int64_t>();
  }
  std::int64_t wall_us = 0;
  if (!parse_wall(text_member(record, "expires_at"), wall_us)) return std::nullopt;
  return (wall_us - now_us) / 1'000'000;
}

std::string left_of(const Json& record, std::int64_t now_us) {
  const std::string state = member(record, "state");
  if (state == "revoked" || state == "expired") return state;
  const auto left = seconds_left(record, now_us);
  if (!left) return "-";
  return *left <= 0 ? "expired" : human_duration(*left);
}

bool is_enforced(const Json& os_lock) {
  return os_lock.contains("enforced") && os_lock["enforced"].is_boolean() && os_lock["enforced"].get<bool>();
}

bool has_fault(const Json& os_lock) { return os_lock.contains("fault") && !os_lock["fault"].is_null(); }

std::string guard_of(const Json& record) {
  const Json& os_lock = object_member(record, "os_lock");
  if (has_fault(os_lock)) return "fault";
  if (!is_enforced(os_lock)) return "none";
  const std::string mechanism = member(os_lock, "mechanism");
  return mechanism.empty() ? "enforced" : mechanism;
}

std::string holder_of(const Json& record) {
  const Json liveness = record.value("liveness", Json());
  return liveness_words(member(liveness.is_object() ? liveness : record, liveness.is_object() ? "holder" : "liveness"));
}

std::string until_of(const Json& record, std::int64_t now_us) {
  std::string until = display_time(text_member(record, "expires_at"));
  if (const auto left = seconds_left(record, now_us)) until += " (" + human_distance(*left) + ")";
  return until;
}

std::string enforcement_of(const Json& record) {
  const Json& os_lock = object_member(record, "os_lock");
  if (is_enforced(os_lock)) return "enforced by " + member(os_lock, "mechanism");
  const std::string why = has_fault(os_lock) ? member(os_lock, "fault") : member(os_lock, "reason");
  return "not enforced" + (why.empty() || why == "-" ? "" : ": " + words_of(why));
}

// The KEYS to say again, in lines that a shell reads as one.
std::string keys_lines(const Json& record) {
  std::vector<std::string> words;
  for (const auto& [option, name] : {std::pair{"--owner", "owner"},
                                     {"--task", "task_id"},
                                     {"--generation", "generation"},
                                     {"--started-at", "started_at"}}) {
    if (!record.contains(name) || record[name].is_structured()) return "";
    const Json& value = record[name];
    const std::string text = value.is_string() ? value.get<std::string>() : dump_ascii(value);
    // A name that a terminal would obey is not repeated as it is: --json has it.
    if (plain(text) != text) return "  keys        see --json: a name has characters that are not shown here\n";
    words.push_back(std::string(option) + " " + shell_quoted(text));
  }
  std::string out;
  constexpr std::size_t kIndent = 13;  // and a space: where name_value_lines puts the other values
  std::string line = padded("  keys", kIndent);
  for (const std::string& word : words) {
    if (width_of(line) + 1 + width_of(word) + 2 > kColumns && line.size() > kIndent) {
      out += line + " \\\n";
      line = std::string(kIndent, ' ');
    }
    line += " " + word;
  }
  return out + line + "\n";
}

std::string lease_block(const Json& record, std::int64_t now_us) {
  std::vector<std::pair<std::string, std::string>> lines = {
      {"owner", member(record, "owner") + ", task " + member(record, "task_id")},
      {"generation", member(record, "generation")},
      {"until", until_of(record, now_us)},
      {"guard", enforcement_of(record)}};
  const Json& os_lock = object_member(record, "os_lock");
  for (const char* name : {"denies", "diverts", "detects"}) {
    if (os_lock.contains(name) && os_lock[name].is_array() && !os_lock[name].empty()) {
      lines.emplace_back(name, joined(os_lock[name]));
    }
  }
  if (is_enforced(os_lock) && os_lock.contains("preexisting_writers")) {
    lines.emplace_back("writers", member(os_lock, "preexisting_writers"));
  }
  return paragraph("", display_scope(record)) + name_value_lines(lines);
}

const Json& list_member(const Json& document, const char* name) {
  static const Json kEmpty = Json::array();
  if (!document.is_object() || !document.contains(name) || !document[name].is_array()) return kEmpty;
  return document[name];
}

}  // namespace

std::string liveness_words(const std::string& liveness) {
  if (liveness == "dead") return "proven dead";
  if (liveness == "not_needed") return "no server";
  return liveness == "alive" ? "alive" : "unknown";
}

std::string human_leases(const Json& document, std::int64_t now_us) {
  const Json& leases = list_member(document, "leases");
  if (leases.empty()) return "no leases\n";
  Table table({"SCOPE", "OWNER", "TASK", "GEN", "LEFT", "GUARD", "HOLDER"});
  for (const Json& record : leases) {
    if (!record.is_object()) continue;
    table.add({display_scope(record), member(record, "owner"), member(record, "task_id"), member(record, "generation"),
               left_of(record, now_us), guard_of(record), holder_of(record)});
  }
  return table.text();
}

std::string human_acquired(const Json& document, std::int64_t now_us) {
  std::string out;
  const std::string granted = member(document, "granted");
  for (const Json& record : list_member(document, "leases")) {
    if (!record.is_object()) continue;
    out += (out.empty() ? "" : "\n") + lease_block(record, now_us) + keys_lines(record);
  }
  if (granted == "existing") out += "\nYou held it already: nothing changed.\n";
  if (granted == "regrant") out += "\nGranted again under a new generation: the old one is fenced.\n";
  return out;
}

std::string human_renewed(const Json& document, std::int64_t now_us) {
  const Json& record = object_member(document, "lease");
  return paragraph("renewed  ", display_scope(record)) + paragraph("until    ", until_of(record, now_us));
}

// Of a folder: the first paths that nobody answers for, and how many there are.
std::string changes_below(const Json& check) {
  static constexpr std::size_t kShown = 10;
  std::string out;
  std::size_t shown = 0;
  for (const Json& change : list_member(check, "changed")) {
    if (member(change, "how") != "ungated" || shown == kShown) continue;
    ++shown;
    const Json& expected = object_member(change, "expected");
    const Json& actual = object_member(change, "actual");
    const char* how = expected.empty() ? " (new)" : actual.empty() ? " (gone)" : "";
    out += paragraph("changed   ", member(change, "path") + how);
  }
  const std::string all = member(check, "ungated");
  if (shown == kShown && all != std::to_string(kShown)) out += paragraph("changed   ", "…and more: " + all + " in all");
  return out;
}

std::string human_released(const Json& document) {
  std::string out = paragraph("released  ", member(document, "released"));
  const Json& check = object_member(document, "content_check");
  const auto mismatch = document.find("content_mismatch");
  if (mismatch == document.end() || !mismatch->is_boolean() || !mismatch->get<bool>()) {
    const std::string status = member(check, "status");
    return out + (status.empty() ? "" : paragraph("content   ", words_of(status)));
  }
  out += paragraph("content   ",
                   "not what the last gated write left (" + words_of(member(check, "baseline_source")) + ")");
  out += changes_below(check);
  for (const auto& [label, name] : {std::pair{"expected  ", "expected_sha256"},
                                    {"found     ", "actual_sha256"},
                                    {"expected  ", "expected_fnv1a"},
                                    {"found     ", "actual_fnv1a"}}) {
    if (!member(check, name).empty()) out += paragraph(label, member(check, name));
  }
  for (const char* name : {"quarantine_id", "quarantine", "amber_id"}) {
    const std::string id = member(document, name);
    if (!id.empty() && id != "-") out += paragraph("kept as   ", id + "; see `holdfast quarantine show " + id + "`");
  }
  if (check.value("actual_exists", Json()) == Json(false))
    out += paragraph("note      ", "nothing bears the name any more, so nothing could be kept");
  const std::string warning = member(document, "warning");
  return warning.empty() || warning == "-" ? out : out + paragraph("warning   ", warning);
}

std::string waiting_line(const Json& waiting) {
  const Json holders = waiting.value("holders", Json::array());
  std::string line = "waiting";
  if (holders.is_array() && !holders.empty()) {
    const Json& first = holders.front();
    line += " for " + display_scope(first) + ": " + member(first, "owner") + ", task " + member(first, "task_id") +
            ", since " + display_time(text_member(first, "since")) + ", until " +
            display_time(text_member(first, "until"));
    if (holders.size() > 1) line += ", and " + std::to_string(holders.size() - 1) + " more";
  } else {
    line += " for those who came earlier";
  }
  if (const std::string place = member(waiting, "place"); !place.empty() && place != "-") {
    line += "; place " + place + " in the queue";
  }
  return plain(line);
}

}  // namespace holdfast::cli
