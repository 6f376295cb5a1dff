// Opening and making a workspace: config.json, the identity of its .squad, and what has to hold before anything is
// done.
#pragma once
#include "engine/context.h"

namespace holdfast::engine {

// Refuses: workspace_not_found, workspace_insecure, workspace_config_invalid, workspace_copied, workspace_not_local
// (for direct and server mode).
Result<std::unique_ptr<Context>> open_context(const std::string& root, EngineOptions options);

// `init`, `init --adopt --reason`, `init --new-id --reason`.
Result<Json> initialise_workspace(const std::string& root, const Json& arguments);

}  // namespace holdfast::engine
