// The attacks of the doctor: each operation of the vocabulary in several ways, on a scratch file that a guard stands
// on, or that bears the immutable flag. doctor.h says how an outcome is judged.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "engine/doctor_attacker.h"
#include "guard/guard.h"
#include "os/kernel_trials.h"
#include "os/scratch_folder.h"

namespace holdfast::engine {

// What the trials stand on. The attackers outlive them.
struct DoctorGround {
  os::ScratchFolder& scratch;
  guard::Guards& guards;
  DoctorAttacker& attacker;
  DoctorAttacker* other_user;  // nullptr: may not become one
  const os::KernelFacts& kernel;
  std::function<bool()> asked_to_end;
  std::chrono::steady_clock::time_point deadline;  // what would begin later is not tried

  // Goes on, or refuses: doctor_interrupted.
  Result<void> may_go_on() const;
  bool is_late() const { return std::chrono::steady_clock::now() >= deadline; }
};

// {"mechanism":"kernel_lease","usable","reason","claims","operations":[…],"agrees",…}: a guard of this release.
Result<Json> examine_guard(DoctorGround& ground);
// The same of the immutable flag, which this release does not hold.
Result<Json> examine_immutable_flag(DoctorGround& ground);

// An operation of the report disagrees where the guard claimed it and it was let through.
bool operation_agrees(const Json& operation);
// Of all operations of a mechanism.
bool operations_agree(const Json& operations);

}  // namespace holdfast::engine
