// A publish fault becomes a reconciliation record, an event, and a mark on the lease (CONTRACT section 4, Exhibit 4).
#pragma once
#include "engine/context.h"
#include "replace/publish.h"

namespace holdfast::engine {

struct RecordedFault {
  std::string id;
  Json record;
};

// Puts the record, appends the event, marks the tenancy where one is held, and the intent.
Result<RecordedFault> record_fault(Context& context, Transition& transition, replace::Intent& intent,
                                   const replace::Plan& plan, const replace::Fault& fault, Json more = Json::object());

// A fault that a watch or a check noticed between two acts becomes such a record as well, where none is open on the
// scope: what was held last stays restorable, and no write goes on until somebody decides. `event` is the
// observation's.
Result<void> record_noticed_fault(Context& context, const Transition& transition, const Tenancy& tenancy,
                                  const guard::Observation& seen, const std::string& event);
// The end of the tenancy is a decision too: its check has kept what diverged. Only noticed faults are closed by it; one
// of a replacement waits for a person.
Result<void> close_noticed_faults(Context& context, const Scope& scope, const std::string& ended_by,
                                  const Json& quarantine_id, const Instant& now);
bool is_noticed_fault(const Json& record);

// The quarantine record of bytes that are in Amber already. Its id.
Result<std::string> list_foreign(Context& context, const Instant& now, const Scope& scope, const ContentDigest& digest,
                                 const std::string& kind, Json facts);
// Bytes of an object that was never ours: into Amber, with a quarantine record of this kind. Its id.
Result<std::string> keep_foreign(Context& context, const Instant& now, const Scope& scope, const os::Handle& object,
                                 const std::string& kind, Json facts);

}  // namespace holdfast::engine
