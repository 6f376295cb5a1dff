// Commands for tests: a shell that runs a script in a folder of the test's own, and what it leaves there.
#pragma once
#include <gtest/gtest.h>

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "os/command_process.h"
#include "os/process.h"
#include "support/child.h"
#include "support/refused_with.h"
#include "support/temporary_folder.h"

namespace holdfast::os {

constexpr int kLimitMs = 20'000;

inline std::unique_ptr<CommandProcess> started(const std::vector<std::string>& words,
                                               const CommandOptions& options = {}) {
  auto command = CommandProcess::start(words, options);
  EXPECT_TRUE(support::granted(command));
  return command ? std::move(*command) : nullptr;
}

// A shell that runs in the folder, and whose gate is open.
inline std::unique_ptr<CommandProcess> shell(const support::TemporaryFolder& place, const std::string& script,
                                             CommandOptions options = {}) {
  options.folder = place.path();
  auto command = started({"sh", "-c", script}, options);
  EXPECT_TRUE(command && support::granted(command->release_gate()));
  return command;
}

inline bool says(const support::TemporaryFolder& place, const std::string& name, const std::string& text) {
  return support::eventually([&] { return place.read(name) == text; });
}

inline pid_t pid_in(const support::TemporaryFolder& place, const std::string& name) {
  EXPECT_TRUE(support::eventually([&] { return place.read(name).ends_with("\n"); })) << name;
  const std::string text = place.read(name);
  return text.empty() ? -1 : static_cast<pid_t>(std::stol(text));
}

inline bool lives(pid_t pid) { return process_of_pid(pid).ok(); }

}  // namespace holdfast::os
