#include "surfaces/mcp/server_link.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/json.h"
#include "server/client.h"
#include "server/start.h"

namespace holdfast::mcp {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kGiveUp{10'000};
constexpr milliseconds kPause{20};
constexpr std::size_t kIdleMax = 4;

class HeldContent : public ContentSource {
 public:
  explicit HeldContent(const std::string& bytes) : bytes_(bytes) {}
  Result<std::size_t> read(char* into, std::size_t size) override {
    const std::size_t count = std::min(size, bytes_.size() - used_);
    std::memcpy(into, bytes_.data() + used_, count);
    used_ += count;
    return count;
  }

 private:
  const std::string& bytes_;
  std::size_t used_ = 0;
};

Refusal cancelled_refusal() {
  return Refusal(Code::server_unreachable, "the request was cancelled").with_effect(Effect::none);
}

}  // namespace

void Cancellation::cancel() {
  const std::scoped_lock scoped(mutex_);
  if (answered_) return;
  cancelled_ = true;
  if (connection_ != nullptr) connection_->shut_down();
}

bool Cancellation::attach(os::Connection* connection) {
  const std::scoped_lock scoped(mutex_);
  if (!cancelled_) connection_ = connection;
  return !cancelled_;
}

bool Cancellation::detach(bool is_answered) {
  const std::scoped_lock scoped(mutex_);
  connection_ = nullptr;
  answered_ = is_answered && !cancelled_;
  return !cancelled_;
}

ServerLink::ServerLink(FindRoot find_root, std::string current_folder)
    : find_root_(std::move(find_root)), current_folder_(std::move(current_folder)) {}

Result<std::string> ServerLink::root() {
  const std::scoped_lock scoped(mutex_);
  // A workspace that is made while the client runs is found at the next request.
  if (root_.empty()) { HF_TRY(root_, find_root_()); }
  return root_;
}

Result<os::Connection> ServerLink::connect(const os::WorkspaceFolder& folder, bool fresh) {
  std::int64_t last_pid = 0;
  {
    const std::scoped_lock scoped(mutex_);
    if (fresh) idle_.clear();
    if (!idle_.empty()) {
      os::Connection connection = std::move(idle_.back());
      idle_.pop_back();
      return connection;
    }
    last_pid = server_pid_;
  }
  // While we were connected it did not leave by itself: a person stopped it.
  if (last_pid != 0 && !server_lives(folder.squad) && ended_in_order(folder, last_pid)) {
    return Refusal(Code::server_absent, "the server was stopped; its leases stay, unenforced");
  }
  HF_TRY(os::Connection connection, connect_or_start_server(folder));
  return connection;
}

// A connection goes on with another image of the server: who serves now is what the records say, not its peer.
void ServerLink::keep(const os::WorkspaceFolder& folder, os::Connection connection) {
  const std::int64_t pid = serving_pid(folder);
  const std::scoped_lock scoped(mutex_);
  if (pid != 0) server_pid_ = pid;
  if (idle_.size() < kIdleMax) idle_.push_back(std::move(connection));
}

Result<Json> ServerLink::ask_once(os::Connection& connection, const Json& request, const std::string* content,
                                  const ProgressReport& progress) {
  if (content == nullptr) return call_server(connection, request, nullptr, progress);
  HeldContent source(*content);
  return call_server(connection, request, &source, progress);
}

Result<Json> ServerLink::ask(const std::string& verb, Json arguments, Repeat repeat, Cancellation& cancellation,
                             const std::string* content, const ProgressReport& progress) {
  HF_TRY(const std::string place, root());
  HF_TRY(const os::WorkspaceFolder folder, os::open_workspace(place));
  arguments["cwd"] = current_folder_;
  const Json request = {{"verb", verb}, {"arguments", std::move(arguments)}, {"client", {{"bridge", true}}}};
  const auto give_up = steady_clock::now() + kGiveUp;
  for (bool fresh = false;; fresh = true, std::this_thread::sleep_for(kPause)) {
    if (cancellation.is_cancelled()) return cancelled_refusal();
    HF_TRY(os::Connection connection, connect(folder, fresh));
    if (!cancellation.attach(&connection)) return cancelled_refusal();
    auto answer = ask_once(connection, request, content, progress);
    if (!cancellation.detach(answer.ok())) {
      if (answer.ok() && verb == "acquire") give_back(*answer);
      return cancelled_refusal();
    }
    if (answer.ok()) {
      keep(folder, std::move(connection));
      return answer;
    }
    const Refusal& refusal = answer.refusal();
    const bool not_begun = refusal.code() == Code::server_unreachable && refusal.effect() == Effect::none;
    const bool lost = refusal.code() == Code::server_answer_lost || refusal.code() == Code::server_unreachable;
    if (!lost) {
      keep(folder, std::move(connection));
      return answer;
    }
    if (steady_clock::now() >= give_up || (!not_begun && repeat != Repeat::safe)) return answer;
  }
}

// The server could not know that nobody listens any more: its answer was on the way.
void ServerLink::give_back(const Json& answer) {
  for (Json& keys : keys_granted_now(answer)) {
    Cancellation never;
    static_cast<void>(ask("release", std::move(keys), Repeat::only_if_not_begun, never));
  }
}

}  // namespace holdfast::mcp
