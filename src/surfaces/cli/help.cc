#include <algorithm>

#include "surfaces/cli/documents.h"
#include "surfaces/cli/text_layout.h"

namespace holdfast::cli {
namespace {

std::string spelled(const OptionSpec& option) {
  std::string text(option.name);
  if (!option.values.empty()) text += " " + std::string(option.values);
  return text;
}

std::vector<std::pair<std::string, std::string>> option_rows(const std::vector<OptionSpec>& options, bool keys) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const OptionSpec& option : options) {
    if (option.is_key != keys) continue;
    std::string summary(option.summary);
    if (!option.choices.empty()) summary += " (" + std::string(option.choices) + ")";
    rows.emplace_back(spelled(option), summary);
  }
  return rows;
}

// A shell reads it as one line.
std::string example_lines(std::string_view example) {
  std::string out;
  std::string line = "  ";
  for (std::size_t begin = 0; begin < example.size();) {
    // Between an option and its words nothing is broken: a quoted text has no " --".
    const std::size_t end = std::min(example.find(" --", begin + 1), example.size());
    const std::string_view part = example.substr(begin, end - begin);
    if (line.size() > 2 && line.size() + part.size() + 2 > kColumns) {
      out += line + " \\\n";
      line = "   ";
    }
    line += part;
    begin = end;
  }
  return out + line + "\n";
}

}  // namespace

std::string general_help() {
  std::string out = "holdfast: leases, generations and guarded replacement of files\n\n";
  out += paragraph("usage: ", "holdfast [--workspace DIR] [--json] [--direct] VERB ...") + "\n";
  std::vector<std::pair<std::string, std::string>> rows;
  for (const Command& command : commands()) {
    if (!command.hidden) rows.emplace_back(command.name, command.summary);
  }
  out += name_value_lines(rows) + "\noptions, before or after the verb\n";
  out += name_value_lines(option_rows(global_options(), false)) + "\n";
  std::string later;
  for (const std::string_view verb : later_verbs()) later += (later.empty() ? "" : ", ") + std::string(verb);
  for (const std::string_view option : later_options()) later += ", " + std::string(option);
  out += paragraph("not in this release: ", later);
  out += "\n`holdfast VERB --help` explains a verb and shows examples.\n";
  out += "exit: 0 done, 1 refused, 2 usage, 3 busy, 4 reconcile first, 5 machine failed\n";
  return out;
}

std::string help_on(const Command& command) {
  std::string out = paragraph("usage: ", usage_line(command));
  out += "\n" + paragraph("", command.summary);
  const auto own = option_rows(command.options, false);
  if (!own.empty()) out += "\noptions\n" + name_value_lines(own);
  if (command.keys != Keys::none) {
    out +=
        "\nKEYS, from `acquire`: the first four, or --lease\n" + name_value_lines(option_rows(command.options, true));
    out += paragraph("  ",
                     "Without any: HOLDFAST_LEASE_FILE, or HOLDFAST_OWNER, HOLDFAST_TASK, HOLDFAST_GENERATION and "
                     "HOLDFAST_STARTED_AT.");
  }
  if (!command.examples.empty()) out += "\nexamples\n";
  for (const std::string_view example : command.examples) out += example_lines(example);
  return out;
}

std::string help_on(const std::string& topic) {
  if (const Command* command = find_command(topic)) return help_on(*command);
  std::string out;
  for (const Command* command : commands_of_group(topic)) {
    out += (out.empty() ? "" : std::string(kColumns, '-') + "\n") + help_on(*command);
  }
  return out.empty() ? general_help() : out;
}

}  // namespace holdfast::cli
