// The variables a started process gets: this process's own (environ(7)) without those whose names begin with
// `options.without_prefix`, and then `options.environment`, which replaces one of the same name. Both kinds of child,
// ChildOptions and CommandOptions, carry these two fields. Reads environ: not beside a thread that sets variables.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

extern char** environ;

namespace holdfast::os {

template <typename Options>
std::vector<std::string> environment_of(const Options& options) {
  std::vector<std::string> all;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string variable(*entry);
    if (!options.without_prefix.empty() && variable.starts_with(options.without_prefix)) continue;
    const bool replaced = std::ranges::any_of(
        options.environment, [&](const auto& added) { return variable.starts_with(added.first + "="); });
    if (!replaced) all.push_back(variable);
  }
  for (const auto& [name, value] : options.environment) all.push_back(name + "=" + value);
  return all;
}

}  // namespace holdfast::os
