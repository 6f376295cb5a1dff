#include "base/json.h"
#include "surfaces/cli/doctor.h"
#include "surfaces/cli/print.h"
#include "surfaces/cli/text_layout.h"

namespace holdfast::cli {
namespace {

constexpr std::size_t kOperationColumns = 11;
constexpr std::size_t kWayColumns = 26;
constexpr std::size_t kOutcomeColumns = 12;
constexpr std::size_t kIndent = 2;
constexpr std::size_t kNoteColumns = kColumns - kIndent - kOperationColumns - kWayColumns - kOutcomeColumns;

const Json& list_member(const Json& object, const char* name) {
  static const Json kEmpty = Json::array();
  if (!object.is_object() || !object.contains(name) || !object[name].is_array()) return kEmpty;
  return object[name];
}

const Json& object_member(const Json& object, const char* name) {
  static const Json kEmpty = Json::object();
  if (!object.is_object() || !object.contains(name) || !object[name].is_object()) return kEmpty;
  return object[name];
}

bool is_true(const Json& object, const char* name) {
  return object.is_object() && object.contains(name) && object[name].is_boolean() && object[name].get<bool>();
}

// What fits behind the outcome; the whole story is in --json.
std::string note_of(const Json& operation) {
  if (operation.contains("agrees") && !is_true(operation, "agrees")) return "CLAIMED: " + member(operation, "claimed");
  if (!member(operation, "errno").empty()) return member(operation, "errno");
  if (!member(operation, "noticed_within_ms").empty())
    return "within " + member(operation, "noticed_within_ms") + " ms";
  const std::string outcome = member(operation, "outcome");
  if (outcome == "let_through") return "not claimed";
  return outcome == "not_tried" || outcome == "denied" || outcome == "detected" ? member(operation, "detail") : "";
}

std::string operation_line(const Json& operation, const std::string& operation_before) {
  const std::string name = member(operation, "operation");
  std::string line(kIndent, ' ');
  line += padded(name == operation_before ? "" : shortened(name, kOperationColumns - 1), kOperationColumns);
  line += padded(shortened(words_of(member(operation, "way")), kWayColumns - 1), kWayColumns);
  line += padded(shortened(words_of(member(operation, "outcome")), kOutcomeColumns - 1), kOutcomeColumns);
  line += shortened(note_of(operation), kNoteColumns);
  return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

std::string heading_of(const Json& mechanism) {
  std::string text = is_true(mechanism, "usable") ? "usable" : "not usable";
  if (!is_true(mechanism, "held_by_this_release")) text += ", not held by this release";
  if (!is_true(mechanism, "agrees")) text += ", DOES NOT DO WHAT IS CLAIMED";
  const std::string reason = member(mechanism, "reason");
  if (!reason.empty() && reason != "-") text += ": " + reason;
  return paragraph(padded(member(mechanism, "mechanism"), kIndent + 15), text);
}

std::string mechanism_block(const Json& mechanism) {
  std::string out = "\n" + heading_of(mechanism);
  std::vector<std::pair<std::string, std::string>> lines;
  const Json& claims = object_member(mechanism, "claims");
  for (const char* name : {"denies", "diverts", "detects"}) {
    if (!list_member(claims, name).empty()) lines.emplace_back(name, joined(claims[name]));
  }
  for (const auto& [label, name] :
       {std::pair{"free after release", "freed_by_release"}, {"free after death", "freed_by_death"}}) {
    const std::string value = member(mechanism, name);
    if (!value.empty() && value != "-") lines.emplace_back(label, value);
  }
  out += name_value_lines(lines);
  std::string before;
  for (const Json& operation : list_member(mechanism, "operations")) {
    out += operation_line(operation, before);
    before = member(operation, "operation");
  }
  return out;
}

std::string publishing_line(const Json& report) {
  const Json& publishing = object_member(report, "publishing");
  if (publishing.empty()) return "";
  const auto word = [&](const char* name) {
    return is_true(object_member(publishing, name), "works") ? std::string("work") : std::string("DO NOT WORK");
  };
  return paragraph("publishing       ", "files without a name " + word("unnamed_files") + ", exchanges of two names " +
                                            word("exchange_of_names"));
}

}  // namespace

std::string human_doctor(const Json& document) {
  const Json& report = object_member(document, "doctor");
  std::string out = paragraph("file system      ", member(report, "workspace_file_system") +
                                                       (is_true(report, "local") ? ", local" : ", NOT LOCAL"));
  out += paragraph("kernel           ", member(report, "kernel") + ", user " + member(report, "user"));
  out += paragraph("lease break time ", member(report, "lease_break_seconds") + " s");
  out += publishing_line(report);
  for (const Json& mechanism : list_member(report, "mechanisms")) out += mechanism_block(mechanism);
  out += "\nNot tried\n";
  for (const Json& entry : list_member(report, "not_tried")) {
    out += paragraph("  ", member(entry, "what") + ": " + member(entry, "why"));
  }
  return out + "\n" + paragraph("", member(report, "conclusion"));
}

}  // namespace holdfast::cli
