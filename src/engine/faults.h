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
                                   const replace::Plan& plan, const replace::Fault& fault);

// Bytes of an object that was never ours: into Amber, with a quarantine record of this kind. Its id.
Result<std::string> keep_foreign(Context& context, const Instant& now, const Scope& scope, const os::Handle& object,
                                 const std::string& kind, Json facts);

}  // namespace holdfast::engine
