// What the passing of time, a new control epoch and the death of clients make due.
//
// A verb: begin_transition_on() looks at what is due on its scopes before the transition, end_what_is_due() inside it
// ends that. The server's tick: is_anything_due() without the mutex; look_at_what_is_due() before the transition;
// end_what_became_due() inside it, with transition.seen. What is not looked at before is looked at inside: slower for
// everybody else, never wrong. Threads: any; each with a transition of its own.
#pragma once
#include <functional>

#include "engine/ending.h"

namespace holdfast::engine {

// Ends every tenancy that has expired or was revoked and overlaps `scope` (nullptr: every one). transition.seen spares
// looking where it still holds.
Result<void> end_what_is_due(Context& context, Transition& transition, const Scope* scope);

// A transition in which what is due on these scopes (nullptr: on any) has been looked at outside of it, so that its end
// inside is quick. `scopes_of` tells them under the first transition; nothing is changed before this returns.
using ScopesOf = std::function<std::vector<Scope>(const Transition&)>;
Result<Transition> begin_transition_on(Context& context, const ScopesOf& scopes_of,
                                       authority::Need need = authority::Need::tenancies, Sights seen = {});
// The same of the scope of a lease that a request names.
Result<Transition> begin_transition_on(Context& context, const std::string& text, const std::string& current_folder);
Result<Transition> begin_transition_on(Context& context, const Arguments& arguments);

bool is_anything_due(Context& context);
Sights look_at_what_is_due(Context& context);
void end_what_became_due(Context& context, Transition& transition);

}  // namespace holdfast::engine
