// The rows of the command table, by what they are about. Everything else asks command_table.h.
#pragma once
#include "surfaces/cli/command_table.h"

namespace holdfast::cli {

std::vector<Command> lease_commands();
std::vector<Command> holding_commands();
std::vector<Command> write_commands();
std::vector<Command> reconcile_commands();
std::vector<Command> receiver_commands();
std::vector<Command> act_commands();
std::vector<Command> handoff_commands();
std::vector<Command> operator_commands();
std::vector<Command> evidence_commands();
std::vector<Command> program_commands();

// --workspace, --json, --direct, --help.
std::vector<OptionSpec> options_of_every_command();

}  // namespace holdfast::cli
