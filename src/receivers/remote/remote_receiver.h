// A receiver in a process of its own, spoken to through pipes.
//
// Why: a process that closes any descriptor of a file drops all of its POSIX locks on it, and the server opens and
// closes files of the workspace all the time; SQLite's locks must not be among them (field report B117). And a database
// that hangs is killed without the server.
// Calling sequence: open_remote() in the server; serve_receiver() in the child, which `program` starts. The child ends
// with its input, so with its server, however that ends.
// Promises: what the child answers is what the receiver answered; a child that died or says nothing for kAnswerMs is
// receiver_unreachable, or, in the middle of a delivery, receiver_outcome_unknown: the same command asked again tells.
// Threads: one at a time. Protocol: one JSON document a line; docs/formats/receivers.md.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "os/handle.h"
#include "receivers/receiver_set.h"

namespace holdfast::receivers {

// Less than the 30 s after which whoever waits for the same transition gives up.
constexpr int kAnswerMs = 25'000;

// `program` is the child's command line; kind and config go to it in the first line.
Result<std::unique_ptr<Port>> open_remote(const std::vector<std::string>& program, const std::string& kind,
                                          const Json& config);

// The child: answers questions on `in` until it ends.
void serve_receiver(const ReceiverSet& set, const os::Handle& in, const os::Handle& out);

}  // namespace holdfast::receivers
