// Progress of one request, where its client asked for it: notifications with a value that only grows.
//
// Threads: the request's own. Promises: nothing without a token; nothing after the object is gone, so nothing after the
// answer. Source: MCP "Progress".
#pragma once
#include <functional>
#include <string>

#include "engine/engine.h"

namespace holdfast::mcp {

class Progress {
 public:
  Progress(const Json& params, std::function<void(const Json& message)> send);
  // What long work is given; empty where nobody asked.
  ProgressReport report();

 private:
  void say(const Json& said);
  std::function<void(const Json&)> send_;
  Json token_;
  std::uint64_t told_ = 0;
};

}  // namespace holdfast::mcp
