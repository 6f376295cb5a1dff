// What serve() and adopt() have in common: from the first accepted connection to the end. Private to server/.
#pragma once
#include <optional>

#include "lease/liveness.h"
#include "os/control_folder.h"
#include "server/state.h"

namespace holdfast::server {

Result<Shared> make_state(const std::string& root, const ServeOptions& options);
Result<std::unique_ptr<Engine>> open_engine(const State& state);

// Until it is asked to end, or has handed over; then takes everything down. The helpers run already.
Result<int> serve_to_the_end(const Shared& state, os::ControlFolder& files, std::optional<LivenessRecord>& record);
// Everything but the lock, in the order that a successor relies on.
void take_down(State& state, os::ControlFolder& files, std::optional<LivenessRecord>& record);
// true: nothing runs any more.
bool finish(State& state);

}  // namespace holdfast::server
