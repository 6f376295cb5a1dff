// The release check of a leased folder: what differs from the manifest that was captured, and which of it gated writes
// under nested leases made (CONTRACT sections 3 and 6).
//
// Calling sequence: capture_folder() at the grant; at the end look_into_folder() outside the transition, which hashes
// and archives, then check_folder() inside it, which reads records only.
// Does not promise: that a change which a gated write made and somebody else undid and made again is told apart.
#pragma once
#include "engine/ending.h"

namespace holdfast::engine {

// The baseline: everything below the folder hashed, its manifest in the Primary vault. file_unreadable where the folder
// cannot be listed.
Result<Sight> capture_folder(Context& context, const os::Handle& folder, const os::Facts& facts, const Sight& before);

// Completes a sight of kind "folder": every file that is not as captured goes to Amber as it is hashed (but for a
// confined tenancy, whose changes are only named), and so does the manifest. What fails makes it "unverifiable".
void look_into_folder(Context& context, const Tenancy& tenancy, const Sight* before, Sight& sight);

// Whether a folder was captured, so that this is the check of its end, whatever bears the name by then.
bool has_manifest(const Tenancy& tenancy);
Result<ContentCheck> check_folder(Context& context, const Transition& transition, const Tenancy& tenancy,
                                  const Sight& sight);
// For the quarantine record: the files of a sight that are kept.
Json kept_files(const std::vector<Difference>& differences);

}  // namespace holdfast::engine
