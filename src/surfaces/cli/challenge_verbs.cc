#include "base/json.h"
#include "surfaces/cli/challenge_play.h"

namespace holdfast::cli::challenge {
namespace {

// Their names in a decision's inputs, and in a tenancy record.
constexpr std::pair<const char*, const char*> kKeys[] = {{"generation", "generation"}, {"owner", "owner"},
                                                         {"started_at", "started_at"}, {"task", "task_id"},
                                                         {"namespace", "namespace"},   {"resource_id", "resource_id"}};

Refusal refused(const Answer& answer) { return Refusal::from_json(answer.document); }

}  // namespace

Json decision_of(const std::string& decision, const std::string& verb, const Json& presented, const Json& current) {
  Json inputs = {{"revoked", false}, {"expired", false}};
  for (const auto& [input, member] : kKeys) {
    inputs["presented_" + std::string(input)] = presented.value(member, Json());
    inputs["current_" + std::string(input)] = current.is_object() ? current.value(member, Json()) : Json();
  }
  return Json{{"decision", decision}, {"verb", verb}, {"inputs", std::move(inputs)}};
}

Result<Json> held_record(Play& play, const std::string& scope) {
  HF_TRY(const Answer answer, play.scratch.ask({"leases"}));
  if (!answer.ok()) return refused(answer);
  for (const Json& record : answer.document.value("leases", Json::array())) {
    if (text_member(record, "resource_id") == "project:/" + scope) return record;
  }
  return Json();
}

Result<Json> acquire_as_b(Play& play, const std::string& scope, const std::string& lease_file) {
  HF_TRY(const Answer answer,
         play.scratch.ask({"acquire", scope, "--owner", "worker-b", "--task", "renewal", "--ttl", "15m"}));
  if (!answer.ok()) return refused(answer);
  HF_CHECK(Scratch::put(lease_file, answer.document.dump()));
  const Json leases = answer.document.value("leases", Json::array());
  if (leases.size() == 1) return leases.front();
  return Refusal(Code::os_failed, "acquire answered no lease");
}

Result<Answer> write_as_b(Play& play, const std::string& scope, const std::string& lease_file) {
  const std::string content = play.scratch.aside("by-b");
  HF_CHECK(Scratch::put(content, kByB));
  HF_TRY(const Json current, held_record(play, scope));
  HF_TRY(Answer answer, play.scratch.ask({"write", scope, "--lease", lease_file, "--from", content}));
  if (answer.ok()) {
    const auto kept = parse_json(Scratch::bytes_at(lease_file).value_or(""));
    const Json leases = kept ? kept->value("leases", Json::array()) : Json::array();
    const Json presented = leases.empty() ? Json::object() : leases.front();
    play.report.decided(decision_of("accepted", "write", presented, current));
  }
  return answer;
}

Result<Answer> release_as_b(Play& play, const std::string& scope, const std::string& lease_file) {
  return play.scratch.ask({"release", scope, "--lease", lease_file});
}

std::string release_words(const Answer& released) {
  if (!released.ok()) return "release refused: " + released.message();
  const std::string kept = text_member(released.document, "quarantine_id");
  const std::string amber = text_member(released.document, "amber_kind");
  return kept.empty() ? "released: " + amber + ", content as expected"
                      : "released: " + amber + ", the bytes are kept as " + kept;
}

}  // namespace holdfast::cli::challenge
