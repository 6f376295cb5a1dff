#include "engine/transfer.h"

#include "base/fault_point.h"
#include "base/json.h"

namespace holdfast::engine {

Result<Json> transfer_holder(Context& context, const std::vector<std::string>& scopes, const Holder& successor) {
  HF_TRY(Transition transition, begin_transition(context));
  authority::Batch batch;
  Json moved = Json::array();
  for (const std::string& full : scopes) {
    const auto held = transition.state.held.find(full);
    const bool ours = held != transition.state.held.end() && held->second.holder.is_server &&
                      held->second.holder.session == context.self.session &&
                      held->second.holder.process == context.self.process;
    if (!ours) {
      return Refusal(Code::holder_not_current, "holder_not_current: " + full + " is not held by this very server",
                     Json{{"scope", full}});
    }
    Tenancy tenancy = held->second;
    tenancy.holder = successor;
    evidence::Event event;
    event.kind = "holder_transferred";
    event.scope = full;
    event.generation = tenancy.generation;
    if (!tenancy.event.empty()) event.parents.push_back(tenancy.event);
    event.facts = {{"from", held->second.holder.to_json()}, {"to", successor.to_json()}};
    batch.events.push_back(std::move(event));
    moved.push_back({{"scope", full}, {"generation", tenancy.generation.text()}});
    batch.updates.push_back(std::move(tenancy));
  }
  HF_FAULT_POINT("transfer_before_commit");
  HF_CHECK(context.store->commit(transition.held, transition.state, std::move(batch), transition.now));
  return Json{{"transferred", std::move(moved)}};
}

}  // namespace holdfast::engine
