// The end of a tenancy: every end runs the release check before the guard drops and before a successor captures its
// baseline (CONTRACT sections 3 and 6).
//
// Calling sequence: look_at() outside the transition (hashing, archiving); inside it still_so(), else look again; then
// end_tenancy(). Nothing is restored, nothing deleted: diverging bytes go to Amber and stay where they are.
#pragma once
#include "engine/context.h"

namespace holdfast::engine {

// What is at a scope: the bytes' digest, and the facts by which a later look tells whether it is still so.
struct Sight {
  std::string kind = "none";  // file folder none other unverifiable
  ContentDigest digest;       // of a file
  os::Facts facts;            // of a file
  std::string reason;         // of unverifiable
  bool archived = false;      // the bytes are in Amber
};

Sight look_at(Context& context, const Scope& scope, bool archive, const os::Progress& progress = {});
// Whether looking, hashing and archiving take so little time that they may happen inside the transition.
bool is_quick_to_look_at(Context& context, const Scope& scope);
bool still_so(Context& context, const Scope& scope, const Sight& sight);

struct ContentCheck {
  Json document;  // content_check of Exhibit 5
  bool mismatch = false;
  std::string amber_kind;  // post_edit quarantine_ungated none
};

// Compares what is there with post_sha256, or with the captured FNV-1a and length where no gated write happened.
ContentCheck check_content(const Tenancy& tenancy, const Sight& sight);

struct End {
  Json document;  // Exhibit 5
  std::string event;
  std::vector<evidence::Event> also;  // appended with the end (the force record)
};

// Under the transition: the check, the records, the event, the tenancy's end, then the guard.
Result<End> end_tenancy(Context& context, Transition& transition, const Tenancy& tenancy, const std::string& ended_by,
                        const Sight& sight, std::vector<evidence::Event> also = {});
// The same, looking now.
Result<End> end_tenancy_now(Context& context, Transition& transition, const Tenancy& tenancy,
                            const std::string& ended_by);

// Ends every tenancy that has expired or was revoked and overlaps `scope` (nullptr: every one).
Result<void> end_what_is_due(Context& context, Transition& transition, const Scope* scope);

Result<Json> release(Context& context, const Json& arguments, const Caller& caller);

}  // namespace holdfast::engine
