// Reading the chain: each, show, verify. Nothing here changes anything.
#include <chrono>
#include <thread>

#include "base/json.h"
#include "evidence/chain.h"
#include "evidence/chain_tail.h"
#include "evidence/chain_verify.h"

namespace holdfast::evidence {
namespace {

// An append under way looks like a torn line until it is complete. It is no longer than a write of some kilobytes.
constexpr int kTornRetries = 10;
constexpr std::chrono::milliseconds kTornPause{10};

Result<Verifier> verify_once(os::ControlFolder& files) {
  HF_TRY(const std::vector<std::uint64_t> numbers, segment_numbers(files));
  Verifier verifier;
  for (const std::uint64_t number : numbers) {
    HF_TRY(const auto text, files.read(segment_path(number)));
    if (!text) {
      verifier.segment_is_missing(segment_name(number));
      break;
    }
    if (!verifier.take_segment(segment_name(number), *text)) break;
  }
  return verifier;
}

// false: the visitor has seen enough.
bool visit_segment(std::uint64_t number, std::string_view text, const std::function<bool(const Json&)>& visit) {
  std::uint64_t place = 0;
  for (std::size_t at = 0; at < text.size();) {
    ++place;
    const std::size_t end = text.find('\n', at);
    const bool torn = end == std::string_view::npos;
    const auto line = torn ? std::nullopt : read_line(text.substr(at, end - at));
    if (line) {
      if (!visit(line->event)) return false;
    } else {
      Json unreadable = {{"unreadable", true}, {"segment", segment_name(number)}, {"line", place}};
      if (torn) unreadable["torn"] = true;
      if (!visit(unreadable)) return false;
    }
    if (torn) break;
    at = end + 1;
  }
  return true;
}

}  // namespace

Json Verification::to_json() const {
  Json document = {
      {"verified", !first_break.has_value()}, {"events", events}, {"head", head}, {"first_break", nullptr}};
  if (first_break) {
    document["first_break"] = {{"segment", printable(first_break->segment)},
                               {"line", first_break->line},
                               {"seq", first_break->seq},
                               {"reason", first_break->reason}};
  }
  return document;
}

Result<void> Chain::each(const std::function<bool(const Json& event)>& visit) {
  HF_TRY(const std::vector<std::uint64_t> numbers, segment_numbers(files_));
  for (const std::uint64_t number : numbers) {
    HF_TRY(const auto text, files_.read(segment_path(number)));
    if (text && !visit_segment(number, *text, visit)) break;
  }
  return {};
}

Result<Json> Chain::show(const std::string& id) {
  Json shown;
  Json children = Json::array();
  HF_CHECK(each([&](const Json& event) {
    if (event.contains("unreadable")) return true;
    if (shown.is_null() && event["id"] == id) shown = event;
    for (const Json& parent : event["parents"]) {
      if (parent == id) {
        children.push_back(event["id"]);
        break;
      }
    }
    return true;
  }));
  if (shown.is_null()) return Refusal(Code::not_found, "no event has the id " + printable(id));
  shown["children"] = std::move(children);
  return shown;
}

Result<Verification> Chain::verify() {
  for (int attempt = 0;; ++attempt) {
    HF_TRY(const Verifier verifier, verify_once(files_));
    if (!verifier.ends_torn() || attempt == kTornRetries) return verifier.result();
    std::this_thread::sleep_for(kTornPause);
  }
}

Result<std::vector<std::pair<std::string, std::string>>> Chain::segments() {
  HF_TRY(const std::vector<std::uint64_t> numbers, segment_numbers(files_));
  std::vector<std::pair<std::string, std::string>> found;
  for (const std::uint64_t number : numbers) {
    HF_TRY(auto text, files_.read(segment_path(number)));
    if (text) found.emplace_back(segment_name(number), std::move(*text));
  }
  return found;
}

Result<Verification> Chain::verify_lines(const std::vector<std::pair<std::string, std::string>>& segments) {
  Verifier verifier;
  for (const auto& [name, text] : segments) {
    if (!verifier.take_segment(name, text)) break;
  }
  return verifier.result();
}

}  // namespace holdfast::evidence
