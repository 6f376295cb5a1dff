// The command table: every verb of this release, once. Parsing, help, completions and docs/cli.md are made from it.
//
// A command's name is one or two words ("epoch advance"). `verb` is what the request calls it, empty where the command
// line does the work itself. `positional` is "", "SCOPE", "SCOPE...", "ID", "[NAME]" and so on.
// An option with an `argument` travels in the request under that name as it was typed; the others are the command
// line's own affair (request.cc).
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

struct OptionSpec {
  std::string_view name;    // "--owner"
  std::string_view values;  // "" a flag, "OWNER" one value, "OLD NEW" two
  std::string_view summary;
  std::string_view argument = {};  // the request's member, or empty
  bool required = false;
  std::string_view unless = {};  // an option that makes a required one optional
  bool repeatable = false;
  bool is_key = false;            // one of KEYS
  std::string_view choices = {};  // "a|b" for completion and help; the engine decides what is valid
};

enum class Keys { none, optional, required };

struct Command {
  std::string_view name;
  std::string_view verb;
  std::string_view summary;
  std::string_view positional = {};
  std::vector<OptionSpec> options = {};
  std::vector<std::string_view> examples = {};
  bool mutating = false;  // goes through the server where one lives
  Keys keys = Keys::none;
  bool hidden = false;
  std::vector<OptionSpec> hidden_options = {};  // parsed, and shown nowhere
  bool runs_program = false;                    // what follows `--` is a program and its arguments
  bool program_is_optional = false;
};

const std::vector<Command>& commands();
const std::vector<OptionSpec>& global_options();

// Verbs of the contract that this release does not have.
const std::vector<std::string_view>& later_verbs();
// The same for an option: `--wait` and its like are refused, never ignored.
const std::vector<std::string_view>& later_options();

const Command* find_command(std::string_view name);
// Whether the word begins names of two words, such as "epoch".
bool is_group(std::string_view word);
std::vector<const Command*> commands_of_group(std::string_view word);

// 0 for a flag.
std::size_t value_count(const OptionSpec& option);
// The smallest and the largest number of positionals.
struct PositionalCount {
  std::size_t least;
  std::size_t most;
};
PositionalCount positional_count(const Command& command);
// "holdfast acquire SCOPE... --owner OWNER …", in one line.
std::string usage_line(const Command& command);

}  // namespace holdfast::cli
