#include "surfaces/mcp/watch.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/json.h"
#include "surfaces/mcp/message.h"
#include "surfaces/mcp/resources.h"

namespace holdfast::mcp {
namespace {

constexpr std::chrono::milliseconds kPause{250};

std::string fingerprint(ServerLink& link, const std::string& uri) {
  Cancellation never;
  auto found = fingerprint_of_resource(link, uri, never);
  return found.ok() ? *found : std::string(found.refusal().code_name());
}

}  // namespace

bool Watch::listen(const Json& id, const std::vector<std::string>& uris, const std::function<void()>& acknowledge) {
  std::map<std::string, std::string> now;
  for (const std::string& uri : uris) now.emplace(uri, fingerprint(link_, uri));
  const std::scoped_lock scoped(mutex_);
  if (std::find(open_.begin(), open_.end(), id) != open_.end()) return false;
  if (!id.is_null()) open_.push_back(id);
  acknowledge();
  for (const auto& [uri, print] : now) {
    auto& ids = listeners_[uri];
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
    seen_.emplace(uri, print);
  }
  head_.clear();  // the next look compares, whatever happened since
  changed_.notify_all();
  if (running_ || listeners_.empty()) return true;
  running_ = true;
  std::thread([this] { run(); }).detach();
  return true;
}

void Watch::stop_listening(const Json& id) {
  const std::scoped_lock scoped(mutex_);
  std::erase(open_, id);
  for (auto& [uri, ids] : listeners_) std::erase(ids, id);
  std::erase_if(listeners_, [](const auto& entry) { return entry.second.empty(); });
  std::erase_if(seen_, [&](const auto& entry) { return !listeners_.contains(entry.first); });
}

void Watch::stop_listening(const Json& id, const std::string& uri) {
  const std::scoped_lock scoped(mutex_);
  const auto found = listeners_.find(uri);
  if (found == listeners_.end()) return;
  std::erase(found->second, id);
  if (!found->second.empty()) return;
  listeners_.erase(found);
  seen_.erase(uri);
}

std::vector<Json> Watch::subscriptions() {
  const std::scoped_lock scoped(mutex_);
  return open_;
}

void Watch::run() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !listeners_.empty(); });
    }
    look();
    std::this_thread::sleep_for(kPause);
  }
}

void Watch::look() {
  Cancellation never;
  const auto answer = link_.ask("evidence_head", Json::object(), Repeat::safe, never);
  if (!answer.ok()) return;  // no server, or a workspace that cannot be read: whoever asks is told why
  const std::string head = text_member(*answer, "head");
  std::vector<std::string> uris;
  {
    const std::scoped_lock scoped(mutex_);
    if (head == head_) return;
    head_ = head;
    for (const auto& [uri, ids] : listeners_) uris.push_back(uri);
  }
  for (const std::string& uri : uris) tell_about(uri);
}

void Watch::tell_about(const std::string& uri) {
  const std::string now = fingerprint(link_, uri);
  // Told under the lock: after stop_listening() nothing more is said.
  const std::scoped_lock scoped(mutex_);
  const auto seen = seen_.find(uri);
  if (seen == seen_.end() || seen->second == now) return;
  seen->second = now;
  for (const Json& id : listeners_[uri]) {
    Json params = {{"uri", uri}};
    if (!id.is_null()) params["_meta"] = {{"io.modelcontextprotocol/subscriptionId", id}};
    tell_(notification_message("notifications/resources/updated", std::move(params)));
  }
}

}  // namespace holdfast::mcp
