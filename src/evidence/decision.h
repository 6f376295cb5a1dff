// Decisions, recomputed from their recorded inputs: what a package says was decided must follow from what it says was
// known. docs/formats/evidence.md has the inputs and the order of the rules.
//
// Recomputed: accepted, repeated, stale_lease_generation, control_epoch_revoked, lease_expired,
// generation_incomparable, receiver_high_water_missing, operation_id_reused, receiver_outcome_unknown,
// record_version_changed, record_missing. Every other decision is unknown, and so is one whose inputs are incomplete.
#pragma once
#include <string>

#include "holdfast/refusal.h"

namespace holdfast::evidence {

struct Recomputed {
  enum class Verdict { agrees, differs, unknown } verdict = Verdict::unknown;
  std::string reason;  // of a difference or of not knowing
};

// `decision` is {"decision":…,"inputs":{…}}.
Recomputed recompute(const Json& decision);

}  // namespace holdfast::evidence
