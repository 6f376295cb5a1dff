#include "surfaces/cli/challenge.h"

#include <cstdlib>
#include <filesystem>

#include "base/clock.h"
#include "base/json.h"
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
constexpr const char* kPausedWorker = "t1";
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

void say_what_stays_unknown(const std::string& name, const Play& play, Report& report) {
  report.stays_unknown("between two of " + std::to_string(play.readings) +
                       " readings of the leased name: that no foreign byte was there then rests on the kernel's lease");
  report.stays_unknown("who changed names or metadata: the kernel tells what was done, not by whom");
  report.stays_unknown("what a privileged process does below the file system, on the block device");
  report.stays_unknown(
      "whether whoever made this package left something out: keep the digest of its manifest elsewhere");
  if (name == kPausedWorker) report.stays_unknown("receivers other than the file: this release has none");
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

int say_result(const Report& report, const std::string& package, const std::string& scratch_kept, std::int64_t took_ms,
               Output& output) {
  const int status = report.passed() ? 0 : kFailed;
  if (output.json()) {
    Json document = report.document();
    document["package"] = printable(package);
    document["milliseconds"] = took_ms;
    if (!scratch_kept.empty()) document["scratch"] = printable(scratch_kept);
    return output.document(document, status);
  }
  std::string text = std::string(report.passed() ? "passed" : "FAILED") + " in " + in_seconds(took_ms) + " s\n";
  if (!scratch_kept.empty()) text += "scratch folder     " + printable(scratch_kept) + "\n";
  text += "evidence package   " + printable(package) + "\n";
  text += "check it offline   holdfast evidence verify " + printable(package) + "\n";
  return output.text(text, status);
}

int play_challenge(const std::string& name, const ChallengeOptions& options) {
  Output& output = *options.output;
  const std::int64_t began = SystemClock().now().boot_ms;
  const auto package = package_folder(options);
  if (!package.ok()) return output.refuse(package.refusal());
  const auto asked_to_end = os::Termination::open();
  if (!asked_to_end.ok()) return output.refuse(asked_to_end.refusal());
  auto scratch = Scratch::make(temporary_parent());
  if (!scratch.ok()) return output.refuse(scratch.refusal());
  if (options.keep) (*scratch)->keep();
  const std::string kept = options.keep ? (*scratch)->folder() : std::string();
  Report report(output, name);
  Play play{.scratch = **scratch, .report = report};
  if (!output.json()) (void)output.text("Challenge " + name + ": real processes, on a scratch workspace.\n");
  const bool to_the_end =
      report.play(steps_of(name, play), **scratch, [&asked_to_end] { return (*asked_to_end)->wait(0); });
  if (!to_the_end) {
    std::error_code error;
    std::filesystem::remove(*package, error);  // empty so far
    return output.refuse(Refusal(Code::challenge_failed, "the challenge was interrupted; nothing of it is left"));
  }
  (*scratch)->end_server();
  say_what_stays_unknown(name, play, report);
  const auto written = report.write(*package, files_of(**scratch));
  if (!written.ok()) return output.refuse(written.refusal());
  const auto verified = evidence::verify_package(*package);
  if (!verified.ok()) return output.refuse(verified.refusal());
  return say_result(report, *package, kept, SystemClock().now().boot_ms - began, output);
}

}  // namespace

int run_challenge(const std::string& name, const ChallengeOptions& options) {
  if (name.empty() || name == kStaleWriter) return play_challenge(kStaleWriter, options);
  if (name == kPausedWorker) return play_challenge(kPausedWorker, options);
  if (is_role(name)) return run_role(name, *options.output);
  if (name == "t2" || name == "t3" || name == "t4") {
    return options.output->refuse(
        Refusal(Code::unsupported_here, "challenge " + name + " is not in this release", Json{{"challenge", name}}));
  }
  return options.output->refuse(Refusal(Code::challenge_unknown, "no challenge is called " + printable(name),
                                        Json{{"known", {kStaleWriter, kPausedWorker}}}));
}

}  // namespace holdfast::cli
