#include "holdfast/refusal.h"
#include "surfaces/cli/documents.h"

namespace holdfast::cli {
namespace {

// A `|` would end a cell of a table.
std::string cell(std::string_view text) {
  std::string out;
  for (const char byte : text) out += byte == '|' ? std::string("\\|") : std::string(1, byte);
  return out;
}

std::string code(std::string_view text) { return "`" + std::string(text) + "`"; }

std::string option_table(const std::vector<OptionSpec>& options, bool keys) {
  std::string out;
  for (const OptionSpec& option : options) {
    if (option.is_key != keys) continue;
    std::string spelled(option.name);
    if (!option.values.empty()) spelled += " " + std::string(option.values);
    std::string summary(option.summary);
    if (!option.choices.empty()) summary += " (" + std::string(option.choices) + ")";
    if (option.required) summary += option.unless.empty() ? "; required" : "; required without " + code(option.unless);
    if (option.repeatable) summary += "; repeatable";
    out += "| " + code(cell(spelled)) + " | " + cell(summary) + " |\n";
  }
  return out.empty() ? out : "| option | |\n|---|---|\n" + out;
}

std::string command_section(const Command& command) {
  std::string out = "\n### " + std::string(command.name) + "\n\n    " + usage_line(command) + "\n\n";
  std::string summary(command.summary);
  summary[0] = static_cast<char>(summary[0] >= 'a' && summary[0] <= 'z' ? summary[0] - 'a' + 'A' : summary[0]);
  out += summary + ". " + (command.mutating ? "Goes through the server where one lives." : "Needs no server.") + "\n";
  const std::string options = option_table(command.options, false);
  if (!options.empty()) out += "\n" + options;
  out += "\n";
  for (const std::string_view example : command.examples) out += "    " + std::string(example) + "\n";
  return out;
}

constexpr std::string_view kIntroduction = R"(# The command line

This page is made from the command table: `holdfast docs cli > docs/cli.md`.

    holdfast [--workspace DIR] [--json] [--direct] VERB ...

The workspace is `--workspace`, else the nearest folder at or above the current one with a `.squad`. The global options
may stand before or after the verb. A value may begin with `-`; `--option=` is an empty value; after `--` every word is
an argument. Arguments travel byte for byte.

With `--json` standard output gets exactly one JSON document, ASCII, for a refusal and a usage error too; everything
else goes to standard error. Without, the output is for people, at most 80 columns, and may improve between releases.

| exit | |
|---|---|
| 0 | done |
| 1 | refused; [refusals.md](refusals.md) has every code |
| 2 | usage |
| 3 | `lease_transition_busy` |
| 4 | needs reconciliation; also `recover` while something waits for a decision |
| 5 | the machine failed: disk full, permission, standard output gone |

A verb that changes the workspace goes through its server where one lives, and then `--direct` is refused. Without a
server it works on the workspace itself, and a lease that it takes is not enforced by the kernel.

)";

}  // namespace

std::string cli_document() {
  std::string out(kIntroduction);
  out += "## Global options\n\n" + option_table(global_options(), false);
  out += "\n## KEYS\n\nThe tenancy keys, as `acquire` printed them: the first four options together, or `--lease`.\n\n";
  const Command* heartbeat = find_command("heartbeat");
  if (heartbeat != nullptr) out += option_table(heartbeat->options, true);
  out +=
      "\nWhere no option gives any, the environment does: `HOLDFAST_LEASE_FILE`, or `HOLDFAST_OWNER`, "
      "`HOLDFAST_TASK`,\n"
      "`HOLDFAST_GENERATION` and `HOLDFAST_STARTED_AT` together. Keys of two sources are never mixed. Of a file with\n"
      "several leases, the one on the verb's scope is taken.\n";
  out += "\n## Other variables\n\n| variable | |\n|---|---|\n";
  out += "| `HOLDFAST_TRANSITION_TIMEOUT_MS` | shortens the 30 s of waiting for the transition mutex |\n";
  out += "| `NO_COLOR` | no colour on a terminal |\n\n## Verbs\n";
  for (const Command& command : commands()) {
    if (!command.hidden) out += command_section(command);
  }
  out += "\n## Not in this release\n\n";
  std::string later;
  for (const std::string_view verb : later_verbs()) later += (later.empty() ? "" : ", ") + code(verb);
  for (const std::string_view option : later_options()) later += ", " + code(option);
  return out + later + ": refused with `unsupported_here`.\n";
}

std::string refusals_document() {
  std::string out =
      "# Refusals\n\nThis page is made from `src/base/refusals.def`: `holdfast docs refusals > docs/refusals.md`."
      "\nCodes are stable; messages may improve. `effect` is what the act did, `next` what to do about it.\n";
  for (std::size_t index = 0; index < code_count(); ++index) {
    const CodeFacts& facts = facts_at(index);
    out += "\n## " + std::string(facts.name) + "\n\n" + std::string(facts.summary) + ".\n\n";
    out += "effect " + code(name_of(facts.effect)) + ", next " + code(name_of(facts.next)) + ", exit " +
           std::to_string(facts.exit_status) + ": " + std::string(facts.hint) + "\n";
  }
  return out;
}

}  // namespace holdfast::cli
