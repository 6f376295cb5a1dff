// Ways out of a confinement, for confinement_escapes_test.cc: each tries to change what lies outside.
//
// An attempt runs in a process of its own, in the leased folder, confined or, to show that it is worth something, free.
// It says whether the system let it do what it came for.
#pragma once
#include <string>
#include <vector>

namespace holdfast::os {

struct EscapeGround {
  std::string inside;   // the leased folder: `mine` (a file), `way_out` (a link to outside/victim)
  std::string outside;  // `victim` (a file), `empty` (a folder), `spare` (a file)
  int neighbour = 0;    // a process outside: holds outside/victim open for writing as descriptor 9
  std::string socket;   // the abstract socket on which it listens, without the leading zero
};

struct EscapeAttempt {
  const char* name;
  bool (*run)(const EscapeGround& ground);  // true: done
  bool by_root_alone = false;               // an ordinary user may not do it anyway
  bool uncertain = false;                   // nobody is let, or not on every machine: shown to fail confined alone
};

const std::vector<EscapeAttempt>& escape_attempts_by_path();
const std::vector<EscapeAttempt>& escape_attempts_by_detour();

}  // namespace holdfast::os
