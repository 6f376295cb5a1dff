#include "surfaces/cli/doctor.h"

#include "base/json.h"
#include "engine/doctor.h"
#include "os/child_process.h"
#include "os/termination.h"
#include "surfaces/cli/doctor_role.h"

namespace holdfast::cli {

int run_doctor(const std::string& root, Output& output) {
  const auto asked_to_end = os::Termination::open();
  if (!asked_to_end.ok()) return output.refuse(asked_to_end.refusal());
  const auto program = os::this_program();
  if (!program.ok()) return output.refuse(program.refusal());
  bool to_end = false;
  const auto answer = engine::doctor(root, {.attacker = {*program, "challenge", kAttackRole}, .asked_to_end = [&] {
                                              to_end = to_end || (*asked_to_end)->wait(0);
                                              return to_end;
                                            }});
  if (answer.ok()) return output.json() ? output.document(*answer) : output.text(human_doctor(*answer));
  // A disagreement has a report, too; with --json it is in the details.
  const Refusal& refusal = answer.refusal();
  if (!output.json() && refusal.details().contains("doctor")) (void)output.text(human_doctor(refusal.details()));
  return output.refuse(refusal);
}

}  // namespace holdfast::cli
