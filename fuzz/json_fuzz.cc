// Untrusted input: any JSON text (requests, lease files, control files, tool calls).
//
// Invariants: parse_json never crashes and never throws; what it accepts is UTF-8 without NUL, survives dump and parse
// unchanged, and its canonical form is a fixed point, pure ASCII, and free of white space outside texts.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace holdfast;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  JsonProblem problem{JsonProblem::Kind::malformed, ""};
  const auto document = parse_json(text, &problem);
  if (!document) {
    HF_ASSERT(!problem.text.empty());
    static_cast<void>(dump_ascii(Json(problem.text)));
    HF_ASSERT(printable(text).find('\n') == std::string::npos);
    return 0;
  }
  HF_ASSERT(is_valid_utf8(text));
  HF_ASSERT(text.find('\0') == std::string_view::npos);
  const std::string canonical = dump_canonical(*document);
  for (const char byte : canonical) HF_ASSERT(byte >= 0x20 && byte < 0x7F);
  const auto again = parse_json(canonical);
  HF_ASSERT(again.has_value());
  HF_ASSERT(dump_canonical(*again) == canonical);
  HF_ASSERT(parse_json(dump_pretty(*document)) == again);
  static_cast<void>(exact_u64(*document));
  static_cast<void>(text_member(*document, "a"));
  return 0;
}
