// `serve`: the workspace's server in the foreground; `serve --replace`; and what such a replacement runs.
#pragma once
#include <string>

#include "surfaces/cli/output.h"
#include "surfaces/cli/parse.h"
#include "surfaces/cli/surroundings.h"

namespace holdfast::cli {

// The first line on standard output is the ready line; nothing else follows there. A refusal where another server
// serves names its pid.
// With --replace and a server that runs: this program takes its place in the background, and the line is that one's.
int run_serve(const Invocation& invocation, const std::string& root, const Surroundings& surroundings, Output& output);

// `adopt NUMBER`: only the server that hands over starts it (server/adoption.h).
int run_adopt(const Invocation& invocation, const std::string& root, Output& output);

}  // namespace holdfast::cli
