// From the words of the command line to an invocation of one command of the table.
//
// Calling sequence: parse_words(words without the program's name). Every byte of an argument arrives as it was typed,
// UTF-8 or not; a value may begin with '-'; "--name=" is an empty value, never the word that follows; after "--"
// everything is a positional. Global options may stand before and after the verb.
// Why no parser library: CLI11 2.1 reads `acquire --ttl= b` as --ttl "b" and leases one scope fewer than was asked.
// Errors: usage, unsupported_here (a verb or an option of a later release).
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/result.h"
#include "surfaces/cli/command_table.h"

namespace holdfast::cli {

struct Invocation {
  bool json = false;
  bool direct = false;
  bool help = false;
  std::optional<std::string> workspace;
  std::string topic;                 // with help: the verb words that were given
  const Command* command = nullptr;  // null only with help
  std::vector<std::string> positionals;
  std::vector<std::string> program;  // what follows `--`, of a command that runs a program
  std::map<std::string, std::vector<std::string>, std::less<>> options;  // values in order; a flag has none

  bool has(std::string_view option) const { return options.contains(option); }
  // The value of an option that takes one.
  std::optional<std::string> value(std::string_view option) const;
};

Result<Invocation> parse_words(const std::vector<std::string>& words);

// Whether the one who asked wants JSON, also where the rest cannot be parsed.
bool asks_for_json(const std::vector<std::string>& words);

// A refusal `usage`, with the command's usage line as its hint where the command is known.
Refusal usage_refusal(const std::string& message, const Command* command = nullptr);

}  // namespace holdfast::cli
