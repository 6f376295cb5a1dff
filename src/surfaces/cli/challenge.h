// `holdfast challenge`: the stale-writer challenge of the first seed (no name, or "stale-writer"), t1 to t4 of the
// second, or `all` of them in turn, with real processes, each on a scratch workspace of its own.
//
// t1 to t4 are played on every receiver that can be had: the file, an SQLite row, a program, and, where `postgres`
// names a server, a row there, in a schema that the challenge makes and drops.
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
  std::string postgres;        // a libpq connection string without a password; empty: PostgreSQL is not shown
  bool keep = false;           // leave the scratch workspace in place
};

int run_challenge(const std::string& name, const ChallengeOptions& options);

}  // namespace holdfast::cli
