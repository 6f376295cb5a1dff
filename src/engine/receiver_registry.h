// The registered receivers: receivers/NAME.json, each with the workspace's own copy of its marks.
//
// Nothing registers itself. A mark is raised at the receiver first, then here: a copy above the receiver's mark means
// that the receiver lost something, and it stays closed (receiver_high_water_missing).
// Calling sequence: under the transition for everything that saves. Errors: state_unreadable, not_found, target_exists.
// Source: CONTRACT sections 2 and 5; docs/formats/receivers.md.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "engine/context.h"
#include "receivers/receiver_set.h"

namespace holdfast::engine {

struct Registered {
  std::string name;
  std::string kind;
  Json config;
  std::string resource;                     // full canonical scope
  std::map<std::string, Generation> marks;  // by resource
  Json closed = nullptr;                    // {"needed","reason","since"}: a takeover could not raise its mark

  Json to_json() const;
  std::optional<Generation> mark() const;
};

Result<std::vector<Registered>> registered_receivers(Context& context);
Result<std::optional<Registered>> receiver_of(Context& context, const std::string& resource);
Result<std::vector<Registered>> receivers_overlapping(Context& context, const Scope& scope);
Result<Registered> receiver_named(Context& context, const std::string& name);
// not_found: what is told to whoever sends a command where nobody takes it.
Refusal no_receiver(const std::string& resource);
// `usage` for a connection that names a password: it would be kept in .squad, and in evidence that is exported.
Result<void> check_no_password(const Json& config);
Result<void> save_receiver(Context& context, const Registered& registered);

// A file of a receiver that lies in the workspace is kept as "project:/REL", so that the workspace can move; this is
// the config with which it is opened, and the way back.
Json opening_config(const Context& context, const Registered& registered);
Json kept_config(const Context& context, const Json& config);

// The opened receiver, one at a time for each: held for as long as the value lives.
class ReceiverInUse {
 public:
  ReceiverInUse(std::shared_ptr<OpenReceiver> open, std::unique_lock<std::mutex> lock)
      : open_(std::move(open)), lock_(std::move(lock)) {}
  receivers::Port* operator->() const { return open_->receiver.get(); }

 private:
  std::shared_ptr<OpenReceiver> open_;  // before the lock: it goes after it
  std::unique_lock<std::mutex> lock_;
};
Result<ReceiverInUse> use_receiver(Context& context, const Registered& registered);
// After receiver_unreachable: the next use opens it anew.
void forget_receiver(Context& context, const std::string& name);

}  // namespace holdfast::engine
