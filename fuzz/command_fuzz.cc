// Untrusted input: what comes out of a queue. A command in one of its forms, and the payload of a row's change.
//
// Invariants: nothing throws; a command that is read is the same in all three forms, and canonical() of what was read
// back is the same text; a child by delegation can be read, and has the parent's tenancy; a row's change that is read
// is written and read again as the same, and never names key or version among what it sets.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"
#include "holdfast/command.h"
#include "receivers/row_change.h"

namespace {

using namespace holdfast;

void check_forms(const Command& command) {
  const auto again = command_from_json(command.to_json());
  HF_ASSERT(again.ok() && *again == command);
  HF_ASSERT(again->canonical() == command.canonical());
  const auto header = command_from_header(command.header());
  HF_ASSERT(header.ok() && *header == command);
  const auto environment = command_from_environment(command.environment());
  HF_ASSERT(environment.ok() && *environment == command);
  const auto child = command.delegated({"child", command.resource, std::nullopt, command.payload_sha256});
  if (!child.ok()) return;
  HF_ASSERT(child->generation == command.generation && child->owner == command.owner &&
            child->task_id == command.task_id && child->parent_operation_id == command.operation_id);
}

void check_change(const Command& command, const std::string& payload) {
  const receivers::RowTarget target{"accounts", {"id"}, "version"};
  const auto change = receivers::read_row_change(command, payload, target);
  if (!change.ok()) return;
  HF_ASSERT(change->key.contains("id") && !change->set.contains("id") && !change->set.contains("version"));
  const auto key = receivers::values_from_json(receivers::values_to_json(change->key));
  HF_ASSERT(key.ok() && *key == change->key);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t newline = std::min(text.find('\n'), text.size());
  const std::string first(text.substr(0, newline));
  const std::string rest(text.substr(std::min(newline + 1, text.size())));
  if (const auto header = command_from_header(first); header.ok()) check_forms(*header);
  Command command;
  command.precondition = "1";
  const auto document = parse_json(first);
  if (document) {
    const auto read = command_from_json(*document);
    if (read.ok()) check_forms(*read);
    if (read.ok()) command = *read;
  }
  check_change(command, rest);
  return 0;
}
