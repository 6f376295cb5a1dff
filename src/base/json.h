// JSON as Holdfast reads and writes it.
//
// parse_json refuses what two readers could understand differently: duplicate keys at any depth, NaN,
// trailing bytes, depth over 64, invalid UTF-8. Numbers keep their type: an unsigned integer up to 2^64-1
// stays one, anything larger becomes a double and is_exact_unsigned() says no.
// dump_ascii is pure ASCII and never throws; dump_canonical has keys sorted bytewise and no white space.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "holdfast/result.h"

namespace holdfast {

struct JsonProblem {
  enum class Kind { malformed, duplicate_key, too_deep, not_utf8 } kind;
  std::string text;
};

// The document, or why it is none. `problem` says more than the refusal where a caller needs the kind.
std::optional<Json> parse_json(std::string_view text, JsonProblem* problem = nullptr);

std::string dump_ascii(const Json& value);
std::string dump_pretty(const Json& value);
std::string dump_canonical(const Json& value);

bool is_valid_utf8(std::string_view text);

// Text for a message: control characters and bytes that are no UTF-8 become \xNN.
std::string printable(std::string_view text);

// An unsigned 64-bit decimal: digits only, no sign, no leading zero but "0" itself. nullopt otherwise.
std::optional<std::uint64_t> parse_u64(std::string_view text);
// The same of a JSON string or an exact JSON integer (field report M32: floats are refused, not rounded).
std::optional<std::uint64_t> exact_u64(const Json& value);

// A member that has to be a string / an object; empty string or null object where it is absent or another type.
std::string text_member(const Json& object, std::string_view key);

}  // namespace holdfast
