// What the passing of time and the death of clients make due, in a server (Engine::tick).
//
// Calling sequence: is_anything_due() without the mutex; look_at_what_is_due() hashes and archives before the
// transition; end_what_became_due() inside it. Threads: one.
#pragma once
#include "engine/ending.h"

namespace holdfast::engine {

bool is_anything_due(Context& context);
std::map<std::string, Sight> look_at_what_is_due(Context& context);
void end_what_became_due(Context& context, Transition& transition, const std::map<std::string, Sight>& seen);

}  // namespace holdfast::engine
