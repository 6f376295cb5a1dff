#include "surfaces/cli/server_verbs.h"

#include <cstdlib>

#include "base/json.h"
#include "server/server.h"
#include "surfaces/cli/print.h"

namespace holdfast::cli {

int run_serve(const Invocation& invocation, const std::string& root, const Surroundings& surroundings, Output& output) {
  bool is_ready = false;
  ServeOptions options;
  options.transition_limit_ms = transition_limit_ms(surroundings);
  if (const auto idle = invocation.value("--leave-when-idle")) {
    const auto seconds = parse_u64(*idle);
    if (!seconds || *seconds == 0 || *seconds > 1'000'000) {
      return output.refuse(usage_refusal("--leave-when-idle needs a number of seconds", invocation.command));
    }
    options.idle_limit_ms = static_cast<int>(*seconds * 1000);
  }
  options.on_ready = [&](const Json& ready) {
    is_ready = true;
    (void)output.document(ready);  // whoever reads it may be gone; the workspace is served all the same
  };
  const auto ended = serve(root, options);
  if (ended && *ended == kEndedInOrder) return 0;
  if (ended) {
    output.diagnostic("holdfast: ended while requests still ran\n");
    std::_Exit(1);  // their threads use what the end of main would take away
  }
  if (!is_ready) return output.refuse(ended.refusal());
  // The ready line was the only one on standard output.
  output.diagnostic(human_refusal(ended.refusal()));
  return ended.refusal().exit_status();
}

}  // namespace holdfast::cli
