#include "evidence/chain_line.h"

#include <algorithm>

#include "base/digest.h"
#include "base/json.h"

namespace holdfast::evidence {
namespace {

constexpr std::size_t kMembers = 12;
constexpr std::string_view kTextMembers[] = {"at", "control_epoch", "hash", "high_water",
                                             "id", "kind",          "prev", "scope"};
// Beyond 2^53 a double is not exact, and a seq up there was not counted up to.
constexpr std::uint64_t kLargestSeq = (1ULL << 53U) - 2;

constexpr std::string_view kSegmentPrefix = "log-";
constexpr std::string_view kSegmentSuffix = ".jsonl";

const Json* member(const Json& event, std::string_view key) {
  const auto found = event.find(std::string(key));
  return found == event.end() ? nullptr : &*found;
}

// Empty, or what is wrong with the members.
std::string problem_of(const Json& event) {
  if (!event.is_object()) return "not an object";
  for (const std::string_view key : kTextMembers) {
    const Json* value = member(event, key);
    if (value == nullptr || !value->is_string()) return std::string(key) + " is missing or no text";
  }
  const Json* boot_ms = member(event, "boot_ms");
  if (boot_ms == nullptr || !boot_ms->is_number_integer()) return "boot_ms is missing or no integer";
  const Json* facts = member(event, "facts");
  if (facts == nullptr || !facts->is_object()) return "facts is missing or no object";
  const Json* seq = member(event, "seq");
  if (seq == nullptr || !seq->is_number_unsigned() || seq->get<std::uint64_t>() == 0 ||
      seq->get<std::uint64_t>() > kLargestSeq) {
    return "seq is missing or no positive integer";
  }
  const Json* parents = member(event, "parents");
  const auto is_text = [](const Json& parent) { return parent.is_string(); };
  if (parents == nullptr || !parents->is_array() || !std::all_of(parents->begin(), parents->end(), is_text)) {
    return "parents is missing or no array of ids";
  }
  if (event.size() != kMembers) return "there are members that no event has";
  return {};
}

}  // namespace

std::string seal(Json event, std::string& hash) {
  hash = sha256_hex(dump_canonical(event));
  event["hash"] = hash;
  return dump_canonical(event);
}

std::optional<Line> read_line(std::string_view text, std::string* why) {
  const auto refuse = [&](const std::string& reason) {
    if (why != nullptr) *why = reason;
    return std::optional<Line>();
  };
  JsonProblem problem;
  std::optional<Json> event = parse_json(text, &problem);
  if (!event) return refuse("not JSON: " + problem.text);
  if (const std::string wrong = problem_of(*event); !wrong.empty()) return refuse(wrong);

  Line line;
  line.id = (*event)["id"];
  line.prev = (*event)["prev"];
  line.hash = (*event)["hash"];
  if (line.id.empty()) return refuse("id is empty");
  if (!is_sha256_hex(line.prev)) return refuse("prev is no SHA-256");
  if (!is_sha256_hex(line.hash)) return refuse("hash is no SHA-256");
  const auto high_water = parse_u64((*event)["high_water"].get_ref<const std::string&>());
  const auto control_epoch = parse_u64((*event)["control_epoch"].get_ref<const std::string&>());
  if (!high_water) return refuse("high_water is no unsigned decimal");
  if (!control_epoch) return refuse("control_epoch is no unsigned decimal");
  line.high_water = *high_water;
  line.control_epoch = *control_epoch;
  line.seq = (*event)["seq"];
  for (const Json& parent : (*event)["parents"]) line.parents.push_back(parent);
  line.event = std::move(*event);
  return line;
}

bool is_canonical(const Line& line, std::string_view text) { return dump_canonical(line.event) == text; }

std::string recomputed_hash(const Line& line) {
  Json event = line.event;
  event.erase("hash");
  return sha256_hex(dump_canonical(event));
}

std::string segment_name(std::uint64_t number) {
  std::string digits = std::to_string(number);
  if (digits.size() < 6) digits.insert(0, 6 - digits.size(), '0');
  return std::string(kSegmentPrefix) + digits + std::string(kSegmentSuffix);
}

std::uint64_t segment_number(std::string_view name) {
  if (name.size() <= kSegmentPrefix.size() + kSegmentSuffix.size() || name.substr(0, 4) != kSegmentPrefix) return 0;
  std::string_view digits =
      name.substr(kSegmentPrefix.size(), name.size() - kSegmentPrefix.size() - kSegmentSuffix.size());
  while (digits.size() > 1 && digits.front() == '0') digits.remove_prefix(1);
  const auto number = parse_u64(digits);
  return number && segment_name(*number) == name ? *number : 0;
}

}  // namespace holdfast::evidence
