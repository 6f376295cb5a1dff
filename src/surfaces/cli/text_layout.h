// Text for people: at most 80 columns, aligned, nothing that a terminal would obey.
//
// plain() takes away what a name could do to a terminal: control characters, C1 and the characters that reorder text.
// Units: columns; durations in seconds. Pure; threads: safe.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::cli {

constexpr std::size_t kColumns = 80;

std::string plain(std::string_view text);
std::size_t width_of(std::string_view text);                      // in columns: wide characters count two
std::string shortened(std::string_view text, std::size_t width);  // "a-long-na..."
std::string padded(std::string_view text, std::size_t width);

// Lines of at most `width` columns, broken at spaces where there are any; a longer word is cut.
std::vector<std::string> wrapped(std::string_view text, std::size_t width);
// The text in lines of at most 80 columns: the first after `first`, the others after as many spaces.
std::string paragraph(std::string_view first, std::string_view text);

// "0s", "45s", "14m 50s", "3h 2m", "2d 4h".
std::string human_duration(std::int64_t seconds);
// "in 14m 50s", "now", "2m 3s ago": of a point in time so many seconds ahead.
std::string human_distance(std::int64_t seconds_ahead);
std::string human_bytes(std::uint64_t count);  // "512 bytes", "1.4 MiB"

// Names and values in two aligned columns, two spaces in; long values go on below themselves.
std::string name_value_lines(const std::vector<std::pair<std::string, std::string>>& pairs, std::size_t indent = 2);

// The argument as a POSIX shell reads it back.
std::string shell_quoted(std::string_view argument);

// A table with a heading. The first column takes what room is left; where a cell does not fit, it stands on a line of
// its own and the rest of its row below it. The others are shortened, the widest first, until the row fits.
class Table {
 public:
  explicit Table(std::vector<std::string> headings) : headings_(std::move(headings)) {}
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string text() const;

 private:
  std::vector<std::size_t> widths() const;
  std::vector<std::string> headings_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace holdfast::cli
