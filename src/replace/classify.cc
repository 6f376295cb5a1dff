#include "replace/classify.h"

namespace holdfast::replace {

Verdict classify(const Intent& intent, const Found& found) {
  const bool displaced_waits =
      found.at_temporary && intent.preimage.exists && *found.at_temporary == intent.preimage.identity;
  if (!found.readable) {
    return {"fault", Code::destination_unverifiable, "the destination cannot be looked at", displaced_waits};
  }
  if (!found.destination) {
    if (!intent.preimage.exists) return {"not_published", Code::destination_unverifiable, "", false};
    return {"fault", Code::destination_identity_changed, "nothing bears the leased name any more", displaced_waits};
  }
  const bool is_staged = intent.staged.known() && *found.destination == intent.staged;
  const bool is_preimage = intent.preimage.exists && *found.destination == intent.preimage.identity;
  if (found.destination_sha256 == intent.planned_sha256 && (is_staged || !is_preimage)) {
    return {"published_unverified", Code::destination_unverifiable, "", true};
  }
  if (is_staged) {
    return {"fault", Code::destination_content_diverged, "the published object does not hold the planned bytes", true};
  }
  // The preimage's bytes under another object: a divert gave them a new one before the crash.
  if (is_preimage || (intent.preimage.exists && found.destination_sha256 == intent.preimage.sha256)) {
    return {"not_published", Code::destination_unverifiable, "", false};
  }
  return {"fault", Code::destination_identity_changed,
          "the object at the leased name is neither the preimage nor the one that was to be published",
          displaced_waits};
}

}  // namespace holdfast::replace
