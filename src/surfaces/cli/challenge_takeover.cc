// A acquires and stalls; B takes over and replaces the file; A wakes up and finds that its keys are no longer good.
// With a ground (t1) A holds a prepared command for each receiver, too, and delivers it when it wakes up.
#include <algorithm>

#include "base/json.h"
#include "surfaces/cli/challenge_play.h"

namespace holdfast::cli::challenge {
namespace {

constexpr int kWorkerLimitMs = 40'000;
constexpr int kExpiryLimitMs = 20'000;
constexpr const char* kNobody = "{\"renewed_by\":\"nobody\"}\n";

constexpr const char* kTtl = "2s";
constexpr const char* kTtlOnTheGround = "4s";  // time enough for a command for each receiver

// Worker A: program, workspace, scratch folder, time limit, how many scopes, the scopes, and the words that deliver. It
// was told to go on while it was stopped, so its next act is the one that it had been about to do.
constexpr const char* kWorkerScript = R"(
folder=$2 ttl=$3 count=$4 scopes=
here=$1; shift 4
while [ "$count" -gt 0 ]; do scopes="$scopes $1"; count=$((count - 1)); shift; done
deliver() { "$@" < "$folder/a.queue"; echo "receive $?"; }
set -- "$here" "$folder" "$@"
"$0" --workspace "$1" --json acquire $scopes --owner worker-a --task renewal --ttl "$ttl" || exit 3
read -r next || exit 4
"$0" --workspace "$1" --json write renewal-result.json --lease "$2/a.json" --from "$2/by-a"; echo "write $?"
"$0" --workspace "$1" --json heartbeat renewal-result.json --lease "$2/a.json"; echo "heartbeat $?"
"$0" --workspace "$1" --json release renewal-result.json --lease "$2/a.json"; echo "release $?"
if [ -f "$2/a.queue" ]; then shift 2; deliver "$@"; fi
read -r next || exit 4
echo "A, straight into the file" > renewal-result.json; echo "direct $?"
)";

std::vector<std::string> worker_words(const Play& play) {
  const auto scopes = play.ground != nullptr ? play.ground->scopes() : std::vector<std::string>{kFile};
  std::vector<std::string> words = {"/bin/sh",
                                    "-c",
                                    kWorkerScript,
                                    play.scratch.program(),
                                    play.scratch.workspace(),
                                    play.scratch.folder(),
                                    play.ground != nullptr ? kTtlOnTheGround : kTtl,
                                    std::to_string(scopes.size())};
  words.insert(words.end(), scopes.begin(), scopes.end());
  if (play.ground != nullptr) {
    const auto receive = play.ground->receive_words(play.scratch.workspace());
    words.insert(words.end(), receive.begin(), receive.end());
  }
  return words;
}

// The scopes whose tenancies have run out, by the evidence.
bool all_expired(const Play& play) {
  auto scopes = play.ground != nullptr ? play.ground->scopes() : std::vector<std::string>{kFileScope};
  for (const Json& event : play.scratch.events_since(0)) {
    if (text_member(event, "kind") == "tenancy_ended" &&
        text_member(event.value("facts", Json::object()), "ended_by") == "expiry") {
      std::erase(scopes, text_member(event, "scope"));
    }
  }
  return scopes.empty();
}

Result<Shown> a_acquires(Play& play) {
  HF_TRY(play.worker_a, play.scratch.start(worker_words(play)));
  const auto line = play.worker_a->read_line(kWorkerLimitMs);
  if (!line) return Refusal(Code::os_failed, "worker A said nothing: " + printable(play.worker_a->errors()));
  HF_TRY(const Answer answer, answer_of_line(*line, 0));
  const Json leases = answer.document.value("leases", Json::array());
  if (leases.empty()) return Refusal::from_json(answer.document);
  HF_CHECK(Scratch::put(play.scratch.aside("a.json"), *line));
  play.lease_of_a = leases.front();
  for (const Json& lease : leases) {
    if (text_member(lease, "resource_id").ends_with(kFile)) play.lease_of_a = lease;
  }
  const Json lock = play.lease_of_a.value("os_lock", Json::object());
  Shown shown{.outcome = "generation " + text_member(play.lease_of_a, "generation")};
  shown.lines.push_back(
      "guarded by " + text_member(lock, "mechanism") +
      (lock.value("enforced", false) ? ", enforced" : ", NOT enforced: " + text_member(lock, "reason")));
  shown.facts = {{"lease", play.lease_of_a}, {"pid", play.worker_a->pid()}};
  return shown;
}

// Planned on what B will leave, so that nothing but the fence stands in the way.
Result<Shown> a_prepares(Play& play) {
  HF_TRY(play.of_a, play.ground->issue(play.scratch.workspace(), "A", play.scratch.aside("a.json"), "1", 2));
  std::string queue;
  Shown shown{.outcome = std::to_string(play.of_a.size()) + " commands"};
  for (const Sent& sent : play.of_a) {
    queue += sent.line + "\n";
    shown.facts[sent.operation_id] = parse_json(sent.line).value_or(Json());
  }
  shown.lines.push_back("one each for " + play.ground->names() + ", issued and not yet delivered");
  HF_CHECK(Scratch::put(play.scratch.aside("a.queue"), queue));
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
  const bool in_time = ended && play.scratch.await_event(
                                    0, [&play](const Json&) { return all_expired(play); }, kExpiryLimitMs);
  if (!in_time) return Shown{.passed = false, .outcome = "not expired", .lines = {"the lease did not expire in time"}};
  return Shown{
      .outcome = "expired",
      .lines = {"pid " + std::to_string(play.worker_a->pid()) + " is stopped; event " + text_member(*ended, "id")},
      .facts = {{"event", *ended}}};
}

Result<Json> b_acquires_what_a_had(Play& play) {
  if (play.ground == nullptr) return acquire_as_b(play, kFile, play.lease_of_b);
  HF_CHECK(play.ground->acquire_all("worker-b", play.lease_of_b, "15m"));
  return held_record(play, kFile);
}

Result<Shown> b_acquires(Play& play) {
  HF_TRY(const Json lease, b_acquires_what_a_had(play));
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

Result<Shown> b_acts(Play& play) {
  HF_TRY(auto sent, play.ground->issue(play.scratch.workspace(), "B", play.lease_of_b, "1", 1));
  std::erase_if(sent, [](const Sent& one) { return one.target->kind == "file"; });  // it has written that
  play.of_b = std::move(sent);
  return play.ground->deliver_and_judge(play.scratch.workspace(), play.of_b, "accepted");
}

// A's `receive`, which began as soon as A could: one line an answer, then "receive STATUS".
Result<Shown> a_delivers(Play& play) {
  std::string printed;
  for (;;) {
    const auto line = play.worker_a->read_line(kWorkerLimitMs);
    if (!line) return Refusal(Code::os_failed, "worker A delivered nothing: " + printable(play.worker_a->errors()));
    if (line->starts_with("receive ")) break;
    printed += *line + "\n";
  }
  HF_TRY(const auto answers, answers_of(printed));
  HF_TRY(const Json after, play.ground->look());
  return play.ground->judge(play.scratch.workspace(), play.of_a, answers, play.before_a_wakes, after,
                            "stale_lease_generation");
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
  if (play.ground != nullptr) { HF_TRY(play.before_a_wakes, play.ground->look()); }
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
  if (play.ground != nullptr) {
    HF_CHECK(play.ground->prepare());
    shown.lines.push_back("receivers: " + play.ground->names());
  }
  return shown;
}

void add_takeover_steps(Play& play, std::vector<Step>& steps) {
  play.lease_of_b = play.scratch.aside("b.json");
  steps.push_back({"a scratch workspace and its server", [&play] { return set_up(play); }, true});
  const bool on_ground = play.ground != nullptr;
  steps.push_back(
      {on_ground ? "A acquires every resource for 4 seconds" : "A acquires renewal-result.json for 2 seconds",
       [&play] { return a_acquires(play); }, true});
  if (on_ground) {
    steps.push_back({"A prepares a command for each receiver", [&play] { return a_prepares(play); }, true});
  }
  steps.push_back({"A is stopped, and its lease expires", [&play] { return a_is_stopped(play); }, true});
  steps.push_back({"B acquires the next generation", [&play] { return b_acquires(play); }, true});
  steps.push_back({"B replaces the file", [&play] { return b_replaces(play); }, true});
  if (on_ground) {
    steps.push_back({"B's commands reach the other receivers", [&play] { return b_acts(play); }, true});
  }
  steps.push_back({"A wakes up and uses its old keys", [&play] { return a_wakes(play); }});
  if (on_ground) {
    steps.push_back({"A delivers the commands that it held", [&play] { return a_delivers(play); }});
  }
}

}  // namespace holdfast::cli::challenge
