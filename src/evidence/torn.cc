#include "evidence/torn.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/digest.h"
#include "base/json.h"
#include "evidence/chain_tail.h"

namespace holdfast::evidence {
namespace {

std::string prefix_of(std::uint64_t seq) { return "torn-" + std::to_string(seq) + "-"; }

// The <n> of the files torn-<seq>-<n>, ascending.
Result<std::vector<std::uint64_t>> numbers_at(os::ControlFolder& files, std::uint64_t seq) {
  const std::string prefix = prefix_of(seq);
  HF_TRY(const std::vector<std::string> names, files.list(kFolder));
  std::vector<std::uint64_t> numbers;
  for (const std::string& name : names) {
    if (!name.starts_with(prefix)) continue;
    if (const auto number = parse_u64(name.substr(prefix.size()))) numbers.push_back(*number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::string path_of(std::uint64_t seq, std::uint64_t number) {
  return std::string(kFolder) + "/" + prefix_of(seq) + std::to_string(number);
}

}  // namespace

Result<void> set_torn_bytes_aside(os::ControlFolder& files, const std::string& segment, std::uint64_t whole,
                                  std::uint64_t seq) {
  HF_TRY(const std::string torn, files.read_from(segment, whole));
  HF_TRY(const std::vector<std::uint64_t> numbers, numbers_at(files, seq));
  bool kept = false;
  for (const std::uint64_t number : numbers) {
    HF_TRY(const auto bytes, files.read(path_of(seq, number)));
    kept = kept || bytes == torn;
  }
  if (!kept) HF_CHECK(files.publish(path_of(seq, numbers.empty() ? 1 : numbers.back() + 1), torn));
  return files.truncate(segment, whole);
}

Result<Json> torn_files_at(os::ControlFolder& files, std::uint64_t seq) {
  HF_TRY(const std::vector<std::uint64_t> numbers, numbers_at(files, seq));
  Json found = Json::array();
  for (const std::uint64_t number : numbers) {
    HF_TRY(const auto bytes, files.read(path_of(seq, number)));
    if (!bytes) continue;
    found.push_back({{"path", path_of(seq, number)}, {"byte_count", bytes->size()}, {"sha256", sha256_hex(*bytes)}});
  }
  return found;
}

}  // namespace holdfast::evidence
