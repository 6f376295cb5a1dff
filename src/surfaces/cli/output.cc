#include "surfaces/cli/output.h"

#include <algorithm>

#include "base/json.h"
#include "os/stream.h"
#include "surfaces/cli/print.h"
#include "surfaces/cli/text_layout.h"

namespace holdfast::cli {
namespace {

constexpr int kRefused = 1;
constexpr int kNeedsReconciliation = 4;
constexpr int kMachineFailed = 5;
constexpr std::uint64_t kProgressFrom = 8U << 20U;

}  // namespace

Output::Output(bool json, const Surroundings& surroundings) : json_(json), out_(1), error_(2) {
  const bool wanted =
      !surroundings.environment("NO_COLOR") && surroundings.environment("TERM").value_or("dumb") != "dumb";
  colour_out_ = wanted && os::is_terminal(out_);
  colour_error_ = wanted && os::is_terminal(error_);
}

// The standard descriptors are the process's, not ours to close.
Output::~Output() {
  out_.release();
  error_.release();
}

int Output::document(const Json& document, int status) { return text(dump_ascii(document) + "\n", status); }

int Output::text(std::string_view text, int status) {
  const auto written =
      os::write_stream(out_, colour_out_ && !json_ ? coloured(text) : std::string(text), Code::os_failed);
  if (written) return status;
  diagnostic("holdfast: standard output: " + written.refusal().message() + "\n");
  return kMachineFailed;
}

int Output::refuse(const Refusal& refusal) {
  end_progress();
  const int status = refusal.exit_status();
  const std::string human = human_refusal(refusal);
  if (!json_) {
    diagnostic(colour_error_ ? "\x1b[1;31m" + human.substr(0, 8) + "\x1b[0m" + human.substr(8) : human);
    return status;
  }
  if (refusal.code() == Code::usage) diagnostic(human);
  return document(refusal.to_json(), status);
}

Result<void> Output::bytes(std::string_view bytes) { return os::write_stream(out_, bytes, Code::os_failed); }

void Output::diagnostic(std::string_view text) {
  // Nothing is left to tell it to where standard error fails.
  (void)os::write_stream(error_, text, Code::os_failed);
}

ProgressReport Output::progress(std::string what, std::uint64_t total) {
  if (total < kProgressFrom || !os::is_terminal(error_)) return {};
  return [this, what = std::move(what), total](const Json& report) {
    const std::uint64_t done = exact_u64(report.value("done", Json())).value_or(0);
    const int percent = static_cast<int>(std::min(done, total) * 100 / total);
    if (percent == percent_shown_) return;
    percent_shown_ = percent;
    progress_shown_ = true;
    diagnostic("\r" + what + " " + std::to_string(percent) + " % of " + human_bytes(total));
  };
}

ProgressReport Output::waiting() {
  const bool terminal = os::is_terminal(error_);
  return [this, terminal](const Json& report) {
    const std::string line = waiting_line(report.value("waiting", Json::object()));
    if (terminal) {
      progress_shown_ = true;
      return diagnostic("\r\x1b[K" + shortened(line, kColumns - 1));
    }
    // In a log only what is new: who holds it.
    if (line == waiting_shown_) return;
    waiting_shown_ = line;
    diagnostic(line + "\n");
  };
}

void Output::end_progress() {
  if (!progress_shown_) return;
  progress_shown_ = false;
  diagnostic("\n");
}

// Headings, which are the lines in capitals, in bold: the one place where colour helps reading.
std::string Output::coloured(std::string_view text) const {
  const std::size_t end = text.find('\n');
  const std::string_view first = text.substr(0, end);
  if (end == std::string_view::npos || first.size() < 4 ||
      first.find_first_of("abcdefghijklmnopqrstuvwxyz") != first.npos) {
    return std::string(text);
  }
  return "\x1b[1m" + std::string(first) + "\x1b[0m" + std::string(text.substr(end));
}

int exit_status_of(const std::string& verb, const Json& answer) {
  if (!answer.is_object()) return 0;
  if (verb == "recover" && answer.contains("waiting") && answer["waiting"].is_array() && !answer["waiting"].empty()) {
    return kNeedsReconciliation;
  }
  return answer.contains("verified") && answer["verified"] == false ? kRefused : 0;
}

}  // namespace holdfast::cli
