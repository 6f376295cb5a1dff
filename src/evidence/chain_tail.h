// Tail: where the chain ends, read from the last lines alone, and kept while nobody else has appended.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "evidence/chain.h"
#include "os/control_folder.h"

namespace holdfast::evidence {

inline constexpr const char* kFolder = "evidence";

std::string segment_path(std::uint64_t number);
// The numbers of the segments that are there, ascending.
Result<std::vector<std::uint64_t>> segment_numbers(os::ControlFolder& files);

class Tail {
 public:
  explicit Tail(os::ControlFolder& files) : files_(files) {}

  // One size() call where nothing changed; otherwise the last 64 KiB (more where no whole readable line is in them).
  // true: the end was read anew.
  Result<bool> refresh();
  void forget() { known_ = false; }
  void grew(std::uint64_t byte_count, const Marks& marks);
  void was_mended();  // the torn bytes were cut off
  void begin_next_segment();

  const Marks& marks() const { return marks_; }
  std::uint64_t segment() const { return segment_; }  // number of the last segment; 1 where there is none
  std::uint64_t size() const { return size_; }
  std::uint64_t whole() const { return whole_; }  // bytes up to the last newline
  bool is_torn() const { return known_ && whole_ < size_; }

 private:
  Result<bool> is_unchanged();
  // Reads a segment's end into marks_; false where no line of it can be read.
  Result<bool> read_end(std::uint64_t number, bool last);

  os::ControlFolder& files_;
  bool known_ = false;
  Marks marks_;
  std::uint64_t segment_ = 1;
  std::uint64_t size_ = 0;
  std::uint64_t whole_ = 0;
  std::uint64_t unreadable_ = 0;  // whole lines after the one that marks_ is from
  std::string unreadable_hash_;   // of the last of them
};

}  // namespace holdfast::evidence
