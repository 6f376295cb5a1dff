#include "surfaces/cli/challenge_roles.h"

#include "base/json.h"
#include "os/name_swap.h"
#include "os/stream.h"
#include "surfaces/cli/doctor_role.h"
#include "surfaces/cli/receiver_set.h"

namespace holdfast::cli::challenge {
namespace {

constexpr std::size_t kInputMax = 64U * 1024U;

Result<std::string> read_input() {
  os::Handle input(0);
  std::string all;
  std::string piece(4096, '\0');
  for (;;) {
    auto count = os::read_some(input, piece.data(), piece.size(), Code::request_malformed);
    if (!count.ok() || *count == 0 || all.size() > kInputMax) {
      input.release();  // the process's, not ours to close
      if (!count.ok()) return std::move(count).refusal();
      return all;
    }
    all.append(piece, 0, *count);
  }
}

Result<os::NameSwap> swap_of(const std::string& text) {
  const auto wanted = parse_json(text);
  if (!wanted || !wanted->is_object()) return Refusal(Code::request_malformed, "no JSON object on standard input");
  os::NameSwap swap{.folder = text_member(*wanted, "folder"),
                    .prefix = text_member(*wanted, "prefix"),
                    .one = text_member(*wanted, "one"),
                    .other = text_member(*wanted, "other")};
  const auto pid = exact_u64(wanted->value("against_pid", Json()));
  const auto limit = exact_u64(wanted->value("limit_ms", Json()));
  constexpr std::uint64_t kLimitMsMax = 600'000;
  if (swap.folder.empty() || swap.prefix.empty() || !pid || !limit || *limit > kLimitMsMax) {
    return Refusal(Code::request_malformed, "a role needs folder, prefix, one, other, against_pid and limit_ms");
  }
  swap.against_pid = static_cast<std::int64_t>(*pid);
  swap.limit_ms = static_cast<int>(*limit);
  return swap;
}

}  // namespace

bool is_role(const std::string& name) { return name == kSwapNamesRole || name == kAttackRole || name == kReceiverRole; }

int run_role(const std::string& name, Output& output) {
  if (name == kReceiverRole) return run_receiver_role();
  if (name == kAttackRole) return run_attack_role(output);
  const auto input = read_input();
  if (!input.ok()) return output.refuse(input.refusal());
  const auto swap = swap_of(*input);
  if (!swap.ok()) return output.refuse(swap.refusal());
  const auto done = os::swap_when_name_appears(*swap, [&] { (void)output.document(Json{{"ready", true}}); });
  return done.ok() ? output.document(*done) : output.refuse(done.refusal());
}

}  // namespace holdfast::cli::challenge
