#include "surfaces/cli/doctor.h"

#include "base/json.h"
#include "engine/doctor.h"
#include "os/child_process.h"
#include "os/termination.h"
#include "surfaces/cli/doctor_role.h"

namespace holdfast::cli {

Result<Json> examine(const std::string& root, const std::function<bool()>& asked_to_end) {
  HF_TRY(const std::string program, os::this_program());
  return engine::doctor(root, {.attacker = {program, "challenge", kAttackRole}, .asked_to_end = asked_to_end});
}

int run_doctor(const std::string& root, Output& output) {
  const auto termination = os::Termination::open();
  if (!termination.ok()) return output.refuse(termination.refusal());
  bool to_end = false;
  const auto answer = examine(root, [&] {
    to_end = to_end || (*termination)->wait(0);
    return to_end;
  });
  if (answer.ok()) return output.json() ? output.document(*answer) : output.text(human_doctor(*answer));
  // A disagreement has a report, too; with --json it is in the details.
  const Refusal& refusal = answer.refusal();
  if (!output.json() && refusal.details().contains("doctor")) (void)output.text(human_doctor(refusal.details()));
  return output.refuse(refusal);
}

}  // namespace holdfast::cli
