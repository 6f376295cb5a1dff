// What is made from the command table and the refusal catalogue: help, shell completions, docs/cli.md,
// docs/refusals.md. Pure. tests/surfaces compares the committed documents with these.
#pragma once
#include <optional>
#include <string>

#include "surfaces/cli/command_table.h"

namespace holdfast::cli {

std::string general_help();
// Of a verb, or of every verb of a group such as "epoch".
std::string help_on(const std::string& topic);
std::string help_on(const Command& command);

// bash, zsh or fish; nullopt for another shell.
std::optional<std::string> completions_for(const std::string& shell);

std::string cli_document();
std::string refusals_document();

}  // namespace holdfast::cli
