// ChildProcess: another program, started, stopped, continued and ended, with what it prints.
//
// Calling sequence: start(); say() and read_line() while it runs; wait() once. The destructor kills what still runs.
// Promises: started without a fork of this process's memory; the child has its own process group, so that stop(),
// resume() and kill() reach what it started; its signals are as they are by default and none is blocked; of our
// descriptors it gets its three standard streams alone, which are pipes to us. What it prints is taken in whenever it
// is waited for, so a child that prints much never hangs.
// Does not promise: that a child's own children end with it, where they left its process group.
// Units: limits in ms. Errors: os_failed with details.os_error. Threads: one at a time.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "holdfast/result.h"
#include "os/handle.h"

namespace holdfast::os {

struct ChildOptions {
  std::string folder;                                            // where it starts; empty: here
  std::vector<std::pair<std::string, std::string>> environment;  // beside this process's own
  std::string without_prefix;                                    // variables whose names begin so are left out
};

class ChildProcess {
 public:
  static constexpr int kTookTooLong = -1000;

  // The program is searched in PATH where its name has no slash.
  static Result<std::unique_ptr<ChildProcess>> start(const std::vector<std::string>& arguments,
                                                     const ChildOptions& options = {});
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  std::int64_t pid() const { return pid_; }
  Result<void> say(std::string_view text);
  void close_input() { input_.reset(); }

  // The next line of its standard output without the newline; nullopt after the limit, or where it prints no more.
  // `meanwhile` runs about every 2 ms.
  std::optional<std::string> read_line(int limit_ms, const std::function<void()>& meanwhile = {});
  // Everything printed so far, lines that were read included.
  const std::string& output() const { return output_; }
  const std::string& errors() const { return errors_; }

  Result<void> stop();  // returns when it has stopped
  void resume();
  void kill();
  // Its exit status, or minus the signal that ended it; after the limit it is killed, and the answer is kTookTooLong.
  int wait(int limit_ms, const std::function<void()>& meanwhile = {});

 private:
  ChildProcess() = default;
  void listen(int limit_ms);
  bool reap(bool block);

  std::int64_t pid_ = 0;
  Handle input_;
  Handle output_end_;
  Handle errors_end_;
  std::string output_;
  std::string errors_;
  std::size_t lines_read_to_ = 0;
  bool reaped_ = false;
  int status_ = 0;
};

// A path that starts this very program, also where its file has been replaced since.
Result<std::string> this_program();

}  // namespace holdfast::os
