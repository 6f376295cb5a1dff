// A receiver of rows in a process of its own: an old owner that was paused, a side of a partition, one that is killed.
//
//   RowWorker old(database->config());                 // its receiver of accounts(id) is open when this returns
//   old.send(command, payload, current);  old.answer() // {"decision","outcome","refusal"}; null where it died
//
// Points: where a delivery can be halted. A worker that is told one says "at POINT" there and waits for go(), or for
// its end.
#pragma once
#include <string>

#include "receivers/receiver.h"
#include "support/child.h"

namespace holdfast::support {

// begin mark applied captured effect remembered raised commit committed observed: behind each step of deliver(), and
// "commit" before the commit.
constexpr const char* kDeliveryPoints[] = {"begin",      "mark",   "applied", "captured",  "effect",
                                           "remembered", "raised", "commit",  "committed", "observed"};

class RowWorker {
 public:
  explicit RowWorker(const Json& config);
  // At `point` it halts; "" nowhere.
  void send(const Command& command, const std::string& payload, const receivers::Current& current,
            const std::string& point = "");
  bool is_at_point() { return child_.read_line().starts_with("at "); }
  void go() { child_.write("go\n"); }
  Json answer();
  Child& process() { return child_; }

 private:
  Child child_;
};

}  // namespace holdfast::support
