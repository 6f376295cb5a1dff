// `holdfast doctor`: the engine's examination of this very file system (engine/doctor.h), printed.
//
// Errors of examine(): those of engine::doctor, and where this program cannot be found.
// run_doctor prints exactly one document, or its text for people, or a refusal, and returns the program's exit status.
// With SIGTERM, SIGINT or SIGHUP it ends early, and nothing of it is left.
#pragma once
#include <functional>
#include <string>

#include "surfaces/cli/output.h"

namespace holdfast::cli {

// The document alone; `asked_to_end` is asked now and then.
Result<Json> examine(const std::string& root, const std::function<bool()>& asked_to_end);
int run_doctor(const std::string& root, Output& output);

// {"doctor":{…}} for people.
std::string human_doctor(const Json& document);

}  // namespace holdfast::cli
