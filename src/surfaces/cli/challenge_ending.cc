// What is left when the attacks are over: records that wait for a person, bytes in quarantine, and B's release.
#include <set>

#include "base/json.h"
#include "surfaces/cli/challenge_play.h"

namespace holdfast::cli::challenge {
namespace {

Result<Shown> show_reconcile_list(Play& play) {
  HF_TRY(const Answer answer, play.scratch.ask({"reconcile", "list"}));
  if (!answer.ok()) return Refusal::from_json(answer.document);
  const Json records = answer.document.value("reconcile", Json::array());
  Shown shown{.outcome = std::to_string(records.size()) + " wait for a person", .facts = answer.document};
  for (const Json& record : records) {
    shown.lines.push_back(text_member(record, "id") + " " + text_member(record, "fault") + " " +
                          text_member(record, "path"));
  }
  return shown;
}

Result<Shown> show_quarantine(Play& play) {
  HF_TRY(const Answer answer, play.scratch.ask({"quarantine", "list"}));
  if (!answer.ok()) return Refusal::from_json(answer.document);
  std::map<std::string, std::size_t> kinds;
  std::set<std::string> ids;
  for (const Json& record : answer.document.value("quarantine", Json::array())) {
    ++kinds[text_member(record, "kind")];
    ids.insert(text_member(record, "id"));
  }
  Shown shown{.outcome = std::to_string(ids.size()) + " kept", .facts = answer.document};
  for (const auto& [kind, count] : kinds) shown.lines.push_back(std::to_string(count) + " " + kind);
  // Whatever the evidence says was kept has to be there.
  for (const Json& event : play.scratch.events_since(0)) {
    const Json kept = event.value("facts", Json::object()).value("kept", Json::object());
    const std::string id = text_member(kept, "quarantine_id");
    if (id.empty() || ids.contains(id)) continue;
    shown.passed = false;
    shown.lines.push_back(id + " is in the evidence, but not in quarantine");
  }
  return shown;
}

Result<Shown> b_releases(Play& play) {
  HF_TRY(const Answer answer, release_as_b(play, kFile, play.lease_of_b));
  if (!answer.ok()) return Refusal::from_json(answer.document);
  const Json check = answer.document.value("content_check", Json::object());
  HF_TRY(const Json still, held_record(play, kFile));
  return Shown{.passed = text_member(check, "status") == "match" && still.is_null() &&
                         Scratch::bytes_at(play.scratch.in(kFile)) == kByB,
               .outcome = text_member(check, "status"),
               .lines = {release_words(answer), "compared with " + text_member(check, "baseline_source")},
               .facts = {{"released", answer.document}}};
}

}  // namespace

void add_record_steps(Play& play, std::vector<Step>& steps) {
  steps.push_back({"what waits for reconciliation", [&play] { return show_reconcile_list(play); }});
  steps.push_back({"what lies in quarantine", [&play] { return show_quarantine(play); }});
}

void add_release_step(Play& play, std::vector<Step>& steps) {
  steps.push_back({"B releases: its content is compared", [&play] { return b_releases(play); }});
}

}  // namespace holdfast::cli::challenge
