#include "surfaces/cli/challenge_report.h"

#include "base/clock.h"
#include "base/json.h"
#include "surfaces/cli/challenge_scratch.h"
#include "surfaces/cli/text_layout.h"

#ifndef HOLDFAST_VERSION
#define HOLDFAST_VERSION "development"
#endif

namespace holdfast::cli::challenge {
namespace {

constexpr std::size_t kTitleColumns = 48;
constexpr const char* kIndent = "        ";

Shown failed(const Refusal& refusal) {
  return {.passed = false,
          .outcome = std::string(refusal.code_name()),
          .lines = {refusal.message()},
          .facts = {{"refusal", refusal.to_json()}}};
}

}  // namespace

void Report::say(const std::string& text) {
  if (!output_.json()) (void)output_.text(text);  // where nobody listens, the package still tells
}

Json Report::play_one(const Step& step, const std::string& number, Scratch& scratch) {
  say(number + padded(shortened(plain(step.title), kTitleColumns), kTitleColumns));
  const std::int64_t began = SystemClock().now().boot_ms;
  auto played = step.play();
  const Shown shown = played.ok() ? std::move(*played) : failed(played.refusal());
  say(std::string(shown.passed ? " ok  " : " FAILED  ") + plain(shown.outcome) + "\n");
  for (const std::string& line : shown.lines) say(paragraph(kIndent, plain(line)));
  return Json{{"step", step.title},
              {"passed", shown.passed},
              {"outcome", shown.outcome},
              {"shown", shown.lines},
              {"facts", shown.facts},
              {"milliseconds", SystemClock().now().boot_ms - began},
              {"children", scratch.take_transcript()}};
}

bool Report::play(const std::vector<Step>& steps, Scratch& scratch, const std::function<bool()>& asked_to_end) {
  bool stopped = false;
  for (std::size_t place = 0; place < steps.size(); ++place) {
    if (asked_to_end()) return false;
    const Step& step = steps[place];
    if (stopped) {
      steps_.push_back({{"step", step.title}, {"passed", false}, {"outcome", "not_played"}, {"shown", Json::array()}});
      continue;
    }
    const std::string total = std::to_string(steps.size());
    std::string number = std::to_string(place + 1);
    number.insert(0, total.size() - number.size(), ' ');
    Json played = play_one(step, "[" + number + "/" + total + "] ", scratch);
    const bool held = played["passed"] == true;
    passed_ = passed_ && held;
    stopped = !held && step.essential;
    steps_.push_back(std::move(played));
  }
  return !asked_to_end();
}

Json Report::document() const {
  Json steps = steps_;
  for (Json& step : steps) step.erase("children");
  return Json{{"challenge", challenge_}, {"passed", passed_}, {"steps", std::move(steps)}, {"unknown", unknown_}};
}

evidence::Package Report::package(std::map<std::string, std::string> files) const {
  files["steps.json"] = dump_pretty(steps_) + "\n";
  files["decisions.json"] = dump_pretty(decisions_) + "\n";
  return {.files = std::move(files), .facts = manifest_facts(challenge_, passed_, unknown_), .parts = parts_};
}

Json manifest_facts(const std::string& challenge, bool passed, const Json& unknown) {
  return Json{{"challenge", challenge},
              {"passed", passed},
              {"program", std::string("holdfast ") + HOLDFAST_VERSION},
              {"made_at", format_wall(SystemClock().now().wall_us)},
              {"unknown", unknown}};
}

}  // namespace holdfast::cli::challenge
