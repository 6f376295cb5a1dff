#include "evidence/chain_verify.h"

#include <cstdlib>

#include "base/digest.h"
#include "base/json.h"

namespace holdfast::evidence {
namespace {

// Ids are kept as 64 bits: their own random ones, or the first of a digest for an id of another form.
std::uint64_t short_id(const std::string& id) {
  const bool usual =
      id.size() == 19 && id.starts_with("ev-") && id.find_first_not_of("0123456789abcdef", 3) == std::string::npos;
  const std::string digits = usual ? id.substr(3) : sha256_hex(id).substr(0, 16);
  return std::strtoull(digits.c_str(), nullptr, 16);
}

}  // namespace

Verifier::Verifier() { result_.head = kNoHash; }

bool Verifier::broken(const std::string& segment, std::uint64_t line, std::string reason) {
  if (!result_.first_break) result_.first_break = Break{segment, line, result_.events + 1, std::move(reason)};
  return false;
}

void Verifier::segment_is_missing(const std::string& name) { broken(name, 0, "the segment is missing"); }

std::string Verifier::problem_with(std::string_view text) {
  std::string why;
  const std::optional<Line> line = read_line(text, &why);
  if (!line) return why;
  const std::uint64_t seq = result_.events + 1;
  if (line->seq != seq) return "seq is " + std::to_string(line->seq) + ", expected " + std::to_string(seq);
  if (!is_canonical(*line, text)) return "the line is not in canonical form";
  if (line->prev != result_.head) return "prev is " + line->prev + ", the event before it has " + result_.head;
  const std::string hash = recomputed_hash(*line);
  if (line->hash != hash) return "hash is " + line->hash + ", the line hashes to " + hash;
  if (line->high_water < high_water_) {
    return "high_water is " + std::to_string(line->high_water) + ", below " + std::to_string(high_water_);
  }
  if (line->control_epoch < control_epoch_) {
    return "control_epoch is " + std::to_string(line->control_epoch) + ", below " + std::to_string(control_epoch_);
  }
  for (const std::string& parent : line->parents) {
    if (!ids_.contains(short_id(parent))) return "no earlier event has the parent id " + printable(parent);
  }
  if (!ids_.insert(short_id(line->id)).second) return "the id " + printable(line->id) + " was used before";

  result_.events = seq;
  result_.head = line->hash;
  high_water_ = line->high_water;
  control_epoch_ = line->control_epoch;
  return {};
}

bool Verifier::take_segment(const std::string& name, std::string_view text) {
  if (result_.first_break) return false;
  if (segment_number(name) != segments_ + 1) {
    return broken(name, 1, "the segment should be " + segment_name(segments_ + 1));
  }
  ++segments_;
  std::uint64_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    ++number;
    const std::size_t end = text.find('\n', at);
    if (end == std::string_view::npos) {
      torn_ = true;
      return broken(name, number, "the last line is torn: it has no newline");
    }
    if (std::string why = problem_with(text.substr(at, end - at)); !why.empty()) {
      return broken(name, number, std::move(why));
    }
    at = end + 1;
  }
  return true;
}

}  // namespace holdfast::evidence
