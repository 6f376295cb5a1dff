// WakeSignal: wakes threads that wait for something else, all of them, for as long as it is raised.
//
// Calling sequence: open(); raise() and lower() from any thread; whoever waits names it beside what it waits for
// (Connection::wait_for_input_unless, Listener::accept).
// Promises: raised, it ends every such wait, those that begin later too, until it is lowered. Threads: safe.
// Errors: os_failed. Source: eventfd(2).
#pragma once
#include "holdfast/result.h"
#include "os/handle.h"

namespace holdfast::os {

class WakeSignal {
 public:
  static Result<WakeSignal> open();
  void raise() const;
  void lower() const;
  const Handle& handle() const { return handle_; }

 private:
  explicit WakeSignal(Handle handle) : handle_(std::move(handle)) {}
  Handle handle_;
};

}  // namespace holdfast::os
