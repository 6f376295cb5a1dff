// `hold`, `run` and `exec`: a program under a lease.
//
// hold  acquires (starting a server where none runs), binds the lease to itself and to the program, renews it while the
//       program runs, releases it afterwards. run: the same, and the program can write only below the folders that it
//       leases. exec: no lease of its own; runs the program only under a tenancy that is current now.
// Promises: nothing runs without the lease; where the lease is lost the program is ended (TERM, then KILL, its whole
// process group) and the status is 75; else status and standard output are the program's. Signals reach the program.
// Does not promise: that a program which left its process group ends with it (`run` ends the whole tree).
// Source: CONTRACT sections 3 (bound leases) and 8.
#pragma once
#include <string>

#include "surfaces/cli/output.h"
#include "surfaces/cli/parse.h"
#include "surfaces/cli/surroundings.h"

namespace holdfast::cli {

int run_program(const Invocation& invocation, const Json& request, const std::string& root,
                const Surroundings& surroundings, Output& output);

}  // namespace holdfast::cli
