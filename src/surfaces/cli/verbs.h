// One parsed command line, carried out. The exit status is the answer; everything printed goes through `output`.
#pragma once
#include "surfaces/cli/output.h"
#include "surfaces/cli/parse.h"
#include "surfaces/cli/surroundings.h"

namespace holdfast::cli {

int run_verb(const Invocation& invocation, const Surroundings& surroundings, Output& output);

}  // namespace holdfast::cli
