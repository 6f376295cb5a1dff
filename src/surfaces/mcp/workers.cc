#include "surfaces/mcp/workers.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>

namespace holdfast::mcp {

struct Workers::State {
  struct Task {
    std::function<void()> run;
    std::size_t bytes = 0;
  };
  std::mutex mutex;
  std::condition_variable queued;   // for one thread that rests
  std::condition_variable changed;  // for who waits for room, or for the end of all
  std::deque<Task> queue;
  std::size_t queued_bytes = 0;
  int threads = 0;
  int resting = 0;
  int own_threads = 0;

  bool is_idle() const { return queue.empty() && threads == resting && own_threads == 0; }

  void work() {
    std::unique_lock lock(mutex);
    for (;;) {
      ++resting;
      changed.notify_all();
      queued.wait(lock, [&] { return !queue.empty(); });
      --resting;
      Task task = std::move(queue.front());
      queue.pop_front();
      queued_bytes -= task.bytes;
      changed.notify_all();
      lock.unlock();
      task.run();
      task.run = nullptr;  // what it holds goes before the lock is taken, and before this counts as resting
      lock.lock();
    }
  }
};

Workers::Workers() : state_(std::make_shared<State>()) {}

void Workers::submit(std::function<void()> task, std::size_t bytes) {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [&] { return state_->queued_bytes == 0 || state_->queued_bytes + bytes <= kQueuedBytes; });
  state_->queue.push_back({std::move(task), bytes});
  state_->queued_bytes += bytes;
  const bool needs_thread = state_->resting < static_cast<int>(state_->queue.size()) && state_->threads < kThreads;
  if (needs_thread) {
    try {
      ++state_->threads;
      std::thread([state = state_] { state->work(); }).detach();
    } catch (const std::system_error&) {
      --state_->threads;
      if (state_->threads == 0) {
        // Not even one thread: the task runs here, and the next line waits.
        const State::Task own = std::move(state_->queue.back());
        state_->queue.pop_back();
        state_->queued_bytes -= own.bytes;
        lock.unlock();
        own.run();
        return;
      }
    }
  }
  state_->queued.notify_one();
}

bool Workers::submit_to_own_thread(std::function<void()> task) {
  const auto state = state_;
  {
    const std::scoped_lock scoped(state->mutex);
    if (state->own_threads >= kOwnThreads) return false;
    ++state->own_threads;
  }
  const auto leave = [state] {
    const std::scoped_lock scoped(state->mutex);
    --state->own_threads;
    state->changed.notify_all();
  };
  try {
    std::thread([leave, run = std::move(task)]() mutable {
      run();
      run = nullptr;
      leave();
    }).detach();
    return true;
  } catch (const std::system_error&) {
    leave();
    return false;
  }
}

bool Workers::wait_until_idle(std::chrono::milliseconds limit) {
  std::unique_lock lock(state_->mutex);
  return state_->changed.wait_for(lock, limit, [&] { return state_->is_idle(); });
}

}  // namespace holdfast::mcp
