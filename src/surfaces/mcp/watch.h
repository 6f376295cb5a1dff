// Tells clients when a resource that they asked about has changed.
//
// Looks at the evidence's head a few times a second while somebody listens, and reads the resources again only where it
// moved. Promises: a change is told within about half a second, in each era's own form; nobody who did not ask is told.
// Does not promise: one notification for each change; two that fall into one look are told once.
// Threads: safe; one thread of its own, from the first subscription on.
#pragma once
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "holdfast/refusal.h"
#include "surfaces/mcp/server_link.h"

namespace holdfast::mcp {

class Watch {
 public:
  using Tell = std::function<void(Json message)>;
  Watch(ServerLink& link, Tell tell) : link_(link), tell_(std::move(tell)) {}

  // A subscription `id` (null: the legacy era's own) listens to these, from what they are now on; to nothing, too: it
  // is open until it stops. `acknowledge` is called before anything of the subscription is told.
  // false: a subscription of that id is open already, and nothing was done.
  bool listen(const Json& id, const std::vector<std::string>& uris, const std::function<void()>& acknowledge);
  void stop_listening(const Json& id);                          // the whole subscription
  void stop_listening(const Json& id, const std::string& uri);  // one address of it
  std::vector<Json> subscriptions();                            // ids, without the legacy era's

 private:
  void run();
  void look();
  void tell_about(const std::string& uri);
  ServerLink& link_;
  Tell tell_;
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  bool running_ = false;
  std::vector<Json> open_;  // subscriptions, in the order of their coming; not the legacy one
  std::map<std::string, std::vector<Json>> listeners_;  // address -> subscription ids
  std::map<std::string, std::string> seen_;             // address -> fingerprint
  std::string head_;
};

}  // namespace holdfast::mcp
