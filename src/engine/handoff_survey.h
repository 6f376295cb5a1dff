// What a handoff finds when it looks: who ended, who is ready, and what can still alter the outcome. Private to the
// handoff verbs.
#pragma once
#include "engine/context.h"

namespace holdfast::engine {

struct Survey {
  Json old_owner_ended;  // {"ended_by","at","evidence"} or null: it still holds the scope
  Json new_owner;        // {"owner","task_id","generation","ready"} or null
  Json first_accepted;   // the generation of the new owner's first accepted act, or null
  Json inventory;        // {"leases","acts","commands"}: each with how it is classified
  Json receivers = Json::array();
  Json ambiguous = Json::array();   // unknown effects, each with its owner and review trigger
  Json in_the_way = Json::array();  // {"what","id"?,"why","closes_with"}
};

Result<Survey> survey(Context& context, Transition& transition, const Scope& scope, const Json& handoff);

}  // namespace holdfast::engine
