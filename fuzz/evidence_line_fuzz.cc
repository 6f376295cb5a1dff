// Untrusted input: a segment of the evidence chain, as somebody may have left it.
//
// Invariants: reading, verifying and appending never crash; a line that is accepted, canonical and rightly hashed is
// what sealing its event gives; a segment that verifies does not verify with one byte changed; an append leaves every
// whole line that was there, and the first break where it was (a torn last line is set aside).
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "evidence/chain.h"
#include "evidence/chain_line.h"
#include "os/fake/control_folder.h"

namespace {

using namespace holdfast;
using namespace holdfast::evidence;

constexpr const char* kSegment = "log-000001.jsonl";
constexpr const char* kPath = "evidence/log-000001.jsonl";

void check_line(std::string_view text) {
  const auto line = read_line(text);
  if (!line || !is_canonical(*line, text) || recomputed_hash(*line) != line->hash) return;
  Json event = line->event;
  event.erase("hash");
  std::string hash;
  HF_ASSERT(seal(event, hash) == text && hash == line->hash);
}

void check_append(const std::string& text, const Verification& before) {
  os::FakeControlFolder files;
  files.plant(kPath, text);
  Event event;
  event.kind = "fuzzed";
  HF_ASSERT(Chain(files).append({event}, Instant{1, 2, "boot"}).ok());
  const std::string after = files.read(kPath).value().value();
  const std::size_t whole = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
  HF_ASSERT(after.substr(0, whole) == text.substr(0, whole));
  const Verification found = Chain(files).verify().value();
  const Verification whole_lines = Chain::verify_lines({{kSegment, text.substr(0, whole)}}).value();
  HF_ASSERT(found.first_break.has_value() == whole_lines.first_break.has_value());
  if (found.first_break) HF_ASSERT(found.first_break->line == before.first_break->line);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  check_line(text);
  check_line(std::string_view(text).substr(0, text.find('\n')));
  const Verification found = Chain::verify_lines({{kSegment, text}}).value();
  if (!found.first_break && !text.empty()) {
    std::string changed = text;
    changed[size / 2] = static_cast<char>(changed[size / 2] ^ 1);
    HF_ASSERT(Chain::verify_lines({{kSegment, changed}}).value().first_break.has_value());
  }
  check_append(text, found);
  return 0;
}
