// `holdfast doctor`: the engine's examination of this very file system (engine/doctor.h), printed.
//
// run_doctor prints exactly one document, or its text for people, or a refusal, and returns the program's exit status.
// With SIGTERM, SIGINT or SIGHUP it ends early, and nothing of it is left.
#pragma once
#include <string>

#include "surfaces/cli/output.h"

namespace holdfast::cli {

int run_doctor(const std::string& root, Output& output);

// {"doctor":{…}} for people.
std::string human_doctor(const Json& document);

}  // namespace holdfast::cli
