// A folder that is redirected, and a preimage that is displaced: first at rest, then in the very window between the
// last check and the rename. The window is won by a real process (os/name_swap.h) that waits for the temporary name.
#include <filesystem>

#include "base/clock.h"
#include "base/json.h"
#include "surfaces/cli/challenge_play.h"
#include "surfaces/cli/challenge_roles.h"

namespace holdfast::cli::challenge {
namespace {

namespace fs = std::filesystem;

constexpr int kRoundsMax = 12;
constexpr int kRoundLimitMs = 10'000;
constexpr int kAfterwardsMs = 1'000;         // what the neighbour did, it has done by then
constexpr std::int64_t kTogetherMs = 6'000;  // no further round after so long
constexpr const char* kDecoy = "a decoy\n";
constexpr const char* kPreimage = "{\"renewed_by\":\"nobody\"}\n";

// One round of a race. Every round has files of its own, so that nothing of an earlier one waits on them.
struct Round {
  std::string folder;  // the leased file's
  std::string one;     // what changes places, from the workspace's root
  std::string other;
  std::string file() const { return folder + "/" + kFile; }
};

struct Outcome {
  Answer written;
  Json swap = Json::object();
};

Result<void> make_link(const std::string& target, const std::string& path) {
  std::error_code error;
  fs::create_directory_symlink(target, path, error);
  if (!error) return {};
  return Refusal(Code::os_failed, "a link cannot be made: " + error.message());
}

Result<void> rename_back(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (!error) return {};
  return Refusal(Code::os_failed, "a folder cannot be put back: " + error.message());
}

Result<Shown> redirect_before(Play& play) {
  Scratch& scratch = play.scratch;
  const std::string file = std::string("redirected/") + kFile;
  const std::string lease = scratch.aside("redirected.json");
  HF_CHECK(Scratch::put(scratch.in(file), kPreimage));
  HF_CHECK(Scratch::put(scratch.in(std::string("elsewhere/") + kFile), kDecoy));
  HF_TRY(const Json acquired, acquire_as_b(play, file, lease));
  HF_CHECK(rename_back(scratch.in("redirected"), scratch.in("redirected.moved")));
  HF_CHECK(make_link("elsewhere", scratch.in("redirected")));
  HF_TRY(const Answer written, write_as_b(play, file, lease));
  const bool untouched = Scratch::bytes_at(scratch.in(std::string("elsewhere/") + kFile)) == kDecoy &&
                         Scratch::bytes_at(scratch.in(std::string("redirected.moved/") + kFile)) == kPreimage;
  std::error_code error;
  fs::remove(scratch.in("redirected"), error);
  HF_CHECK(rename_back(scratch.in("redirected.moved"), scratch.in("redirected")));
  HF_TRY(const Answer released, release_as_b(play, file, lease));
  return Shown{.passed = untouched && written.code() == "destination_parent_redirected" && released.ok(),
               .outcome = written.ok() ? "not refused" : "refused",
               .lines = {written.message(), "nothing was written, there or here; the folder is put back",
                         release_words(released)},
               .facts = {{"lease", acquired}, {"written", written.document}, {"released", released.document}}};
}

Result<Outcome> race(Play& play, const Round& round, const std::string& lease) {
  Scratch& scratch = play.scratch;
  const std::vector<std::string> words = {scratch.program(), "--json", "challenge", kSwapNamesRole};
  HF_TRY(const auto neighbour, scratch.start(words));
  Json wish = {{"folder", scratch.in(round.folder)}, {"prefix", ".holdfast-"}, {"limit_ms", kRoundLimitMs}};
  wish["one"] = scratch.in(round.one);
  wish["other"] = scratch.in(round.other);
  wish["against_pid"] = scratch.server_pid();
  HF_CHECK(neighbour->say(wish.dump()));
  neighbour->close_input();
  if (!neighbour->read_line(kRoundLimitMs)) {
    return Refusal(Code::os_failed, "the neighbour did not come up: " + printable(neighbour->errors()));
  }
  Outcome outcome;
  HF_TRY(outcome.written, write_as_b(play, round.file(), lease));
  const auto said = neighbour->read_line(kAfterwardsMs);
  scratch.note(words, *neighbour, neighbour->wait(kAfterwardsMs));
  outcome.swap = parse_json(said.value_or("")).value_or(Json::object());
  return outcome;
}

using Prepare = std::function<Result<Round>(const std::string& name)>;
using PutBack = std::function<Result<void>(const Round& round)>;

// A fault that the program classified, with a record that waits for a person.
bool is_shown(const Outcome& outcome, const std::string& fault) {
  const Json record = outcome.written.details().value("reconcile", Json::object());
  return outcome.written.code() == fault && !text_member(record, "id").empty();
}

Result<Shown> win_a_race(Play& play, const std::string& name, const std::string& fault, const Prepare& prepare,
                         const PutBack& put_back) {
  const std::int64_t began = SystemClock().now().boot_ms;
  Shown shown;
  int rounds = 0;
  for (bool won = false; !won && rounds < kRoundsMax && SystemClock().now().boot_ms - began < kTogetherMs;) {
    ++rounds;
    HF_TRY(const Round round, prepare(rounds == 1 ? name : name + "-" + std::to_string(rounds)));
    const std::string lease = play.scratch.aside(name + ".json");
    HF_TRY(const Json acquired, acquire_as_b(play, round.file(), lease));
    HF_TRY(const Outcome outcome, race(play, round, lease));
    if (outcome.swap.value("swapped", false)) HF_CHECK(put_back(round));
    HF_TRY(const Answer released, release_as_b(play, round.file(), lease));
    won = is_shown(outcome, fault);
    const Json record = outcome.written.details().value("reconcile", Json::object());
    // A neighbour that came too early or too late is answered, too, by another of the destination's codes.
    shown = {.passed = outcome.written.ok() || outcome.written.code().starts_with("destination_"),
             .outcome = won ? "reconciliation" : "not shown this time",
             .lines = {outcome.written.ok() ? "the write was over before" : outcome.written.message()},
             .facts = {{"written", outcome.written.document}, {"swap", outcome.swap}, {"released", released.document}}};
    if (won) shown.lines.push_back("record " + text_member(record, "id") + " waits for a person");
    shown.lines.push_back(release_words(released));
  }
  shown.facts["rounds"] = rounds;
  if (shown.outcome == "reconciliation") return shown;
  shown.lines.insert(shown.lines.begin(), "in " + std::to_string(rounds) + " rounds the neighbour was never in time; " +
                                              "what the last one led to:");
  play.report.stays_unknown(name + ": the window between check and rename was not hit in " + std::to_string(rounds) +
                            " rounds, so what the program answers then was not shown");
  return shown;
}

Result<Shown> redirect_in_the_window(Play& play) {
  Scratch& scratch = play.scratch;
  const Prepare prepare = [&scratch](const std::string& name) -> Result<Round> {
    HF_CHECK(Scratch::put(scratch.in(name + "/" + kFile), kPreimage));
    HF_CHECK(make_link("elsewhere", scratch.in(name + ".link")));
    return Round{name, name, name + ".link"};
  };
  const PutBack put_back = [&scratch](const Round& round) -> Result<void> {
    std::error_code error;
    fs::remove(scratch.in(round.one), error);
    return rename_back(scratch.in(round.other), scratch.in(round.one));
  };
  HF_TRY(Shown shown, win_a_race(play, "redirected-in-the-window", "destination_name_redirected", prepare, put_back));
  if (Scratch::bytes_at(scratch.in(std::string("elsewhere/") + kFile)) != kDecoy) {
    shown.passed = false;
    shown.lines.push_back("the file behind the link was changed");
  }
  return shown;
}

Result<Shown> displace_in_the_window(Play& play) {
  Scratch& scratch = play.scratch;
  const Prepare prepare = [&scratch](const std::string& name) -> Result<Round> {
    const Round round{name, name + "/" + kFile, name + "/foreign.json"};
    HF_CHECK(Scratch::put(scratch.in(round.file()), kPreimage));
    HF_CHECK(Scratch::put(scratch.in(round.other), kDecoy));
    return round;
  };
  const PutBack leave_it = [](const Round&) -> Result<void> { return {}; };
  return win_a_race(play, "displaced", "destination_preimage_displaced", prepare, leave_it);
}

}  // namespace

void add_race_steps(Play& play, std::vector<Step>& steps) {
  steps.push_back({"the folder is swapped for a link before a write", [&play] { return redirect_before(play); }});
  steps.push_back({"... and in the window before the rename", [&play] { return redirect_in_the_window(play); }});
  steps.push_back({"the preimage is displaced in that window", [&play] { return displace_in_the_window(play); }});
}

}  // namespace holdfast::cli::challenge
