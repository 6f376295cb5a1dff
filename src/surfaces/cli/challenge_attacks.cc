// Writers that hold no lease: A's own open, and scripts that never asked. Each finds a sound guard; what it achieved is
// judged by what lies under the leased name, and by what the evidence chain says of it.
#include <filesystem>

#include "base/digest.h"
#include "base/json.h"
#include "surfaces/cli/challenge_play.h"

namespace holdfast::cli::challenge {
namespace {

constexpr int kAttackLimitMs = 15'000;
constexpr int kNoticeLimitMs = 5'000;
constexpr int kCaptureLimitMs = 12'000;  // the guard waits up to 10 s for a diverted writer to finish
constexpr int kToolMissing = 97;

struct Attack {
  std::string title;
  std::string script;          // $1: the file, $2: a file with other bytes
  std::string diverted_bytes;  // what it writes into what it opened; empty: unknown, or it opens nothing
  bool opens = true;           // it opens or truncates; otherwise it changes names or metadata alone
};

constexpr const char* kForeign = "foreign bytes\n";
const std::string kDirect = "A, straight into the file\n";

std::vector<Attack> attacks() {
  const std::string foreign = kForeign;
  return {
      {"a script never asked: echo > file", R"(echo "foreign bytes" > "$1")", foreign},
      {"a script never asked: echo >> file", R"(echo "foreign bytes" >> "$1")", kByB + foreign},
      {"a script never asked: truncate", R"(truncate -s 0 "$1")", ""},
      {"a script never asked: dd", R"(dd if="$2" of="$1")", foreign},
      {"a script never asked: cp", R"(cp "$2" "$1")", foreign},
      {"a script never asked: python",
       R"(command -v python3 >/dev/null || exit 97
python3 -c 'import sys; open(sys.argv[1], "w").write("foreign bytes\n")' "$1")",
       foreign},
      {"a script never asked: ln, and > the other name", R"(ln "$1" alias && echo "foreign bytes" > alias)", foreign},
      {"a script never asked: sed -i", R"(sed -i s/worker-b/foreign/ "$1")", "", false},
      {"a script never asked: mv over the file", R"(cp "$2" moved && mv -f moved "$1")", "", false},
      {"a script never asked: chmod", R"(chmod 0666 "$1")", "", false},
  };
}

// Reads the leased name again and again while it is attacked.
struct Readings {
  std::size_t count = 0;
  std::optional<std::string> other;  // the first bytes that were not B's

  void take(const std::string& path) {
    const auto bytes = Scratch::bytes_at(path);
    ++count;
    if (!other && bytes != kByB) other = bytes.value_or("(the name was gone)");
  }
};

struct Seen {
  Json diverted = nullptr;          // the event
  Json captured = nullptr;          // what was kept of the writer's bytes
  std::vector<std::string> others;  // "name_replaced (destination_identity_changed)", …
  Json events = Json::array();
};

bool is_of_the_guard(const Json& event) { return event.value("facts", Json::object()).contains("seen_at"); }

Seen seen_since(const Scratch& scratch, std::size_t place) {
  Seen seen;
  for (const Json& event : scratch.events_since(place)) {
    if (!is_of_the_guard(event)) continue;
    const Json facts = event.value("facts", Json::object());
    const std::string kind = text_member(event, "kind");
    if (kind == "write_diverted") {
      seen.diverted = event;
    } else if (kind == "diverted_bytes_captured") {
      seen.captured = facts.value("kept", Json::object());
    } else {
      const std::string fault = text_member(facts, "fault");
      seen.others.push_back(kind + (fault.empty() ? "" : " (" + fault + ")"));
    }
    seen.events.push_back(event);
  }
  return seen;
}

Seen wait_until_noticed(const Scratch& scratch, std::size_t place, const Attack& attack, int status) {
  (void)scratch.await_event(place, is_of_the_guard, kNoticeLimitMs);
  if (status == 0 && attack.opens) {
    const auto is_captured = [](const Json& event) { return text_member(event, "kind") == "diverted_bytes_captured"; };
    (void)scratch.await_event(place, is_captured, kCaptureLimitMs);
  }
  return seen_since(scratch, place);
}

std::string outcome_of(const Attack& attack, int status, bool name_is_sound, const Seen& seen) {
  if (attack.opens && !name_is_sound) return "let through";
  if (status != 0 && name_is_sound) return "denied";
  if (name_is_sound && !seen.diverted.is_null()) return "diverted";
  return seen.others.empty() ? "not noticed" : "detected";
}

// Diverted bytes have to be the writer's, all of them, where it is known what it writes.
bool kept_all(const Attack& attack, const Seen& seen) {
  return attack.diverted_bytes.empty() || text_member(seen.captured, "sha256") == sha256_hex(attack.diverted_bytes);
}

Shown judge(Play& play, const Attack& attack, int status, const Readings& readings, const Seen& seen) {
  const bool name_is_sound = !readings.other;
  play.readings += readings.count;
  Shown shown{.outcome = outcome_of(attack, status, name_is_sound, seen)};
  shown.passed = shown.outcome != "let through" && shown.outcome != "not noticed" &&
                 (shown.outcome != "diverted" || kept_all(attack, seen));
  if (shown.outcome == "diverted") {
    const std::string kept = text_member(seen.captured, "quarantine_id");
    shown.lines.push_back(kept.empty() ? "its bytes were not captured" : "its bytes are kept as " + kept);
  }
  for (const std::string& other : seen.others) shown.lines.push_back("noticed: " + other);
  shown.facts = {{"attack_status", status},
                 {"readings_of_the_name", readings.count},
                 {"first_other_bytes", readings.other ? Json(printable(*readings.other)) : Json(nullptr)},
                 {"events", seen.events}};
  return shown;
}

// Whether B's tenancy is as good as new: what was only noticed has to be ended before the next attack is judged.
Result<bool> is_sound(Play& play, const Seen& seen) {
  HF_TRY(const Json record, held_record(play, kFile));
  const Json lock = record.is_object() ? record.value("os_lock", Json::object()) : Json::object();
  return seen.others.empty() && lock.value("enforced", false) && lock.value("fault", Json()).is_null() &&
         Scratch::bytes_at(play.scratch.in(kFile)) == kByB;
}

Result<void> start_over(Play& play, const std::filesystem::perms mode, Shown& shown) {
  HF_TRY(const Answer released, release_as_b(play, kFile, play.lease_of_b));
  shown.lines.push_back(release_words(released));
  shown.facts["released"] = released.document;
  std::error_code error;
  std::filesystem::remove(play.scratch.in("alias"), error);
  std::filesystem::permissions(play.scratch.in(kFile), mode, error);
  HF_TRY(const Json lease, acquire_as_b(play, kFile, play.lease_of_b));
  HF_TRY(const Answer written, write_as_b(play, kFile, play.lease_of_b));
  if (!written.ok()) return Refusal::from_json(written.document);
  shown.lines.push_back("B holds generation " + text_member(lease, "generation") + " now, and wrote its file again");
  return {};
}

Result<Shown> run_attack(Play& play, const Attack& attack) {
  HF_CHECK(Scratch::put(play.scratch.aside("foreign"), kForeign));
  const std::size_t place = play.scratch.place_in_evidence();
  const std::string path = play.scratch.in(kFile);
  std::error_code error;
  const auto mode = std::filesystem::status(path, error).permissions();
  Readings readings;
  const std::vector<std::string> words = {"/bin/sh", "-c", attack.script, "sh", kFile, play.scratch.aside("foreign")};
  HF_TRY(const auto child, play.scratch.start(words));
  const int status = child->wait(kAttackLimitMs, [&] { readings.take(path); });
  play.scratch.note(words, *child, status);
  if (status == kToolMissing) return Shown{.outcome = "skipped", .lines = {"the program is not installed here"}};
  const Seen seen = wait_until_noticed(play.scratch, place, attack, status);
  readings.take(path);
  Shown shown = judge(play, attack, status, readings, seen);
  HF_TRY(const bool sound, is_sound(play, seen));
  if (!sound) HF_CHECK(start_over(play, mode, shown));
  return shown;
}

// The same, by A itself: the process that held the lease before.
Result<Shown> run_direct_open(Play& play) {
  const Attack attack{"", "", kDirect};
  const std::size_t place = play.scratch.place_in_evidence();
  const std::string path = play.scratch.in(kFile);
  Readings readings;
  HF_CHECK(play.worker_a->say("go on\n"));
  const auto line = play.worker_a->read_line(kAttackLimitMs, [&] { readings.take(path); });
  if (!line || !line->starts_with("direct ")) {
    return Refusal(Code::os_failed, "worker A did not open the file: " + printable(play.worker_a->errors()));
  }
  const int status = *line == "direct 0" ? 0 : 1;
  const int ended = play.worker_a->wait(kAttackLimitMs);
  play.scratch.note({"worker A"}, *play.worker_a, ended);
  const Seen seen = wait_until_noticed(play.scratch, place, attack, status);
  readings.take(path);
  return judge(play, attack, status, readings, seen);
}

}  // namespace

void add_direct_open_step(Play& play, std::vector<Step>& steps) {
  steps.push_back({"A opens the file itself, and writes", [&play] { return run_direct_open(play); }});
}

void add_attack_steps(Play& play, std::vector<Step>& steps) {
  for (const Attack& attack : attacks()) {
    steps.push_back({attack.title, [&play, attack] { return run_attack(play, attack); }});
  }
}

}  // namespace holdfast::cli::challenge
