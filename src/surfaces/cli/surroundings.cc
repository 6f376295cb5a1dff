#include "surfaces/cli/surroundings.h"

#include <algorithm>
#include <cstdlib>

#include "base/json.h"
#include "os/stream.h"
#include "os/transition_mutex.h"
#include "os/workspace_folder.h"

namespace holdfast::cli {
namespace {

constexpr std::size_t kFileMax = 1U << 20U;
constexpr std::size_t kPiece = 64U * 1024U;

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

// A stream, not a regular file alone: `--lease <(command)` is a pipe.
Result<std::string> read_small_file(const std::string& path) {
  HF_TRY(const os::Handle file, os::open_to_read(path, Code::lease_file_invalid));
  std::string bytes;
  std::string piece(kPiece, '\0');
  for (;;) {
    HF_TRY(const std::size_t count, os::read_some(file, piece.data(), piece.size(), Code::lease_file_invalid));
    if (count == 0) return bytes;
    bytes.append(piece, 0, count);
    if (bytes.size() > kFileMax) {
      return Refusal(Code::lease_file_invalid, "a lease file of more than 1 MiB", Json{{"path", printable(path)}});
    }
  }
}

}  // namespace

Surroundings this_process_surroundings() {
  return {.current_folder = os::current_folder(),
          .environment = variable,
          .read_file = read_small_file,
          .canonical = [](const std::string&) -> Result<Json> {
            return Refusal(Code::lease_file_invalid,
                           "a lease file with several leases, and no workspace to tell which");
          }};
}

int transition_limit_ms(const Surroundings& surroundings) {
  const auto text = surroundings.environment("HOLDFAST_TRANSITION_TIMEOUT_MS");
  const auto asked = text ? parse_u64(*text) : std::nullopt;
  if (!asked) return os::TransitionMutex::kLimitMs;
  return static_cast<int>(std::min<std::uint64_t>(*asked, os::TransitionMutex::kLimitMs));
}

}  // namespace holdfast::cli
