#include "surfaces/cli/server_verbs.h"

#include <cstdlib>

#include "base/json.h"
#include "os/workspace_folder.h"
#include "server/adoption.h"
#include "server/client.h"
#include "server/server.h"
#include "surfaces/cli/print.h"
#include "surfaces/cli/receiver_set.h"

namespace holdfast::cli {
namespace {

// nullopt: nobody serves, so there is nothing to be replaced.
std::optional<Result<Json>> replace_server(const std::string& root) {
  const auto folder = os::open_workspace(root);
  if (!folder.ok()) return folder.refusal();
  if (!server_lives(folder->squad)) return std::nullopt;
  return ask_for_handoff(*folder);
}

// What has begun to serve ends as a server does.
int end_of(const Result<int>& ended, Output& output) {
  if (ended && *ended == kEndedInOrder) return 0;
  if (ended) {
    output.diagnostic("holdfast: ended while requests still ran\n");
    std::_Exit(1);  // their threads use what the end of main would take away
  }
  // The ready line was the only one on standard output.
  output.diagnostic(human_refusal(ended.refusal()));
  return ended.refusal().exit_status();
}

}  // namespace

int run_serve(const Invocation& invocation, const std::string& root, const Surroundings& surroundings, Output& output) {
  bool is_ready = false;
  ServeOptions options;
  options.transition_limit_ms = transition_limit_ms(surroundings);
  options.receivers = receivers_in_their_processes();
  if (const auto idle = invocation.value("--leave-when-idle")) {
    const auto seconds = parse_u64(*idle);
    if (!seconds || *seconds == 0 || *seconds > 1'000'000) {
      return output.refuse(usage_refusal("--leave-when-idle needs a number of seconds", invocation.command));
    }
    options.idle_limit_ms = static_cast<int>(*seconds * 1000);
  }
  if (invocation.has("--replace")) {
    if (auto replaced = replace_server(root)) {
      return replaced->ok() ? output.document(**replaced) : output.refuse(replaced->refusal());
    }
    output.diagnostic("holdfast: no server runs here, so none is replaced; this one serves\n");
  }
  options.on_ready = [&](const Json& ready) {
    is_ready = true;
    (void)output.document(ready);  // whoever reads it may be gone; the workspace is served all the same
  };
  const auto ended = serve(root, options);
  if (!ended && !is_ready) return output.refuse(ended.refusal());
  return end_of(ended, output);
}

int run_adopt(const Invocation& invocation, const std::string& root, Output& output) {
  const auto number = parse_u64(invocation.positionals.front());
  if (!number || *number > 1'000'000) {
    return output.refuse(usage_refusal("adopt needs the number of a descriptor", invocation.command));
  }
  const auto ended = adopt(root, static_cast<os::Handle::Native>(*number), receivers_in_their_processes());
  if (!ended) return output.refuse(ended.refusal());
  return end_of(ended, output);
}

}  // namespace holdfast::cli
