// Requests and answers between the two images of a handoff: JSON-RPC 2.0 over a DescriptorChannel
// (docs/formats/handoff.md). Private to server/.
//
// HandoffCaller is the side that hands over: one call at a time, whole before the next; after the first failure every
// call fails, and on_broken was told. A refusal that the other side answers is no failure of the channel.
// Threads: HandoffCaller is safe from several (the guards' own thread offers objects); receive() of
// HandoffRequest from one. Errors: handoff_failed, and what the other side refuses.
#pragma once
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/result.h"
#include "os/descriptor_channel.h"

namespace holdfast::server {

inline constexpr char kHandoffProtocol[] = "holdfast.handoff.1";
inline constexpr int kAuthenticationMs = 10'000;
inline constexpr int kCallMs = 10'000;

class HandoffCaller {
 public:
  HandoffCaller(os::DescriptorChannel& channel, std::function<void()> on_broken)
      : channel_(channel), on_broken_(std::move(on_broken)) {}
  Result<Json> call(const std::string& method, const Json& parameters,
                    const std::vector<const os::Handle*>& objects = {}, int limit_ms = kCallMs);

 private:
  Result<Json> exchange(const std::string& method, const Json& parameters,
                        const std::vector<const os::Handle*>& objects, int limit_ms);
  os::DescriptorChannel& channel_;
  std::function<void()> on_broken_;
  std::mutex mutex_;
  std::int64_t last_id_ = 100;
  bool broken_ = false;
};

struct HandoffRequest {
  Json id;
  std::string method;
  Json parameters;
  std::vector<os::Handle> objects;
};
// nullopt: the other side is gone.
Result<std::optional<HandoffRequest>> receive_request(os::DescriptorChannel& channel, int limit_ms);
Result<void> answer_request(os::DescriptorChannel& channel, const Json& id, const Result<Json>& outcome);

}  // namespace holdfast::server
