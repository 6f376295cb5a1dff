// `read` and `quarantine export`: the bytes themselves, in constant memory, exactly as they are.
#pragma once
#include <string>

#include "surfaces/cli/output.h"
#include "surfaces/cli/parse.h"
#include "surfaces/cli/surroundings.h"

namespace holdfast::cli {

// The exit status. Without --json the bytes go to standard output; with it the document does, with content_base64, and
// more than 64 MiB are refused.
int run_read(const Json& request, const std::string& root, const Surroundings& surroundings, Output& output);

// To a new file (0600), or to standard output for "-".
int run_quarantine_export(const Invocation& invocation, const Json& request, const std::string& root,
                          const Surroundings& surroundings, Output& output);

}  // namespace holdfast::cli
