// `holdfast challenge`: the stale-writer challenge of the first seed (no name, or "stale-writer") and t1 to t4 of the
// second, with real processes, on a scratch workspace of its own.
//
// run_challenge prints exactly one document through `output`, or its text for people, or a refusal (challenge_unknown,
// challenge_failed), and returns the program's exit status. The current workspace, where there is one, is not touched.
#pragma once
#include <string>

#include "surfaces/cli/output.h"

namespace holdfast::cli {

struct ChallengeOptions {
  Output* output = nullptr;    // never null
  std::string package;         // where the evidence package goes; empty: a new folder of the challenge's choice
  std::string current_folder;  // absolute; a relative `package` starts here
  bool keep = false;           // leave the scratch workspace in place
};

int run_challenge(const std::string& name, const ChallengeOptions& options);

}  // namespace holdfast::cli
