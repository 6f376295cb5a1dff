#include "surfaces/cli/holding.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "base/clock.h"
#include "base/json.h"
#include "os/thread.h"
#include "server/client.h"
#include "server/start.h"

namespace holdfast::cli {
namespace {

constexpr std::int64_t kSoonMs = 500;
constexpr std::int64_t kLookMs = 2'000;    // how long an end by others (force, epoch) stays unnoticed
constexpr std::int64_t kMarginMs = 2'000;  // before the deadline the program is told
constexpr int kServerEndMs = 10'000;
constexpr std::int64_t kTtlMaxMs = 15 * 60 * 1000;

std::int64_t boot_ms() { return SystemClock().now().boot_ms; }

std::string scope_of(const Json& record) {
  return text_member(record, "namespace") + "://" + text_member(record, "resource_id");
}

bool ends_the_tenancy(Code code) {
  return code == Code::stale_lease_generation || code == Code::lease_expired || code == Code::control_epoch_revoked;
}

}  // namespace

Holding::~Holding() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
    if (watched_) watched_->shut_down();
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

Result<Json> Holding::ask(const std::string& verb, Json arguments, bool bound) {
  // A lease that is taken without a server is neither guarded nor released in the place of whoever died.
  const bool needs_server = verb == "acquire" || verb == "bind";
  Sending sending{.surroundings = surroundings_, .root = root_, .bound = bound, .needs_server = needs_server};
  if (arguments.contains("wait_seconds")) sending.progress = output_.waiting();
  return send(Json{{"verb", verb}, {"arguments", std::move(arguments)}}, sending);
}

Json Holding::keys_of(const Json& record) const {
  return Json{{"scope", scope_of(record)},          {"owner", record["owner"]},           {"task", record["task_id"]},
              {"generation", record["generation"]}, {"started_at", record["started_at"]}, {"cwd", "/"}};
}

void Holding::take(Held& held, const Json& record, std::int64_t sent_ms) {
  held.record = record;
  held.ttl_ms = static_cast<std::int64_t>(exact_u64(record.value("ttl_seconds", Json())).value_or(1)) * 1000;
  held.until_ms = sent_ms + held.ttl_ms;
}

Result<Json> Holding::acquire(const Json& request) {
  arguments_ = request.value("arguments", Json::object());
  HF_TRY(const os::WorkspaceFolder folder, os::open_workspace(root_));
  {
    HF_TRY(const os::Connection found, connect_or_start_server(folder, [this](std::int64_t pid) { note_server(pid); }));
    (void)found;
  }
  const std::int64_t sent_ms = boot_ms();
  HF_TRY(Json answer, ask("acquire", arguments_, true));
  output_.end_progress();
  for (const Json& record : answer.value("leases", Json::array())) {
    held_.emplace_back();
    take(held_.back(), record, sent_ms);
  }
  // A grant after a wait is younger than its request: one renewal says from when it counts.
  if (arguments_.contains("wait_seconds")) (void)renew_all();
  watch_server();
  return answer;
}

Result<void> Holding::bind(const os::ProcessIdentity& command) {
  command_ = command;
  for (const Held& held : held_) {
    Json arguments = keys_of(held.record);
    arguments["command"] = command.to_json();
    HF_CHECK(ask("bind", std::move(arguments), true));
  }
  return {};
}

Result<void> Holding::keep_lease_file(const std::string& path) {
  lease_file_ = path;
  return write_lease_file();
}

// A reader finds the old keys or the new ones, never a part.
Result<void> Holding::write_lease_file() {
  if (lease_file_.empty()) return {};
  Json document = {{"leases", Json::array()}};
  for (const Held& held : held_) document["leases"].push_back(held.record);
  const std::string staged = lease_file_ + ".staged";
  {
    std::ofstream file(staged, std::ios::binary | std::ios::trunc);
    file << dump_ascii(document) << '\n';
    if (!file.flush()) return Refusal(Code::os_failed, "the lease file could not be written", Json{{"path", staged}});
  }
  std::error_code error;
  std::filesystem::rename(staged, lease_file_, error);
  if (error) return Refusal(Code::os_failed, "the lease file could not be replaced: " + error.message());
  return {};
}

std::vector<std::pair<std::string, std::string>> Holding::environment() const {
  const Json& first = held_.front().record;
  return {{"HOLDFAST_LEASE_FILE", lease_file_},
          {"HOLDFAST_SCOPE", scope_of(first)},
          {"HOLDFAST_OWNER", text_member(first, "owner")},
          {"HOLDFAST_TASK", text_member(first, "task_id")},
          {"HOLDFAST_GENERATION", text_member(first, "generation")},
          {"HOLDFAST_STARTED_AT", text_member(first, "started_at")}};
}

Result<void> Holding::start_renewing(std::function<void()> on_loss) {
  on_loss_ = std::move(on_loss);
  HF_TRY(thread_, os::start_thread([this] { renew_until_stopped(); }));
  return {};
}

std::optional<std::string> Holding::lost() const {
  const std::scoped_lock lock(mutex_);
  return lost_.empty() ? std::nullopt : std::optional(lost_);
}

void Holding::lose(const std::string& reason) {
  {
    const std::scoped_lock lock(mutex_);
    if (!lost_.empty()) return;
    lost_ = reason;
  }
  if (on_loss_) on_loss_();
}

// So long before its deadline a lease that was not renewed counts as lost: the program is told while it still holds.
std::int64_t Holding::margin_of(const Held& held) { return std::min(kMarginMs, held.ttl_ms / 5); }

bool Holding::lost_by_now() {
  bool passed = false;
  {
    const std::scoped_lock lock(mutex_);
    const std::int64_t now = boot_ms();
    passed = std::any_of(held_.begin(), held_.end(),
                         [&](const Held& held) { return held.until_ms - margin_of(held) <= now; });
  }
  if (passed) lose("no renewal was acknowledged before its deadline");
  return lost().has_value();
}

bool Holding::started_server(std::int64_t pid) const {
  const std::scoped_lock lock(mutex_);
  return std::find(servers_.begin(), servers_.end(), pid) != servers_.end();
}

void Holding::note_server(std::int64_t pid) {
  const std::scoped_lock lock(mutex_);
  servers_.push_back(pid);
}

bool Holding::watch_server() {
  auto folder = os::open_workspace(root_);
  if (!folder.ok()) return false;
  auto connection = os::connect_to_server(folder->squad);
  const std::scoped_lock lock(mutex_);
  watched_ = connection.ok() ? std::make_shared<os::Connection>(std::move(*connection)) : nullptr;
  return watched_ != nullptr;
}

// Between two renewals the records are looked at, which costs nobody a flush: an end by others is not slept through.
void Holding::renew_until_stopped() {
  for (std::int64_t next_ms = boot_ms() + held_.front().ttl_ms / 3;;) {
    const std::int64_t pause_ms = std::clamp<std::int64_t>(next_ms - boot_ms(), 1, kLookMs);
    std::shared_ptr<os::Connection> watched;
    {
      std::unique_lock lock(mutex_);
      if (stopping_) return;
      watched = watched_;
      if (!watched) changed_.wait_for(lock, std::chrono::milliseconds(pause_ms), [this] { return stopping_; });
    }
    const bool server_went = watched && watched->wait_until_gone(static_cast<int>(pause_ms));
    {
      const std::scoped_lock lock(mutex_);
      if (stopping_ || !lost_.empty()) return;
    }
    if (server_went) after_the_server();
    if (!server_went && boot_ms() < next_ms && all_are_listed()) continue;
    next_ms = boot_ms() + renew_all();
  }
}

// Whether the records still show every lease as held. What cannot be read says nothing: the renewal will.
bool Holding::all_are_listed() {
  const auto engine = open_observer(root_, surroundings_);
  if (!engine.ok()) return true;
  const auto listed = (*engine)->perform(Json{{"verb", "leases"}, {"arguments", Json::object()}},
                                         Caller{.process = os::this_process()});
  if (!listed.ok()) return true;
  const Json leases = listed->value("leases", Json::array());
  return std::all_of(held_.begin(), held_.end(), [&](const Held& held) {
    return std::any_of(leases.begin(), leases.end(), [&](const Json& lease) {
      return scope_of(lease) == scope_of(held.record) && lease["generation"] == held.record["generation"] &&
             lease.value("state", Json("live")) == Json("live");
    });
  });
}

std::int64_t Holding::renew_all() {
  std::int64_t pause_ms = kTtlMaxMs;
  for (Held& held : held_) {
    const bool renewed = renew(held);
    const std::int64_t left = held.until_ms - margin_of(held) - boot_ms();
    if (left <= 0) lose("no renewal of " + scope_of(held.record) + " was acknowledged before its deadline");
    pause_ms =
        std::min(pause_ms, std::clamp<std::int64_t>(renewed ? held.ttl_ms / 3 : std::min(kSoonMs, left), 1, kTtlMaxMs));
  }
  return pause_ms;
}

bool Holding::renew(Held& held) {
  const std::int64_t sent_ms = boot_ms();
  Json arguments = keys_of(held.record);
  if (arguments_.contains("ttl")) arguments["ttl"] = arguments_["ttl"];
  auto answer = ask("heartbeat", std::move(arguments), true);
  if (answer.ok()) {
    const std::scoped_lock lock(mutex_);
    take(held, answer->value("lease", held.record), sent_ms);
    return true;
  }
  if (ends_the_tenancy(answer.refusal().code())) lose(answer.refusal().message());
  return false;
}

// As the records name it: a server may have handed over to another image since the last renewal.
Json Holding::holder_now() {
  const Json& first = held_.front().record;
  const Json before = first.value("holder", Json::object());
  const auto engine = open_observer(root_, surroundings_);
  if (!engine.ok()) return before;
  const auto listed = (*engine)->perform(Json{{"verb", "leases"}, {"arguments", Json::object()}},
                                         Caller{.process = os::this_process()});
  if (!listed.ok()) return before;
  for (const Json& lease : listed->value("leases", Json::array())) {
    if (scope_of(lease) == scope_of(first) && lease["generation"] == first["generation"]) {
      return lease.value("holder", before);
    }
  }
  return before;
}

// The connection to the server broke: it died, was stopped in order, gave its place to another, or lives on.
void Holding::after_the_server() {
  const auto folder = os::open_workspace(root_);
  if (!folder.ok()) return lose(folder.refusal().message());
  const auto began = boot_ms();
  const auto patience_ms = std::min(kSoonMs, held_.front().ttl_ms / 6);
  const Json holder = holder_now();
  const auto holder_pid = static_cast<std::int64_t>(exact_u64(holder.value("pid", Json())).value_or(0));
  for (;; std::this_thread::sleep_for(std::chrono::milliseconds(20))) {
    // A dying process closes one descriptor after the other: only its death says that what answers now is a successor.
    const auto passed_ms = boot_ms() - began;
    if (os::liveness_of(os::ProcessIdentity::from_json(holder)) != os::Liveness::alive) break;
    if (passed_ms >= kServerEndMs) break;
    // One that lives on and takes a new connection lost the old one alone. Were it dying, the new one breaks as well.
    if (passed_ms >= patience_ms && watch_server()) return;
  }
  if (!server_lives(folder->squad) && ended_in_order(*folder, holder_pid)) {
    output_.diagnostic("holdfast: the server was stopped: the lease stays, and nothing is guarded any more\n");
    const std::scoped_lock lock(mutex_);
    watched_.reset();
    return;
  }
  auto found = connect_or_start_server(*folder, [this](std::int64_t pid) { note_server(pid); });
  if (!found.ok()) {
    // Renewals go on without it; the deadline decides.
    const std::scoped_lock lock(mutex_);
    watched_.reset();
    return;
  }
  for (Held& held : held_) {
    if (auto granted = grant_again(held); !granted.ok()) {
      return lose("the server died, and its successor did not grant " + scope_of(held.record) +
                  " again: " + granted.refusal().message());
    }
  }
  if (auto written = write_lease_file(); !written.ok()) return lose(written.refusal().message());
  output_.diagnostic(
      "holdfast: the server died; the lease was granted again, the keys in HOLDFAST_LEASE_FILE are new\n");
  watch_server();
}

Result<void> Holding::grant_again(Held& held) {
  Json arguments = {{"scopes", {scope_of(held.record)}},
                    {"owner", held.record["owner"]},
                    {"task", held.record["task_id"]},
                    {"keys", held.record},
                    {"cwd", "/"},
                    {"reason", "its server died"}};
  for (const char* kept : {"ttl", "no_guard", "require", "confined"}) {
    if (arguments_.contains(kept)) arguments[kept] = arguments_[kept];
  }
  const std::int64_t sent_ms = boot_ms();
  HF_TRY(const Json answer, ask("acquire", std::move(arguments), true));
  const Json leases = answer.value("leases", Json::array());
  if (leases.empty()) return Refusal(Code::server_answer_lost, "no lease in the answer");
  {
    const std::scoped_lock lock(mutex_);
    take(held, leases.front(), sent_ms);
  }
  if (command_.pid == 0) return {};
  Json binding = keys_of(held.record);
  binding["command"] = command_.to_json();
  HF_CHECK(ask("bind", std::move(binding), true));
  return {};
}

Holding::Released Holding::release() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
    if (watched_) watched_->shut_down();
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  Released released;
  for (auto held = held_.rbegin(); held != held_.rend(); ++held) {
    auto answer = ask("release", keys_of(held->record), true);
    if (answer.ok()) {
      released.documents.push_back(std::move(*answer));
    } else if (!released.refusal) {
      released.refusal = answer.refusal();
    }
  }
  return released;
}

}  // namespace holdfast::cli
