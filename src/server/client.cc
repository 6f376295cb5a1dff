#include "server/client.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include "base/json.h"
#include "base/piece.h"
#include "lease/liveness.h"
#include "os/control_folder.h"
#include "os/process.h"
#include "server/exchange.h"
#include "server/server_lock.h"

namespace holdfast {
namespace {

class EmptyContent : public ContentSource {
  Result<std::size_t> read(char*, std::size_t) override { return std::size_t{0}; }
};

class Call {
 public:
  Call(os::Connection& connection, const Json& request, const ProgressReport& progress)
      : connection_(connection), verb_(text_member(request, "verb")), progress_(progress) {}

  Result<Json> run(const Json& request, ContentSource* content) {
    if (const auto sent = send_document(connection_, request); !sent) return not_delivered(sent.refusal());
    if (content != nullptr) {
      HF_TRY(std::optional<Json> early, send_content(*content));
      if (early) return as_result(std::move(*early));
    }
    for (;;) {
      auto answer = next_answer();
      if (!answer) return answer_lost(answer.refusal());
      if (*answer) return as_result(std::move(**answer));
    }
  }

 private:
  // The answer, where it came before all content was sent.
  Result<std::optional<Json>> send_content(ContentSource& content) {
    Piece piece;
    for (;;) {
      while (connection_.has_input()) {
        auto answer = next_answer();
        if (!answer) return not_delivered(answer.refusal());
        if (!*answer) continue;
        // The server has decided without the rest, and only waits for its end.
        static_cast<void>(connection_.send('E', ""));
        return answer;
      }
      const auto count = content.read(piece.data(), piece.size());
      if (!count) {
        connection_.shut_down();  // no 'E': the server drops what it got
        return count.refusal();
      }
      const auto sent = connection_.send(*count == 0 ? 'E' : 'C', std::string_view(piece.data(), *count));
      if (!sent) return answer_left_behind(sent.refusal());
      if (*count == 0) return std::optional<Json>();
    }
  }

  // The server closed while we were sending: what it said before is still to be read.
  Result<std::optional<Json>> answer_left_behind(const Refusal& cause) {
    for (;;) {
      auto answer = next_answer();
      if (!answer) return not_delivered(cause);
      if (*answer) return answer;
    }
  }

  // A server that is stopped answers nobody, and may do so for ever; one that works is waited for without a limit.
  Result<void> wait_while_it_runs() {
    static constexpr int kLookMs = 1000;
    static constexpr int kStoppedLooks = 10;
    for (int stopped = 0; !connection_.wait_for_input(kLookMs);) {
      stopped = os::is_stopped(connection_.peer().pid) ? stopped + 1 : 0;
      if (stopped < kStoppedLooks) continue;
      return Refusal(Code::server_unreachable,
                     "the server (process " + std::to_string(connection_.peer().pid) +
                         ") is stopped and answers nobody; continue it or kill it",
                     Json{{"pid", connection_.peer().pid}});
    }
    return {};
  }

  // One frame; nullopt for progress and for a piece of the answer.
  Result<std::optional<Json>> next_answer() {
    HF_CHECK(wait_while_it_runs());
    HF_TRY(std::optional<os::Frame> frame, connection_.receive());
    if (!frame) return Refusal(Code::server_answer_lost, "the server closed the connection");
    if (frame->kind != 'P') return assembly_.add(std::move(*frame));
    const auto report = parse_json(frame->payload);
    if (report && report->is_object() && progress_) progress_(*report);
    return std::optional<Json>();
  }

  Refusal not_delivered(const Refusal& cause) {
    return Refusal(Code::server_unreachable, "the server went away before the request was whole: nothing was changed",
                   Json{{"cause", cause.message()}});
  }
  Refusal answer_lost(const Refusal& cause) {
    if (cause.code() == Code::server_unreachable) {
      // What it was asked waits in its socket, and may be done when it goes on.
      Refusal refusal = cause;
      return std::move(refusal).with_effect(Engine::is_mutating(verb_) ? Effect::unknown : Effect::none);
    }
    Refusal refusal(Code::server_answer_lost, "the server went away before it answered",
                    Json{{"cause", cause.message()}});
    if (Engine::is_mutating(verb_)) return refusal;
    return std::move(refusal).with_effect(Effect::none);
  }

  static Result<Json> as_result(Json answer) {
    if (answer.is_object() && answer.contains("error") && answer["error"].is_object())
      return Refusal::from_json(answer);
    return answer;
  }

  os::Connection& connection_;
  std::string verb_;
  const ProgressReport& progress_;
  DocumentAssembly assembly_;
};

}  // namespace

Result<Json> call_server(os::Connection& connection, const Json& request, ContentSource* content,
                         const ProgressReport& progress) {
  EmptyContent empty;
  if (!takes_content(text_member(request, "verb")))
    content = nullptr;
  else if (content == nullptr)
    content = &empty;
  return Call(connection, request, progress).run(request, content);
}

std::vector<Json> keys_granted_now(const Json& answer) {
  std::vector<Json> keys;
  const Json scopes = answer.value("granted_scopes", Json::array());
  for (const Json& record : answer.value("leases", Json::array())) {
    const std::string scope = text_member(record, "namespace") + "://" + text_member(record, "resource_id");
    if (std::find(scopes.begin(), scopes.end(), Json(scope)) == scopes.end()) continue;
    keys.push_back(Json{{"scope", scope},
                        {"owner", record.value("owner", "")},
                        {"task", record.value("task_id", "")},
                        {"generation", record.value("generation", "")},
                        {"started_at", record.value("started_at", "")}});
  }
  return keys;
}

namespace {

bool answers(const os::WorkspaceFolder& folder) {
  auto connection = os::connect_to_server(folder.squad);
  return connection.ok() && call_server(*connection, Json{{"verb", "leases"}, {"arguments", Json::object()}}).ok();
}

}  // namespace

Result<Json> ask_for_handoff(const os::WorkspaceFolder& folder) {
  static constexpr std::chrono::seconds kSuccessorLimit{10};
  HF_TRY(const auto files, os::open_control_folder(folder.squad));
  HF_TRY(os::Connection connection, os::connect_to_server(folder.squad));
  const Json before = living_server(folder.squad, *files);
  auto answer = call_server(connection, Json{{"verb", "handoff"}, {"arguments", {{"build", HOLDFAST_VERSION}}}});
  if (answer.ok() || answer.refusal().code() != Code::server_answer_lost) return answer;
  // It died on its way out, or before anything was handed over: whether somebody serves in its place, tells.
  const auto give_up = std::chrono::steady_clock::now() + kSuccessorLimit;
  const Json pid = before.value("pid", Json());
  while (std::chrono::steady_clock::now() < give_up) {
    const Json now = server_lives(folder.squad) ? living_server(folder.squad, *files) : Json();
    // What has a record may still be on its way to serving; what answers serves.
    if (now.is_object() && now.value("pid", Json()) != pid && answers(folder)) {
      return Json{{"ready", true},
                  {"pid", now["pid"]},
                  {"session", now["session"]},
                  {"workspace", printable(folder.root_path)},
                  {"replaced", pid}};
    }
    if (now.is_null()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return answer;
}

bool server_lives(const os::Handle& squad) {
  const auto lock = os::LockFile::open_existing(squad, kServerLock);
  if (!lock || !lock->has_value()) return false;
  const auto held = (*lock)->is_held_by_another(os::LockMode::shared);
  return held && *held;
}

Result<DirectPass> DirectPass::take(const os::Handle& squad) {
  // A server that waits for its turn comes first: whoever changes things directly would keep it out for ever.
  const auto wanted = os::LockFile::open_existing(squad, kServerWanted);
  if (wanted && wanted->has_value()) {
    const auto waits = (*wanted)->is_held_by_another(os::LockMode::shared);
    if (waits && *waits) {
      return Refusal(Code::direct_refused_server_lives,
                     "a server is about to serve this workspace: nothing goes past it");
    }
  }
  HF_TRY(os::LockFile lock, open_server_lock(squad));
  HF_TRY(const bool taken, lock.try_lock(os::LockMode::shared));
  if (taken) return DirectPass(std::move(lock));
  return Refusal(Code::direct_refused_server_lives, "a server serves this workspace: nothing goes past it");
}

}  // namespace holdfast
