// Which way a request goes: in process, or through the workspace's server.
//
//   reads only                    in process, whether a server lives or not
//   changes, a server lives       through its socket; with --direct: direct_refused_server_lives
//   changes, no server            in process, servers/server.lock held shared
//   acquire --wait, no server     asked again every 200 ms: without a server there is no queue, and no order
//
// A server that is just starting or just ending is waited for (3 s); one that holds its lock and has no socket after
// that is server_unreachable.
// Errors: workspace_not_found (its hint names `holdfast init`), what os::open_workspace refuses, the server's and the
// engine's refusals.
#pragma once
#include <functional>
#include <string>

#include "engine/engine.h"
#include "os/workspace_folder.h"
#include "surfaces/cli/content.h"
#include "surfaces/cli/parse.h"
#include "surfaces/cli/surroundings.h"

namespace holdfast::cli {

// --workspace (which must have its own .squad), else the nearest at or above the current folder.
Result<std::string> workspace_root(const Invocation& invocation, const Surroundings& surroundings);

// An engine that reads only.
Result<std::unique_ptr<Engine>> open_observer(const std::string& root, const Surroundings& surroundings);

struct Sending {
  const Surroundings& surroundings;
  const std::string& root;
  bool mutating = true;
  bool direct = false;        // --direct
  bool bound = false;         // a lease that it takes is bound to this process
  bool needs_server = false;  // never directly: server_unreachable where none comes within 3 s
  StreamContent* content = nullptr;
  ProgressReport progress = {};

  bool content_begun() const { return content != nullptr && content->has_begun(); }
};
Result<Json> send(const Json& request, const Sending& sending);

// Asks the server to end, and waits up to 10 s until it holds the workspace no more.
Result<Json> stop_server(const std::string& root);

}  // namespace holdfast::cli
