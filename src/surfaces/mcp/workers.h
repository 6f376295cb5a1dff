// Threads for requests that run beside one another, made when they are needed.
//
// Promises: at most kThreads tasks run at once, the others wait in their order; submit() makes its caller wait while
// more than kQueuedBytes wait, so that a client that only sends cannot fill the memory; a task with a thread of its own
// (it will wait for others) takes no other's turn. Tasks must not throw.
// Does not promise: that its threads have ended with the object; the process ends them.
#pragma once
#include <chrono>
#include <functional>
#include <memory>

namespace holdfast::mcp {

class Workers {
 public:
  static constexpr int kThreads = 32;
  static constexpr int kOwnThreads = 256;
  static constexpr std::size_t kQueuedBytes = 32U << 20U;

  Workers();
  void submit(std::function<void()> task, std::size_t bytes);
  // false where as many have one as may, or the system has no more.
  bool submit_to_own_thread(std::function<void()> task);
  // Waits until nothing runs or waits; false at the limit.
  bool wait_until_idle(std::chrono::milliseconds limit);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace holdfast::mcp
