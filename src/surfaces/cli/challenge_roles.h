// Processes of the challenge that are this very program: `holdfast challenge role:swap-names`, with one JSON object on
// standard input. It prints {"ready":true}, and at the end what it did, one document a line.
//
// `role:attack` is the attacker of `holdfast doctor` (doctor_role.h).
// It is the hostile neighbour of os/name_swap.h. It does nothing that its user could not do with a few lines of C.
#pragma once
#include <string>

#include "surfaces/cli/output.h"

namespace holdfast::cli::challenge {

inline constexpr const char* kSwapNamesRole = "role:swap-names";

bool is_role(const std::string& name);
int run_role(const std::string& name, Output& output);

}  // namespace holdfast::cli::challenge
