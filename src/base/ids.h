// Strong integers, and random identifiers.
#pragma once
#include <compare>
#include <cstdint>
#include <string>

namespace holdfast {

struct Generation {
  std::uint64_t value = 0;
  auto operator<=>(const Generation&) const = default;
  std::string text() const { return std::to_string(value); }
};

struct Epoch {
  std::uint64_t value = 0;
  auto operator<=>(const Epoch&) const = default;
  std::string text() const { return std::to_string(value); }
};

// 2*bytes lowercase hex digits from the system's random source; identifiers, not secrets of their own.
std::string random_hex(std::size_t bytes);

}  // namespace holdfast
