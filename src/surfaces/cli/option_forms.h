// How the rows of the command table are written: one function for each form that an option takes, so that a row reads
// as what its command takes. Private to the command lists.
#pragma once
#include <string_view>
#include <vector>

#include "surfaces/cli/command_table.h"

namespace holdfast::cli::option_forms {

inline OptionSpec text(std::string_view name, std::string_view values, std::string_view argument,
                       std::string_view summary) {
  return {.name = name, .values = values, .summary = summary, .argument = argument};
}
inline OptionSpec flag(std::string_view name, std::string_view argument, std::string_view summary) {
  return {.name = name, .values = "", .summary = summary, .argument = argument};
}
inline OptionSpec own(std::string_view name, std::string_view values, std::string_view summary) {
  return {.name = name, .values = values, .summary = summary, .argument = ""};
}
inline OptionSpec needed(OptionSpec option) {
  option.required = true;
  return option;
}
inline OptionSpec unless_lease(OptionSpec option) {
  option.required = true;
  option.unless = "--lease";
  return option;
}
inline OptionSpec one_of(OptionSpec option, std::string_view choices) {
  option.choices = choices;
  return option;
}
inline OptionSpec key(std::string_view name, std::string_view values, std::string_view summary) {
  OptionSpec option = own(name, values, summary);
  option.is_key = true;
  return option;
}
inline OptionSpec many(OptionSpec option) {
  option.repeatable = true;
  return option;
}

inline std::vector<OptionSpec> with_keys(std::vector<OptionSpec> more = {}) {
  std::vector<OptionSpec> all = {key("--owner", "OWNER", "who holds the lease"),
                                 key("--task", "TASK", "the task that it is held for"),
                                 key("--generation", "NUMBER", "the tenancy's generation"),
                                 key("--started-at", "TIME", "the tenancy's started_at, as it was printed"),
                                 key("--lease", "FILE", "the keys from what `holdfast --json acquire` printed")};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

inline OptionSpec reason() { return needed(text("--reason", "TEXT", "reason", "why; kept in the evidence")); }
inline OptionSpec ttl() { return text("--ttl", "TIME", "ttl", "15m, 90s, or a number of minutes; at most 15 minutes"); }
inline OptionSpec no_guard() {
  return flag("--no-guard", "no_guard", "the lease alone, without the kernel's write exclusion");
}
inline OptionSpec require() {
  return one_of(text("--require", "RUNG", "require", "refuse a weaker guard than this"),
                "bpf_lsm|immutable_flag|kernel_lease");
}
inline OptionSpec wait() {
  return text("--wait", "SEC", "wait_seconds", "wait so long for your turn instead of being refused at once");
}
inline OptionSpec operation_id() {
  return text("--operation-id", "ID", "operation_id", "names the operation: the same id is never applied twice");
}
inline OptionSpec allow_hard_links() {
  return flag("--allow-hard-links", "allow_hard_links", "replace this name of a file that has several");
}

}  // namespace holdfast::cli::option_forms
