// What a verb sees of the process beside its words: the current folder, the environment and small files that the
// arguments name. Passed in, so that the mapping of arguments to requests is tested without a process.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "holdfast/result.h"

namespace holdfast::cli {

struct Surroundings {
  std::string current_folder;
  std::function<std::optional<std::string>(const char* name)> environment;
  // The whole file, at most 1 MiB; lease_file_invalid where it cannot be read.
  std::function<Result<std::string>(const std::string& path)> read_file;
  // {"namespace","resource_id"} of a scope as typed; asked only to choose among several leases of a --lease file.
  std::function<Result<Json>(const std::string& scope)> canonical;
};

Surroundings this_process_surroundings();

// HOLDFAST_TRANSITION_TIMEOUT_MS can only shorten the 30 s; nonsense is ignored.
int transition_limit_ms(const Surroundings& surroundings);

}  // namespace holdfast::cli
