// The end of a tenancy: every end runs the release check before the guard drops and before a successor captures its
// baseline (CONTRACT sections 3 and 6).
//
// Calling sequence: look_at_end_of() outside the transition (hashing, archiving), what is due by
// begin_transition_on() (due.h); inside it still_so(), else look again; then end_tenancy(). Nothing is restored,
// nothing deleted: diverging bytes go to Amber and stay where they are.
#pragma once
#include "engine/arguments.h"
#include "engine/context.h"
#include "engine/sight.h"

namespace holdfast::engine {

// The guarded object, opened so that it stands still while the handle is open; nullopt where no guard can do that or it
// no longer bears the name with these facts (a divert's twin does: it has the same bytes).
Result<std::optional<os::Handle>> held_still(const std::shared_ptr<guard::Guard>& guard, const os::Facts& at_name);

// Of a folder only that it is one. With the scope's guard, what is read stands still.
Sight look_at(Context& context, const Scope& scope, bool archive, const std::shared_ptr<guard::Guard>& guard = nullptr);
// For the end of a tenancy: archives, and reads a folder. With the sight before, only what changed since is read. The
// guard is the tenancy's own where none is named.
Sight look_at_end_of(Context& context, const Tenancy& tenancy, const Sight* before = nullptr,
                     const std::shared_ptr<guard::Guard>& guard = nullptr);
// Whether looking, hashing and archiving take so little time that they may happen inside the transition.
bool is_quick_to_look_at(Context& context, const Scope& scope);
bool still_so(Context& context, const Scope& scope, const Sight& sight);

struct ContentCheck {
  Json document;  // content_check of Exhibit 5
  bool mismatch = false;
  std::string amber_kind;                // post_edit quarantine_ungated none
  std::vector<Difference> ungated = {};  // of a folder
};

// Compares what is there with post_sha256, or with the captured FNV-1a and length where no gated write happened.
ContentCheck check_content(const Tenancy& tenancy, const Sight& sight);

// An end that was checked and whose bytes are kept, and that no commit has made true yet.
struct PreparedEnd {
  EndedTenancy ended;
  std::vector<evidence::Event> events;
  ContentCheck check;
  Json quarantine_id = nullptr;
};
Result<PreparedEnd> prepare_end(Context& context, Transition& transition, const Tenancy& tenancy,
                                const std::string& ended_by, const Sight& sight, std::vector<evidence::Event> also);
// The same of a tenancy as it is now: guard asked, intents settled, observations recorded. `seen` spares looking where
// it still holds.
Result<PreparedEnd> prepare_end_now(Context& context, Transition& transition, const Tenancy& tenancy,
                                    const std::string& ended_by, const Sight* seen = nullptr);
// After the commit: the guard drops, whoever waits is woken. Exhibit 5.
Json finish_end(Context& context, const PreparedEnd& end, const Instant& now);

// Prepared, committed, finished. Exhibit 5.
Result<Json> end_tenancy(Context& context, Transition& transition, const Tenancy& tenancy, const std::string& ended_by,
                         const Sight& sight, std::vector<evidence::Event> also = {});
Result<Json> end_tenancy_now(Context& context, Transition& transition, const Tenancy& tenancy,
                             const std::string& ended_by, const Sight* seen = nullptr);

// The tenancy of these keys, where it is current: what is due on the scope is ended first. Refuses as judge_keys does.
Result<Tenancy> current_tenancy(Context& context, Transition& transition, const Scope& scope, const TenancyKeys& keys);
// The same of a request's scope and keys.
Result<Tenancy> current_tenancy(Context& context, Transition& transition, const Arguments& arguments);

Result<Json> release(Context& context, const Json& arguments, const Caller& caller);

}  // namespace holdfast::engine
