// Whether two processes really exclude each other on this file system (field report B94: locks that are silent no-ops
// on some mounts), and whether a lock is free again when its holder releases it or dies.
#pragma once
#include "engine/doctor_attacker.h"
#include "os/scratch_folder.h"

namespace holdfast::engine {

// {"mechanism":"transition_mutex","usable","freed_by_release","freed_by_death","operations":[…],"agrees",…}
Result<Json> examine_transition_mutex(os::ScratchFolder& scratch, DoctorAttacker& second);
// {"mechanism":"liveness_lock",…}: the same lock as a server holds on its record.
Result<Json> examine_liveness_lock(os::ScratchFolder& scratch, DoctorAttacker& second);

}  // namespace holdfast::engine
