// DescriptorChannel: messages with open objects beside them, between a process and one that it starts.
//
// Calling sequence: make_pair() before the start; `theirs` is inherited under a number that the successor is told;
// inherited() there. Then send() and receive() on both ends, each from one thread at a time.
// Promises: an object arrives as the same open description (its lock goes on without a gap), close-on-exec; a message
// arrives whole or not at all; an end that is gone is seen at once.
// Does not promise: that the other end is who it should be; that is for the first message to prove.
// Units: limits in ms. Errors: handoff_failed (a peer that is gone, too slow, or no such channel).
// Source: unix(7), SCM_RIGHTS.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "holdfast/result.h"
#include "os/handle.h"

namespace holdfast::os {

class DescriptorChannel {
 public:
  static constexpr std::size_t kMessageMax = 80U << 20U;
  static constexpr std::size_t kObjectsMax = 8;

  struct Message {
    std::string text;
    std::vector<Handle> objects;
  };

  // `theirs` is an end for the process that is started.
  static Result<DescriptorChannel> make_pair(Handle& theirs);
  // The end that this process was started with.
  static Result<DescriptorChannel> inherited(Handle::Native number);

  Result<void> send(const std::string& text, const std::vector<const Handle*>& objects = {});
  // nullopt: the other end is gone. -1: no limit.
  Result<std::optional<Message>> receive(int limit_ms);

 private:
  explicit DescriptorChannel(Handle socket) : socket_(std::move(socket)) {}
  Handle socket_;
};

}  // namespace holdfast::os
