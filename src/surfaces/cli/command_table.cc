#include "surfaces/cli/command_table.h"

#include <algorithm>
#include <limits>

#include "surfaces/cli/command_list.h"

namespace holdfast::cli {
namespace {

std::vector<Command> all_commands() {
  std::vector<Command> all;
  for (auto part : {lease_commands(), holding_commands(), write_commands(), reconcile_commands(), receiver_commands(),
                    act_commands(), handoff_commands(), operator_commands(), evidence_commands(), program_commands()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

std::string_view first_word(std::string_view name) { return name.substr(0, name.find(' ')); }

}  // namespace

const std::vector<Command>& commands() {
  static const std::vector<Command> all = all_commands();
  return all;
}

const std::vector<OptionSpec>& global_options() {
  static const std::vector<OptionSpec> all = options_of_every_command();
  return all;
}

const std::vector<std::string_view>& later_verbs() {
  static const std::vector<std::string_view> all = {"guardd"};
  return all;
}

const std::vector<std::string_view>& later_options() {
  static const std::vector<std::string_view> all = {};
  return all;
}

const Command* find_command(std::string_view name) {
  for (const Command& command : commands()) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

bool is_group(std::string_view word) { return !commands_of_group(word).empty(); }

std::vector<const Command*> commands_of_group(std::string_view word) {
  std::vector<const Command*> found;
  for (const Command& command : commands()) {
    if (command.name.size() > word.size() && first_word(command.name) == word) found.push_back(&command);
  }
  return found;
}

std::size_t value_count(const OptionSpec& option) {
  if (option.values.empty()) return 0;
  return static_cast<std::size_t>(std::count(option.values.begin(), option.values.end(), ' ')) + 1;
}

PositionalCount positional_count(const Command& command) {
  if (command.positional.empty()) return {0, 0};
  if (command.positional.front() == '[') return {0, 1};
  if (command.positional.ends_with("...")) return {1, std::numeric_limits<std::size_t>::max()};
  return {1, 1};
}

std::string usage_line(const Command& command) {
  std::string line = "holdfast " + std::string(command.name);
  const auto add = [&line](std::string_view piece) { line += (line.empty() ? "" : " ") + std::string(piece); };
  if (!command.positional.empty()) add(command.positional);
  if (command.keys != Keys::none) add(command.keys == Keys::required ? "KEYS" : "[KEYS]");
  for (const bool required : {true, false}) {
    for (const OptionSpec& option : command.options) {
      if (option.is_key || option.required != required) continue;
      std::string piece(option.name);
      if (!option.values.empty()) piece += " " + std::string(option.values);
      if (option.repeatable) piece += "...";
      add(required ? piece : "[" + piece + "]");
    }
  }
  if (command.runs_program) add(command.program_is_optional ? "[-- CMD...]" : "-- CMD...");
  return line;
}

}  // namespace holdfast::cli
