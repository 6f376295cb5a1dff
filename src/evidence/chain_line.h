// One line of the evidence chain: sealing an event, and reading it back. docs/formats/evidence.md has the grammar.
//
// A line here never has its newline. read_line() looks at one line alone: it accepts a line whose stored hash is wrong
// (is_intact() says so), because an append after tampering has to go on from what is stored.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/result.h"

namespace holdfast::evidence {

inline constexpr std::string_view kNoHash = "0000000000000000000000000000000000000000000000000000000000000000";

struct Line {
  Json event;  // whole, the hash member included
  std::uint64_t seq = 0;
  std::uint64_t high_water = 0;
  std::uint64_t control_epoch = 0;
  std::string id;
  std::string prev;
  std::string hash;
  std::vector<std::string> parents;
};

// `event` has every member but hash. Gives the canonical line and sets `hash`.
std::string seal(Json event, std::string& hash);

// nullopt where the text is no object of exactly the members, types and ranges of the grammar; `why` then says more.
std::optional<Line> read_line(std::string_view text, std::string* why = nullptr);

bool is_canonical(const Line& line, std::string_view text);
std::string recomputed_hash(const Line& line);

// Names of segments: "log-000001.jsonl" is 1; 0 for every other name.
std::string segment_name(std::uint64_t number);
std::uint64_t segment_number(std::string_view name);

}  // namespace holdfast::evidence
