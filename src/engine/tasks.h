// Tasks: what a task may not change. .squad/tasks/<routing key of task://ID>.json (a second task of one key:
// KEY.<sha256(ID)[:16]>.json), {"protocol":"holdfast.task.1","id","sources":[SCOPE…],"generation","control_epoch",
// "reason","at"}.
//
// A source governs the task: whoever works under the task never writes it (governing_source_is_destination).
// Errors: usage, scope_*, state_unreadable, not_found.
#pragma once
#include "engine/context.h"

namespace holdfast::engine {

// {"task_id","sources":[…],"generation","control_epoch","evidence"}
Result<Json> task_set(Context& context, const Json& arguments);
Result<Json> task_show(Context& context, const Json& arguments);

// Refuses a destination that overlaps a governing source of the task.
Result<void> check_governing_sources(Context& context, const std::string& task_id, const Scope& destination);

}  // namespace holdfast::engine
