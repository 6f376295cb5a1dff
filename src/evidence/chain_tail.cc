// A line that cannot be read (somebody changed it) must neither stop the workspace nor be forgotten: the chain goes on
// from the last line that can be read, counting the others, and binds the last of them by the digest of its bytes.
// verify() names it for ever.
#include "evidence/chain_tail.h"

#include <algorithm>
#include <string_view>

#include "base/digest.h"
#include "evidence/chain_line.h"

namespace holdfast::evidence {
namespace {
constexpr std::uint64_t kWindow = 64U * 1024U;
}  // namespace

std::string segment_path(std::uint64_t number) { return std::string(kFolder) + "/" + segment_name(number); }

Result<std::vector<std::uint64_t>> segment_numbers(os::ControlFolder& files) {
  HF_TRY(const std::vector<std::string> names, files.list(kFolder));
  std::vector<std::uint64_t> numbers;
  for (const std::string& name : names) {
    if (const std::uint64_t number = segment_number(name); number != 0) numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

Result<bool> Tail::is_unchanged() {
  if (!known_) return false;
  HF_TRY(const auto size, files_.size(segment_path(segment_)));
  if (size.value_or(0) != size_) return false;
  // Only a full segment has a successor, so that the usual case costs one call.
  if (size_ < Chain::kSegmentBytes) return true;
  HF_TRY(const auto next, files_.size(segment_path(segment_ + 1)));
  return !next.has_value();
}

Result<bool> Tail::refresh() {
  HF_TRY(const bool unchanged, is_unchanged());
  if (unchanged) return false;
  known_ = false;
  marks_ = Marks{};
  marks_.head = kNoHash;
  segment_ = 1;
  size_ = whole_ = unreadable_ = 0;
  unreadable_hash_.clear();

  HF_TRY(const std::vector<std::uint64_t> numbers, segment_numbers(files_));
  if (!numbers.empty()) segment_ = numbers.back();
  for (auto number = numbers.rbegin(); number != numbers.rend(); ++number) {
    HF_TRY(const bool found, read_end(*number, number == numbers.rbegin()));
    if (found) break;
  }
  if (unreadable_ > 0) {
    marks_.seq += unreadable_;
    marks_.head = unreadable_hash_;
  }
  known_ = true;
  return true;
}

Result<bool> Tail::read_end(std::uint64_t number, bool last) {
  const std::string path = segment_path(number);
  HF_TRY(const auto size, files_.size(path));
  const std::uint64_t unreadable_before = unreadable_;
  const std::string hash_before = unreadable_hash_;
  for (std::uint64_t window = kWindow;; window *= 4) {
    unreadable_ = unreadable_before;
    unreadable_hash_ = hash_before;
    const std::uint64_t offset = size.value_or(0) > window ? *size - window : 0;
    HF_TRY(const std::string text, files_.read_from(path, offset));
    const std::string_view bytes = text;
    std::size_t end = bytes.rfind('\n') == std::string_view::npos ? 0 : bytes.rfind('\n') + 1;
    if (last) {
      size_ = offset + bytes.size();
      whole_ = offset + end;
    }
    while (end > 0) {
      const std::size_t before = end < 2 ? std::string_view::npos : bytes.rfind('\n', end - 2);
      if (before == std::string_view::npos && offset > 0) break;  // its beginning lies before the window
      const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
      const std::string_view text_of_line = bytes.substr(begin, end - begin - 1);
      if (const auto line = read_line(text_of_line)) {
        marks_ = Marks{line->seq, line->hash, Generation{line->high_water}, Epoch{line->control_epoch}};
        return true;
      }
      if (unreadable_++ == 0) unreadable_hash_ = sha256_hex(text_of_line);
      end = begin;
    }
    if (offset == 0) return false;
  }
}

void Tail::grew(std::uint64_t byte_count, const Marks& marks) {
  size_ += byte_count;
  whole_ = size_;
  marks_ = marks;
}

void Tail::was_mended() { size_ = whole_; }

void Tail::begin_next_segment() {
  ++segment_;
  size_ = whole_ = 0;
}

}  // namespace holdfast::evidence
