#include "base/base64.h"

#include <algorithm>
#include <cstdint>

namespace holdfast {
namespace {
constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
}  // namespace

std::string base64_encode(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t group = 0;
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
    for (std::size_t part = 0; part < 3; ++part) {
      group = (group << 8U) | (part < count ? static_cast<unsigned char>(bytes[at + part]) : 0U);
    }
    for (std::size_t digit = 0; digit < 4; ++digit) {
      out += digit <= count ? kAlphabet[(group >> (18U - 6U * static_cast<unsigned>(digit))) & 63U] : '=';
    }
  }
  return out;
}

std::optional<std::string> base64_decode(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += 4) {
    std::uint32_t group = 0;
    std::size_t padding = 0;
    for (std::size_t digit = 0; digit < 4; ++digit) {
      const char letter = text[at + digit];
      const auto place = kAlphabet.find(letter);
      if (letter == '=' && at + 4 == text.size() && digit >= 2) {
        ++padding;
      } else if (place == std::string_view::npos || padding != 0) {
        return std::nullopt;
      }
      group = (group << 6U) | static_cast<std::uint32_t>(letter == '=' ? 0 : place);
    }
    // Bits beyond the last byte: two texts would stand for the same bytes.
    if ((padding == 2 && (group & 0xFFFFU) != 0) || (padding == 1 && (group & 0xFFU) != 0)) return std::nullopt;
    out += static_cast<char>(group >> 16U);
    if (padding < 2) out += static_cast<char>((group >> 8U) & 255U);
    if (padding < 1) out += static_cast<char>(group & 255U);
  }
  return out;
}

}  // namespace holdfast
