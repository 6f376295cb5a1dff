// `serve`: the workspace's server in the foreground.
#pragma once
#include <string>

#include "surfaces/cli/output.h"
#include "surfaces/cli/parse.h"
#include "surfaces/cli/surroundings.h"

namespace holdfast::cli {

// The first line on standard output is the ready line; nothing else follows there. A refusal where another server
// serves names its pid.
int run_serve(const Invocation& invocation, const std::string& root, const Surroundings& surroundings, Output& output);

}  // namespace holdfast::cli
