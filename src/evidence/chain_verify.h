// Verifier: walks whole segments in order and stops at the first break. Used over .squad/evidence, over an exported
// package, and over texts. Memory: one segment at a time, and about 40 bytes an event for the ids seen.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>

#include "evidence/chain.h"
#include "evidence/chain_line.h"

namespace holdfast::evidence {

class Verifier {
 public:
  Verifier();
  // false: a break was found, and what follows does not count. `name` is the segment's file name.
  bool take_segment(const std::string& name, std::string_view text);
  // A segment that should have been there next and is not.
  void segment_is_missing(const std::string& name);
  const Verification& result() const { return result_; }
  // Whether the break is a last line without its newline: what a crash, or an append under way, leaves.
  bool ends_torn() const { return torn_; }

 private:
  std::string problem_with(std::string_view text);
  bool broken(const std::string& segment, std::uint64_t line, std::string reason);

  Verification result_;
  std::uint64_t segments_ = 0;
  std::uint64_t high_water_ = 0;
  std::uint64_t control_epoch_ = 0;
  bool torn_ = false;
  std::unordered_set<std::uint64_t> ids_;
};

}  // namespace holdfast::evidence
