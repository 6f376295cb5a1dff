#include "base/digest.h"

namespace holdfast {

std::string Fnv1a::hex() const {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out(16, '0');
  for (int digit = 0; digit < 16; ++digit)
    out[15 - digit] = kHex[(value_ >> (4U * static_cast<unsigned>(digit))) & 15U];
  return out;
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 digest;
  digest.add(bytes);
  return digest.hex();
}

std::string fnv1a_hex(std::string_view bytes) {
  Fnv1a digest;
  digest.add(bytes);
  return digest.hex();
}

bool is_sha256_hex(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace holdfast
