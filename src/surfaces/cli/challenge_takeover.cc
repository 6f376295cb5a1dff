// A acquires and stalls; B takes over and replaces the file; A wakes up and finds that its keys are no longer good.
#include "base/json.h"
#include "surfaces/cli/challenge_play.h"

namespace holdfast::cli::challenge {
namespace {

constexpr int kWorkerLimitMs = 40'000;
constexpr int kExpiryLimitMs = 20'000;
constexpr const char* kNobody = "{\"renewed_by\":\"nobody\"}\n";

// Worker A. It was told to go on while it was stopped, so its next act is the one that it had been about to do.
constexpr const char* kWorkerScript = R"(
"$0" --workspace "$1" --json acquire renewal-result.json --owner worker-a --task renewal --ttl 2s || exit 3
read -r next || exit 4
"$0" --workspace "$1" --json write renewal-result.json --lease "$2/a.json" --from "$2/by-a"; echo "write $?"
"$0" --workspace "$1" --json heartbeat renewal-result.json --lease "$2/a.json"; echo "heartbeat $?"
"$0" --workspace "$1" --json release renewal-result.json --lease "$2/a.json"; echo "release $?"
read -r next || exit 4
echo "A, straight into the file" > renewal-result.json; echo "direct $?"
)";

std::vector<std::string> worker_words(const Scratch& scratch) {
  return {"/bin/sh", "-c", kWorkerScript, scratch.program(), scratch.workspace(), scratch.folder()};
}

Result<Shown> set_up(Play& play) {
  HF_TRY(const Answer made, play.scratch.ask({"init"}));
  if (!made.ok()) return Refusal::from_json(made.document);
  HF_CHECK(Scratch::put(play.scratch.in(kFile), kNobody));
  HF_CHECK(Scratch::put(play.scratch.aside("by-a"), kByA));
  HF_TRY(const Json ready, play.scratch.serve());
  Shown shown{.outcome = "serving"};
  shown.lines.push_back("server pid " + std::to_string(play.scratch.server_pid()) + ", file system " +
                        text_member(made.document, "file_system"));
  shown.facts = {{"init", made.document}, {"ready", ready}};
  return shown;
}

Result<Shown> a_acquires(Play& play) {
  HF_TRY(play.worker_a, play.scratch.start(worker_words(play.scratch)));
  const auto line = play.worker_a->read_line(kWorkerLimitMs);
  if (!line) return Refusal(Code::os_failed, "worker A said nothing: " + printable(play.worker_a->errors()));
  HF_TRY(const Answer answer, answer_of_line(*line, 0));
  const Json leases = answer.document.value("leases", Json::array());
  if (leases.size() != 1) return Refusal::from_json(answer.document);
  HF_CHECK(Scratch::put(play.scratch.aside("a.json"), *line));
  play.lease_of_a = leases.front();
  const Json lock = play.lease_of_a.value("os_lock", Json::object());
  Shown shown{.outcome = "generation " + text_member(play.lease_of_a, "generation")};
  shown.lines.push_back(
      "guarded by " + text_member(lock, "mechanism") +
      (lock.value("enforced", false) ? ", enforced" : ", NOT enforced: " + text_member(lock, "reason")));
  shown.facts = {{"lease", play.lease_of_a}, {"pid", play.worker_a->pid()}};
  return shown;
}

Result<Shown> a_is_stopped(Play& play) {
  HF_CHECK(play.worker_a->stop());
  // What A is going to do next lies ready for it: nobody has to tell it anything when it wakes up.
  HF_CHECK(play.worker_a->say("go on\n"));
  const auto ended = play.scratch.await_event(
      0,
      [](const Json& event) {
        return text_member(event, "kind") == "tenancy_ended" &&
               text_member(event.value("facts", Json::object()), "ended_by") == "expiry";
      },
      kExpiryLimitMs);
  if (!ended) return Shown{.passed = false, .outcome = "not expired", .lines = {"the lease did not expire in time"}};
  return Shown{
      .outcome = "expired",
      .lines = {"pid " + std::to_string(play.worker_a->pid()) + " is stopped; event " + text_member(*ended, "id")},
      .facts = {{"event", *ended}}};
}

Result<Shown> b_acquires(Play& play) {
  HF_TRY(const Json lease, acquire_as_b(play, kFile, play.lease_of_b));
  const auto before = exact_u64(play.lease_of_a.value("generation", Json()));
  const auto now = exact_u64(lease.value("generation", Json()));
  return Shown{.passed = before && now && *now > *before,
               .outcome = "generation " + text_member(lease, "generation"),
               .facts = {{"lease", lease}}};
}

Result<Shown> b_replaces(Play& play) {
  HF_TRY(const Answer answer, write_as_b(play, kFile, play.lease_of_b));
  if (!answer.ok()) return Refusal::from_json(answer.document);
  const bool there = Scratch::bytes_at(play.scratch.in(kFile)) == kByB;
  return Shown{.passed = there && text_member(answer.document, "verification") == "complete",
               .outcome = "verified",
               .lines = {text_member(answer.document, "published_identity") + ", verification complete"},
               .facts = {{"written", answer.document}}};
}

// One of A's verbs: its document, then "VERB STATUS".
Result<Answer> next_of_a(Play& play, const std::string& verb) {
  const auto line = play.worker_a->read_line(kWorkerLimitMs);
  const auto status = play.worker_a->read_line(kWorkerLimitMs);
  if (!line || !status || !status->starts_with(verb + " ")) {
    return Refusal(Code::os_failed, "worker A did not " + verb + ": " + printable(play.worker_a->errors()));
  }
  return answer_of_line(*line, *status == verb + " 0" ? 0 : 1);
}

Result<Shown> a_wakes(Play& play) {
  HF_TRY(const Json current, held_record(play, kFile));
  const std::string expected = "stale_lease_generation: expected " + text_member(play.lease_of_a, "generation") +
                               ", current " + text_member(current, "generation");
  play.worker_a->resume();
  Shown shown{.outcome = "refused"};
  Json answers = Json::object();
  for (const char* verb : {"write", "heartbeat", "release"}) {
    HF_TRY(const Answer answer, next_of_a(play, verb));
    answers[verb] = answer.document;
    shown.lines.push_back(std::string(verb) + ": " + (answer.ok() ? "accepted" : answer.message()));
    shown.passed = shown.passed && !answer.ok() && answer.message() == expected;
    play.report.decided(decision_of(answer.ok() ? "accepted" : answer.code(), verb, play.lease_of_a, current));
  }
  shown.passed = shown.passed && Scratch::bytes_at(play.scratch.in(kFile)) == kByB;
  if (!shown.passed) shown.outcome = "not refused";
  shown.facts = {{"answers", answers}, {"current", current}};
  return shown;
}

}  // namespace

void add_takeover_steps(Play& play, std::vector<Step>& steps) {
  play.lease_of_b = play.scratch.aside("b.json");
  steps.push_back({"a scratch workspace and its server", [&play] { return set_up(play); }, true});
  steps.push_back({"A acquires renewal-result.json for 2 seconds", [&play] { return a_acquires(play); }, true});
  steps.push_back({"A is stopped, and its lease expires", [&play] { return a_is_stopped(play); }, true});
  steps.push_back({"B acquires the next generation", [&play] { return b_acquires(play); }, true});
  steps.push_back({"B replaces the file", [&play] { return b_replaces(play); }, true});
  steps.push_back({"A wakes up and uses its old keys", [&play] { return a_wakes(play); }});
}

}  // namespace holdfast::cli::challenge
