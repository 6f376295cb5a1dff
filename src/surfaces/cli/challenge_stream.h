// The queue of t3: a Redis stream where redis-server and redis-cli are installed, else a file of lines.
//
// Redis is started privately, on a socket in the scratch folder, without a port and without anything on disk; it ends
// with this object, and with this process, however that ends. Items that a consumer took and did not acknowledge are
// what a dead worker leaves; take_over() gives them to another one, as XAUTOCLAIM does.
// Calling sequence: open(); send() by producers; take() by a consumer; acknowledge() or not; take_over().
// Threads: one. Errors: os_failed with what redis-cli said.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "surfaces/cli/challenge_scratch.h"

namespace holdfast::cli::challenge {

class Queue {
 public:
  static Result<std::unique_ptr<Queue>> open(Scratch& scratch);
  virtual ~Queue() = default;
  virtual std::string what() const = 0;  // for people: which kind of queue this is
  virtual Result<void> send(const std::string& line) = 0;
  // What nobody has taken yet.
  virtual Result<std::vector<std::string>> take(const std::string& consumer) = 0;
  virtual Result<void> acknowledge(const std::string& consumer) = 0;
  // What other consumers took and never acknowledged.
  virtual Result<std::vector<std::string>> take_over(const std::string& consumer) = 0;
};

}  // namespace holdfast::cli::challenge
