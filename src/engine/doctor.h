// Doctor: what the kernel really does on this very file system, found out by attacking scratch files.
//
// Calling sequence: doctor(root, options), in any process; a server may serve the workspace meanwhile.
// It makes a scratch folder in the workspace root, takes a real guard on one scratch file after the other, and lets
// other processes attack it with each operation of the vocabulary in several ways. An outcome is judged by what is at
// the name afterwards and by what the guard noticed, never by what the attacker says alone:
//   denied       the call was refused (or kept waiting), and the name is as it was
//   diverted     it succeeded on an object that had lost the name
//   detected     it succeeded, and the guard noticed
//   let_through  it succeeded, and nothing noticed
//   not_tried    with the reason
// Promises: nothing of the workspace is read or changed but that folder, which is gone at the end in every outcome
// (after SIGKILL: at the next doctor); everything is tried by doing, nothing inferred from a version; ends within 20 s.
// Does not promise: that what was not tried behaves likewise. `not_tried` lists it.
// Errors: doctor_disagrees (details.doctor is the whole report), doctor_interrupted, destination_read_only,
// workspace_permission_denied, what os::open_workspace refuses. Threads: blocks the caller.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "holdfast/result.h"

namespace holdfast::engine {

struct DoctorOptions {
  // The words that start an attacker: a program that is asked on standard input and answers on standard output, one
  // JSON document a line (doctor_attacker.h).
  std::vector<std::string> attacker;
  std::function<bool()> asked_to_end = [] { return false; };
};

// {"doctor":{"workspace_file_system","local","kernel","user","mechanisms":[…],"not_tried":[…],"passed",…}}
Result<Json> doctor(const std::string& root, const DoctorOptions& options);

}  // namespace holdfast::engine
