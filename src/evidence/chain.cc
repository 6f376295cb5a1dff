// Invariants:
//   C1  a segment is only ever added to at its end, or cut back to its last whole line after the torn bytes were
//       published under a name of their own;
//   C2  what append writes, verify accepts: parents exist, ids are new, every line can be read back;
//   C3  high_water and control_epoch never fall.
#include "evidence/chain.h"

#include <algorithm>
#include <unordered_set>

#include "base/digest.h"
#include "base/json.h"
#include "evidence/chain_line.h"
#include "evidence/chain_tail.h"
#include "evidence/torn.h"

namespace holdfast::evidence {
namespace {

// Ids that this object has written or found; only spares reading, so that it may be forgotten at any time.
constexpr std::size_t kRememberedIds = 1U << 16U;

// Whether a line of the segment has this id. Its text is looked for first: parsing every line would be slow.
bool has_event(std::string_view text, const std::string& id) {
  const std::string wanted = ",\"id\":" + dump_ascii(Json(id)) + ",\"kind\":";
  for (std::size_t at = text.rfind(wanted); at != std::string_view::npos; at = text.rfind(wanted, at - 1)) {
    const std::size_t before = text.rfind('\n', at);
    const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const auto line = read_line(text.substr(begin, end - begin));
    if (line && line->id == id) return true;  // and not the same text within its facts
    if (begin == 0) break;
    at = begin;
  }
  return false;
}

Json document_of(const Event& event, const Marks& marks, const Instant& now) {
  return Json{{"at", format_wall(now.wall_us)},
              {"boot_ms", now.boot_ms},
              {"control_epoch", marks.control_epoch.text()},
              {"facts", event.facts},
              {"high_water", marks.high_water.text()},
              {"id", event.id},
              {"kind", event.kind},
              {"parents", event.parents},
              {"prev", marks.head},
              {"scope", event.scope},
              {"seq", marks.seq}};
}

}  // namespace

Refusal refusal_of(const Verification& verification) {
  HF_ASSERT(verification.first_break.has_value());
  const Break& found = *verification.first_break;
  return Refusal(Code::evidence_chain_broken,
                 "the evidence chain breaks at " + printable(found.segment) + ", line " + std::to_string(found.line) +
                     ", event " + std::to_string(found.seq) + ": " + found.reason,
                 verification.to_json());
}

std::string new_event_id() { return "ev-" + random_hex(8); }

struct Chain::State {
  os::ControlFolder& files;
  Tail tail;
  std::unordered_set<std::string> ids;
  bool torn_files_unchecked = false;  // the end was read anew, and files set aside not yet compared with it

  explicit State(os::ControlFolder& over) : files(over), tail(over) {}

  Result<void> refresh() {
    HF_TRY(const bool anew, tail.refresh());
    torn_files_unchecked = torn_files_unchecked || anew;
    return {};
  }

  Result<bool> knows(const std::string& id) {
    if (ids.contains(id)) return true;
    HF_TRY(const std::vector<std::uint64_t> numbers, segment_numbers(files));
    for (auto number = numbers.rbegin(); number != numbers.rend(); ++number) {
      HF_TRY(const auto text, files.read(segment_path(*number)));
      if (text && has_event(*text, id)) {
        remember(id);
        return true;
      }
    }
    return false;
  }

  void remember(const std::string& id) {
    if (ids.size() >= kRememberedIds) ids.clear();
    ids.insert(id);
  }

  // Gives ids, and takes out the parents that nobody has (C2): one dangling id would break the chain for ever.
  Result<void> settle_ids(std::vector<Event>& events) {
    std::unordered_set<std::string> batch;
    for (Event& event : events) {
      if (!event.facts.is_object()) event.facts = Json{{"value", event.facts}};
      std::vector<std::string> known;
      Json unknown = Json::array();
      for (std::string& parent : event.parents) {
        bool found = batch.contains(parent);
        if (!found) { HF_TRY(found, knows(parent)); }
        if (found)
          known.push_back(std::move(parent));
        else
          unknown.push_back(parent);
      }
      event.parents = std::move(known);
      if (!unknown.empty()) event.facts["unknown_parents"] = std::move(unknown);
      if (event.id.empty()) event.id = new_event_id();
      if (ids.contains(event.id) || !batch.insert(event.id).second) {
        return Refusal(Code::request_malformed, "the event id " + printable(event.id) + " was used before");
      }
    }
    return {};
  }

  // One line with its newline; moves `marks` on.
  static std::string line_of(const Event& event, const Instant& now, Marks& marks) {
    ++marks.seq;
    marks.high_water = std::max(marks.high_water, event.generation);
    marks.control_epoch = std::max(marks.control_epoch, event.epoch);
    std::string hash;
    std::string line = seal(document_of(event, marks, now), hash);
    if (!read_line(line)) {
      // Facts nested too deep to be read back are kept as their text.
      Event flat = event;
      flat.facts = Json{{"text", dump_ascii(event.facts)}};
      line = seal(document_of(flat, marks, now), hash);
    }
    marks.head = hash;
    return line + "\n";
  }

  // The event that tells of torn bytes, where some were set aside and none told of them yet.
  Result<std::optional<Event>> mend() {
    const std::uint64_t seq = tail.marks().seq + 1;
    if (tail.is_torn()) {
      HF_CHECK(set_torn_bytes_aside(files, segment_path(tail.segment()), tail.whole(), seq));
      tail.was_mended();
    } else if (!torn_files_unchecked) {
      return std::optional<Event>();
    }
    HF_TRY(Json set_aside, torn_files_at(files, seq));
    if (set_aside.empty()) return std::optional<Event>();
    Event event;
    event.kind = "evidence_tail_set_aside";
    event.id = new_event_id();
    event.facts = Json{{"segment", segment_name(tail.segment())}, {"files", std::move(set_aside)}};
    return std::optional<Event>(std::move(event));
  }

  Result<std::vector<std::string>> append(std::vector<Event> events, const Instant& now,
                                          const std::vector<os::Staged>& beside) {
    HF_CHECK(refresh());
    HF_CHECK(settle_ids(events));
    if (tail.marks().seq == 0) HF_CHECK(files.make_folder(kFolder));
    HF_TRY(const std::optional<Event> mended, mend());

    Marks marks = tail.marks();
    std::string lines;
    if (mended) lines += line_of(*mended, now, marks);
    std::vector<std::string> appended;
    for (const Event& event : events) {
      lines += line_of(event, now, marks);
      appended.push_back(event.id);
    }
    if (!lines.empty()) {
      if (tail.size() >= kSegmentBytes) tail.begin_next_segment();
      HF_CHECK(files.append_and_stage(segment_path(tail.segment()), lines, beside));
      tail.grew(lines.size(), marks);
    } else if (!beside.empty()) {
      HF_CHECK(files.stage_together(beside));
    }
    torn_files_unchecked = false;
    for (const std::string& id : appended) remember(id);
    return appended;
  }
};

Chain::Chain(os::ControlFolder& files) : files_(files), state_(std::make_unique<State>(files)) {}
Chain::~Chain() = default;

Result<Marks> Chain::marks() {
  HF_CHECK(state_->refresh());
  return state_->tail.marks();
}

Result<bool> Chain::contains(const std::string& id) { return state_->knows(id); }

Result<std::vector<std::string>> Chain::append(std::vector<Event> events, const Instant& now,
                                               const std::vector<os::Staged>& beside) {
  auto appended = state_->append(std::move(events), now, beside);
  if (!appended) state_->tail.forget();  // what is on disk now is for the next call to find out
  return appended;
}

}  // namespace holdfast::evidence
