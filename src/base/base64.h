// Base64 (RFC 4648, padded, strict).
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace holdfast {

std::string base64_encode(std::string_view bytes);
std::optional<std::string> base64_decode(std::string_view text);

}  // namespace holdfast
