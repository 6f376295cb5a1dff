#include "surfaces/cli/text_layout.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/json.h"

namespace holdfast::cli {
namespace {

struct Point {
  char32_t value;
  std::size_t bytes;
};

// The code point at the beginning of valid UTF-8.
Point point_at(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t bytes = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  char32_t value = bytes == 1 ? lead : lead & (0x7FU >> bytes);
  for (std::size_t at = 1; at < bytes && at < text.size(); ++at) {
    value = (value << 6U) | (static_cast<unsigned char>(text[at]) & 0x3FU);
  }
  return {value, std::min(bytes, text.size())};
}

struct Range {
  char32_t first;
  char32_t last;
};

template <std::size_t N>
bool is_in(const std::array<Range, N>& ranges, char32_t point) {
  return std::ranges::any_of(ranges, [&](const Range& range) { return point >= range.first && point <= range.last; });
}

// C1 controls, line and paragraph separators, marks and overrides of direction, invisible operators.
constexpr std::array<Range, 5> kDangerous = {
    {{0x80, 0x9F}, {0x200B, 0x200F}, {0x2028, 0x202E}, {0x2060, 0x206F}, {0xFEFF, 0xFEFF}}};
constexpr std::array<Range, 4> kNoWidth = {{{0x300, 0x36F}, {0x1AB0, 0x1AFF}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}}};
constexpr std::array<Range, 9> kWide = {{{0x1100, 0x115F},
                                         {0x2E80, 0xA4CF},
                                         {0xAC00, 0xD7A3},
                                         {0xF900, 0xFAFF},
                                         {0xFE30, 0xFE6F},
                                         {0xFF00, 0xFF60},
                                         {0xFFE0, 0xFFE6},
                                         {0x1F300, 0x1FAFF},
                                         {0x20000, 0x3FFFD}}};

std::size_t width_of_point(char32_t point) { return is_in(kNoWidth, point) ? 0 : is_in(kWide, point) ? 2 : 1; }

// The longest beginning of at most `width` columns, in bytes; at least one code point.
std::size_t bytes_within(std::string_view text, std::size_t width) {
  std::size_t at = 0;
  for (std::size_t used = 0; at < text.size();) {
    const Point point = point_at(text.substr(at));
    used += width_of_point(point.value);
    if (used > width && at > 0) break;
    at += point.bytes;
  }
  return at;
}

}  // namespace

std::string plain(std::string_view text) {
  const std::string safe = printable(text);
  std::string out;
  for (std::size_t at = 0; at < safe.size();) {
    const Point point = point_at(std::string_view(safe).substr(at));
    if (is_in(kDangerous, point.value)) {
      std::array<char, 16> escape{};
      std::snprintf(escape.data(), escape.size(), "\\u{%x}", static_cast<unsigned>(point.value));
      out += escape.data();
    } else {
      out += safe.substr(at, point.bytes);
    }
    at += point.bytes;
  }
  return out;
}

std::size_t width_of(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Point point = point_at(text.substr(at));
    width += width_of_point(point.value);
    at += point.bytes;
  }
  return width;
}

std::string shortened(std::string_view text, std::size_t width) {
  if (width_of(text) <= width) return std::string(text);
  if (width <= 3) return std::string(width, '.');
  return std::string(text.substr(0, bytes_within(text, width - 3))) + "...";
}

std::string padded(std::string_view text, std::size_t width) {
  const std::size_t used = width_of(text);
  return std::string(text) + std::string(width > used ? width - used : 0, ' ');
}

std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    std::size_t end = bytes_within(text, width);
    if (end < text.size() && text[end] != ' ') {
      const std::size_t space = text.rfind(' ', end);
      if (space != std::string_view::npos && space > 0) end = space;
    }
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  }
  if (lines.empty()) lines.emplace_back();
  return lines;
}

std::string paragraph(std::string_view first, std::string_view text) {
  const std::size_t indent = width_of(first);
  std::string out;
  for (const std::string& line : wrapped(text, kColumns > indent + 10 ? kColumns - indent : 10)) {
    out += (out.empty() ? std::string(first) : std::string(indent, ' ')) + line + "\n";
  }
  return out;
}

std::string human_duration(std::int64_t seconds) {
  struct Unit {
    std::int64_t length;
    char letter;
  };
  constexpr std::array<Unit, 4> kUnits = {{{86'400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}}};
  seconds = std::max<std::int64_t>(seconds, 0);
  for (std::size_t at = 0; at + 1 < kUnits.size(); ++at) {
    const auto [length, letter] = kUnits[at];
    if (seconds < length) continue;
    const auto [smaller, smaller_letter] = kUnits[at + 1];
    return std::to_string(seconds / length) + letter + " " + std::to_string(seconds % length / smaller) +
           smaller_letter;
  }
  return std::to_string(seconds) + "s";
}

std::string human_distance(std::int64_t seconds_ahead) {
  if (seconds_ahead == 0) return "now";
  if (seconds_ahead > 0) return "in " + human_duration(seconds_ahead);
  return human_duration(seconds_ahead == INT64_MIN ? INT64_MAX : -seconds_ahead) + " ago";
}

std::string human_bytes(std::uint64_t count) {
  if (count < 1024) return std::to_string(count) + (count == 1 ? " byte" : " bytes");
  constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(count) / 1024.0;
  std::size_t unit = 0;
  for (; value >= 1024.0 && unit + 1 < kUnits.size(); ++unit) value /= 1024.0;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f %s", value, kUnits[unit]);
  return text.data();
}

std::string name_value_lines(const std::vector<std::pair<std::string, std::string>>& pairs, std::size_t indent) {
  std::size_t widest = 0;
  for (const auto& [name, value] : pairs) widest = std::max(widest, width_of(name));
  std::string out;
  for (const auto& [name, value] : pairs) {
    const std::string first = std::string(indent, ' ') + padded(name, widest) + "  ";
    // A digest is not broken where a line of its own takes it whole.
    const bool is_word = value.find(' ') == std::string::npos;
    const std::size_t width = width_of(value);
    if (is_word && width_of(first) + width > kColumns && indent + 4 + width <= kColumns) {
      out += std::string(indent, ' ') + name + "\n" + std::string(indent + 4, ' ') + value + "\n";
    } else {
      out += paragraph(first, value.empty() ? "-" : value);
    }
  }
  return out;
}

std::string shell_quoted(std::string_view argument) {
  constexpr std::string_view kSafe = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./:@%+,=";
  if (!argument.empty() && argument.find_first_not_of(kSafe) == std::string_view::npos) return std::string(argument);
  std::string out = "'";
  for (const char byte : argument) out += byte == '\'' ? std::string("'\\''") : std::string(1, byte);
  return out + "'";
}

std::vector<std::size_t> Table::widths() const {
  std::vector<std::size_t> widths;
  for (std::size_t column = 0; column < headings_.size(); ++column) {
    std::size_t width = width_of(headings_[column]);
    for (const auto& row : rows_) width = std::max(width, width_of(row[column]));
    widths.push_back(width);
  }
  constexpr std::size_t kFirstLeast = 8;
  const auto others = [&widths] {
    std::size_t sum = 0;
    for (std::size_t column = 1; column < widths.size(); ++column) sum += widths[column] + 2;
    return sum;
  };
  while (widths.size() > 1 && others() + kFirstLeast > kColumns) --*std::max_element(widths.begin() + 1, widths.end());
  widths[0] = std::min(widths[0], kColumns - others());
  return widths;
}

std::string Table::text() const {
  const std::vector<std::size_t> columns = widths();
  const auto line = [&](const std::vector<std::string>& cells, bool without_first) {
    std::string out = padded(without_first ? "" : cells[0], columns[0]);
    for (std::size_t column = 1; column < cells.size(); ++column) {
      out += "  " + padded(shortened(cells[column], columns[column]), columns[column]);
    }
    out.erase(out.find_last_not_of(' ') + 1);
    return out + "\n";
  };
  std::string out = line(headings_, false);
  for (const auto& row : rows_) {
    const bool fits = width_of(row[0]) <= columns[0];
    if (!fits) {
      for (const std::string& piece : wrapped(row[0], kColumns)) out += piece + "\n";
    }
    out += line(row, !fits);
  }
  return out;
}

}  // namespace holdfast::cli
