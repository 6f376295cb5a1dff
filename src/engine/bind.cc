// bind: whoever holds a bound lease names the command that runs under it.
#include "base/json.h"
#include "engine/acquire.h"
#include "engine/arguments.h"
#include "engine/due.h"
#include "engine/ending.h"

namespace holdfast::engine {

Result<Json> bind(Context& context, const Json& json, const Caller& caller) {
  const Arguments arguments(json);
  const os::ProcessIdentity command = os::ProcessIdentity::from_json(json.value("command", Json()));
  if (command.pid <= 0 || command.started_at.empty() || command.boot_id.empty()) {
    return usage("command is no identity of a process");
  }
  HF_TRY(Transition transition, begin_transition_on(context, arguments));
  HF_TRY(Tenancy bound, current_tenancy(context, transition, arguments));
  const Scope& scope = bound.scope;
  if (!bound.bound || !bound.client || !(*bound.client == caller.process)) {
    return Refusal(Code::request_malformed,
                   "request_malformed: the lease on " + scope.display() + " is not bound to who asks",
                   Json{{"scope", scope.full()}});
  }
  bound.command = command;
  evidence::Event event;
  event.kind = "lease_bound_to_command";
  event.scope = scope.full();
  event.generation = bound.generation;
  if (!bound.event.empty()) event.parents.push_back(bound.event);
  event.facts = {{"owner", bound.owner}, {"command_pid", command.pid}, {"client_pid", caller.process.pid}};
  authority::Batch batch;
  batch.updates.push_back(bound);
  batch.events.push_back(std::move(event));
  HF_CHECK(context.store->commit(transition.held, transition.state, std::move(batch), transition.now));
  return Json{{"lease", bound.to_json()}};
}

}  // namespace holdfast::engine
