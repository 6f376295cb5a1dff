#include "surfaces/cli/challenge.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>

#include "base/clock.h"
#include "base/json.h"
#include "engine/receiver_registry.h"
#include "evidence/package.h"
#include "os/temporary_folder.h"
#include "os/termination.h"
#include "surfaces/cli/challenge_play.h"
#include "surfaces/cli/challenge_roles.h"
#include "surfaces/cli/request.h"

namespace holdfast::cli {
namespace {

using namespace challenge;

constexpr const char* kStaleWriter = "stale-writer";
constexpr const char* kAll = "all";
struct Named {
  const char* name;
  const char* subject;
};
constexpr Named kChallenges[] = {{kStaleWriter, "a worker that lost its lease, and writers that never asked"},
                                 {"t1", "a paused worker resumes after losing ownership"},
                                 {"t2", "a partition makes two apparent owners"},
                                 {"t3", "a delayed queue item crosses the handoff"},
                                 {"t4", "a receiver loses its high-water mark"}};
constexpr int kFailed = 1;

// Where temporary folders go. A relative TMPDIR would lead into the current folder, which is not to be touched.
std::string temporary_parent() {
  const char* named = std::getenv("TMPDIR");
  return named != nullptr && named[0] == '/' ? named : "/tmp";
}

// Checked before anything is played: nobody wants to hear at the end that it was all for nothing.
Result<std::string> package_folder(const ChallengeOptions& options) {
  if (options.package.empty()) return os::make_temporary_folder(temporary_parent(), "holdfast-evidence");
  std::string folder = absolute_path(options.package, options.current_folder);
  std::error_code error;
  if (!std::filesystem::exists(folder, error)) return folder;
  if (std::filesystem::is_directory(folder, error) && std::filesystem::is_empty(folder, error)) return folder;
  return Refusal(Code::usage, "--package: there is something at " + printable(folder) + " already");
}

std::vector<Step> steps_of(const std::string& name, Play& play) {
  std::vector<Step> steps;
  if (name == "t2") add_partition_steps(play, steps);
  if (name == "t3") add_queue_steps(play, steps);
  if (name == "t4") add_lost_mark_steps(play, steps);
  if (!steps.empty()) return steps;
  add_takeover_steps(play, steps);
  add_direct_open_step(play, steps);
  if (name == kStaleWriter) {
    add_attack_steps(play, steps);
    add_race_steps(play, steps);
    add_record_steps(play, steps);
  }
  add_release_step(play, steps);
  return steps;
}

void say_what_stays_unknown(const Play& play, Report& report) {
  if (play.readings > 0) {
    report.stays_unknown(
        "between two of " + std::to_string(play.readings) +
        " readings of the leased name: that no foreign byte was there then rests on the kernel's lease");
    report.stays_unknown("who changed names or metadata: the kernel tells what was done, not by whom");
  }
  if (play.ground != nullptr) play.ground->say_what_stays_unknown();
  report.stays_unknown("what a privileged process does below the file system, on the block device");
  report.stays_unknown(
      "whether whoever made this package left something out: keep the digest of its manifest elsewhere");
}

std::map<std::string, std::string> files_of(const Scratch& scratch) {
  std::map<std::string, std::string> files = scratch.evidence_segments();
  std::error_code error;
  for (const char* kind : {"reconcile", "quarantine"}) {
    std::filesystem::directory_iterator entry(scratch.in(std::string(".squad/evidence/") + kind), error);
    for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
      const std::string path = entry->path().string();
      if (path.ends_with(".json")) files[entry->path().filename().string()] = Scratch::bytes_at(path).value_or("");
    }
  }
  return files;
}

std::string in_seconds(std::int64_t ms) { return std::to_string(ms / 1000) + "." + std::to_string(ms % 1000 / 100); }

struct Played {
  Json document;  // the challenge's own
  evidence::Package package;
  std::string scratch_kept = {};
};

// nullopt: it was interrupted.
Result<std::optional<Played>> play_one(const std::string& name, const ChallengeOptions& options,
                                       os::Termination& asked_to_end) {
  Output& output = *options.output;
  const std::int64_t began = SystemClock().now().boot_ms;
  HF_TRY(auto scratch, Scratch::make(temporary_parent()));
  if (options.keep) scratch->keep();
  Report report(output, name);
  Ground ground(*scratch, report, options.postgres);
  Play play{.scratch = *scratch, .report = report, .ground = name == kStaleWriter ? nullptr : &ground};
  if (!output.json()) {
    std::string subject;
    for (const Named& one : kChallenges) subject = one.name == name ? one.subject : subject;
    (void)output.text("Challenge " + name + ": " + subject + ".\n");
  }
  const bool to_the_end = report.play(steps_of(name, play), *scratch, [&asked_to_end] { return asked_to_end.wait(0); });
  if (!to_the_end) return std::optional<Played>();
  scratch->end_server();
  say_what_stays_unknown(play, report);
  Played played{report.document(), report.package(files_of(*scratch))};
  played.document["milliseconds"] = SystemClock().now().boot_ms - began;
  if (options.keep) played.scratch_kept = scratch->folder();
  return std::optional(std::move(played));
}

// The documents of several challenges as one: each step and what stays unknown with its challenge's name.
Played together(std::map<std::string, Played> all) {
  Played whole{Json{{"challenge", kAll}, {"passed", true}, {"steps", Json::array()}, {"unknown", Json::array()}}, {}};
  for (const Named& one : kChallenges) {
    Played& played = all.at(one.name);
    whole.document["passed"] = whole.document["passed"] == true && played.document["passed"] == true;
    for (Json& step : played.document["steps"]) {
      step["challenge"] = one.name;
      whole.document["steps"].push_back(std::move(step));
    }
    for (const Json& what : played.document["unknown"]) {
      whole.document["unknown"].push_back(std::string(one.name) + ": " + what.get<std::string>());
    }
    whole.document["challenges"][one.name] = {{"passed", played.document["passed"]},
                                              {"milliseconds", played.document["milliseconds"]}};
    if (!played.scratch_kept.empty())
      whole.scratch_kept += (whole.scratch_kept.empty() ? "" : " ") + played.scratch_kept;
    whole.package.parts[one.name] = std::move(played.package);
  }
  whole.package.facts = manifest_facts(kAll, whole.document["passed"] == true, Json::array());
  return whole;
}

int say_result(Json document, const std::string& package, const std::string& scratch_kept, std::int64_t took_ms,
               Output& output) {
  const bool passed = document["passed"] == true;
  const int status = passed ? 0 : kFailed;
  if (output.json()) {
    document["package"] = printable(package);
    document["milliseconds"] = took_ms;
    if (!scratch_kept.empty()) document["scratch"] = printable(scratch_kept);
    return output.document(document, status);
  }
  std::string text;
  const Json each = document.value("challenges", Json::object());
  for (const auto& [name, one] : each.items()) {
    text += name + std::string(name.size() < 14 ? 14 - name.size() : 1, ' ') +
            (one["passed"] == true ? "passed" : "FAILED") + "\n";
  }
  text += std::string(passed ? "passed" : "FAILED") + " in " + in_seconds(took_ms) + " s\n";
  if (!scratch_kept.empty()) text += "scratch folder     " + printable(scratch_kept) + "\n";
  text += "evidence package   " + printable(package) + "\n";
  text += "check it offline   holdfast evidence verify " + printable(package) + "\n";
  return output.text(text, status);
}

Result<std::optional<Played>> play_named(const std::string& name, const ChallengeOptions& options) {
  HF_TRY(const auto asked_to_end, os::Termination::open());
  if (name != kAll) return play_one(name, options, *asked_to_end);
  std::map<std::string, Played> all;
  for (const Named& one : kChallenges) {
    HF_TRY(auto played, play_one(one.name, options, *asked_to_end));
    if (!played) return std::optional<Played>();
    if (!options.output->json()) (void)options.output->text("\n");
    all[one.name] = std::move(*played);
  }
  return std::optional(together(std::move(all)));
}

int play_challenge(const std::string& name, const ChallengeOptions& options) {
  Output& output = *options.output;
  const std::int64_t began = SystemClock().now().boot_ms;
  if (auto secret = engine::check_no_password(Json{{"connection", options.postgres}}); !secret.ok()) {
    return output.refuse(secret.refusal());
  }
  const auto folder = package_folder(options);
  if (!folder.ok()) return output.refuse(folder.refusal());
  auto played = play_named(name, options);
  if (!played.ok() || !*played) {
    std::error_code error;
    std::filesystem::remove(*folder, error);  // empty so far
    if (!played.ok()) return output.refuse(played.refusal());
    return output.refuse(Refusal(Code::challenge_failed, "the challenge was interrupted; nothing of it is left"));
  }
  const auto written = evidence::write_package(*folder, (*played)->package);
  if (!written.ok()) return output.refuse(written.refusal());
  const auto verified = evidence::verify_package(*folder);
  if (!verified.ok()) return output.refuse(verified.refusal());
  return say_result((*played)->document, *folder, (*played)->scratch_kept, SystemClock().now().boot_ms - began, output);
}

}  // namespace

int run_challenge(const std::string& name, const ChallengeOptions& options) {
  if (name.empty()) return play_challenge(kStaleWriter, options);
  if (is_role(name)) return run_role(name, *options.output);
  Json known = Json::array();
  for (const Named& one : kChallenges) known.push_back(one.name);
  known.push_back(kAll);
  if (std::find(known.begin(), known.end(), name) != known.end()) return play_challenge(name, options);
  std::string names;
  for (const Json& one : known) names += (names.empty() ? "" : ", ") + one.get<std::string>();
  return options.output->refuse(Refusal(Code::challenge_unknown,
                                        "no challenge is called " + printable(name) + "; there are: " + names,
                                        Json{{"known", known}}));
}

}  // namespace holdfast::cli
