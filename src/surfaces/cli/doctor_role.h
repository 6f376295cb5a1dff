// The attacker of `holdfast doctor`: this very program, as `holdfast challenge role:attack`. It is asked on standard
// input and answers on standard output, one document a line (engine/doctor_attacker.h), until its input ends.
#pragma once
#include "surfaces/cli/output.h"

namespace holdfast::cli {

inline constexpr const char* kAttackRole = "role:attack";

int run_attack_role(Output& output);

}  // namespace holdfast::cli
