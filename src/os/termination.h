// Termination: when a serving process is asked to end, by SIGTERM, SIGINT or SIGHUP, or from inside.
//
// Calling sequence: open() before any thread is started (the signals are blocked in this thread and in those that it
// starts); wait() in one thread; request() from any.
// Promises: a signal that came before wait() is not lost; after destruction the thread's mask is as it was.
#pragma once
#include <memory>

#include "holdfast/result.h"

namespace holdfast::os {

class Termination {
 public:
  static Result<std::unique_ptr<Termination>> open();
  ~Termination();

  // true: asked to end. false: the time limit (ms; -1: none) came first.
  bool wait(int limit_ms);
  void request();

 private:
  Termination() = default;
  struct State;
  std::unique_ptr<State> state_;
};

// For a process that lives long and does little: small thread stacks, freed memory goes back to the system. Call it
// before threads are started.
void keep_footprint_small();

}  // namespace holdfast::os
