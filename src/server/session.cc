#include "server/session.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <optional>
#include <string>

#include "base/json.h"
#include "os/process.h"
#include "server/client.h"
#include "server/exchange.h"

namespace holdfast::server {
namespace {

constexpr auto kProgressPause = std::chrono::milliseconds(100);

// The content frames that follow a request, as the engine reads them.
class SentContent : public ContentSource {
 public:
  explicit SentContent(os::Connection& connection) : connection_(connection) {}

  Result<std::size_t> read(char* into, std::size_t size) override {
    while (used_ == piece_.size() && !ended_) HF_CHECK(next_piece());
    const std::size_t count = std::min(size, piece_.size() - used_);
    std::memcpy(into, piece_.data() + used_, count);
    used_ += count;
    return count;
  }
  bool sender_is_gone() const override { return broken_ || connection_.peer_is_gone(); }

  // Takes what the engine left, so that the next request begins at a frame. false: the connection is of no further use.
  bool drain() {
    while (!ended_ && !broken_) {
      if (!next_piece()) return false;
    }
    return !broken_;
  }

 private:
  Result<void> next_piece() {
    if (broken_) return unreadable("the connection had ended");
    piece_.clear();
    used_ = 0;
    auto frame = connection_.receive();
    broken_ = !frame || !frame->has_value() || ((*frame)->kind != 'C' && (*frame)->kind != 'E');
    if (!frame) return unreadable(frame.refusal().message());
    if (!frame->has_value()) return unreadable("the connection ended before the end of the content");
    if (broken_) return unreadable("another frame came before the end of the content");
    ended_ = (*frame)->kind == 'E';
    piece_ = std::move((*frame)->payload);
    return {};
  }
  static Refusal unreadable(const std::string& reason) {
    return Refusal(Code::content_unreadable, "the content did not arrive whole: " + reason);
  }

  os::Connection& connection_;
  std::string piece_;
  std::size_t used_ = 0;
  bool ended_ = false;
  bool broken_ = false;
};

class Session {
 public:
  Session(Client& client, const Service& service)
      : client_(client), connection_(client.connection), service_(service) {}

  SessionEnd run() {
    // The peer's pid was taken when it connected. Where it cannot be looked at (another pid namespace), the identity
    // stays without a pid, and nothing will be concluded from it.
    if (auto process = os::process_of_pid(connection_.peer().pid)) process_ = std::move(*process);
    for (;;) {
      if (!client_.read) {
        if (service_.wait_for_request() == Pass::moved) return SessionEnd::moved;
        auto request = receive_document(connection_);
        if (!request) {
          if (request.refusal().code() == Code::request_malformed) answer(std::move(request).refusal());
          return SessionEnd::closed;
        }
        if (!request->has_value()) return SessionEnd::closed;
        client_.read = ReadRequest{std::move(**request), 0};
      }
      if (text_member(client_.read->document, "verb") == "handoff") {
        if (!hand_over()) return SessionEnd::closed;
        continue;
      }
      switch (service_.begin_request()) {
        case Pass::moved: return SessionEnd::moved;
        case Pass::ending: answer(Refusal(Code::server_unreachable, "the server is ending")); return SessionEnd::closed;
        case Pass::go: break;
      }
      if (!handle()) return SessionEnd::closed;
    }
  }

 private:
  // false: the connection ends.
  bool handle() {
    const ReadRequest read = std::move(*client_.read);
    client_.read.reset();
    const Json& request = read.document;
    const std::string verb = text_member(request, "verb");
    SentContent content(connection_);
    const bool with_content = takes_content(verb);
    queue_place_ = read.queue_place;
    const auto began = std::chrono::steady_clock::now();
    const Result<Json> outcome = perform(verb, request, with_content ? &content : nullptr);
    if (!outcome.ok() && outcome.refusal().code() == Code::handoff_in_progress) {
      client_.read = waiting_on(request, outcome.refusal(), began);
      service_.end_request(read.queue_place != 0);
      return true;
    }
    const bool sent = answer(outcome);
    if (!sent && verb == "acquire" && outcome.ok()) give_back(request, *outcome);
    service_.end_request(read.queue_place != 0);
    if (sent && verb == "stop") service_.stop();
    return sent && (!with_content || content.drain());
  }

  // An acquire that waited when a handoff began waits on, here or in the other image, for the rest of its time.
  static ReadRequest waiting_on(Json request, const Refusal& sent_back, std::chrono::steady_clock::time_point began) {
    const auto waited =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - began).count();
    Json& arguments = request["arguments"];
    const auto seconds = exact_u64(arguments.value("wait_seconds", Json())).value_or(0);
    const auto passed = static_cast<std::uint64_t>(waited);
    arguments["wait_seconds"] = std::to_string(seconds > passed ? seconds - passed : 1);
    return ReadRequest{std::move(request), exact_u64(sent_back.details().value("queue_place", Json())).value_or(0)};
  }

  // false: the connection ends.
  bool hand_over() {
    client_.read.reset();
    const Result<Json> outcome = service_.hand_over(process_);
    const bool sent = answer(outcome);
    if (outcome.ok()) service_.stop();
    return sent && !outcome.ok();
  }

  Result<Json> perform(const std::string& verb, const Json& request, ContentSource* content) {
    const Json arguments = request.is_object() ? request.value("arguments", Json::object()) : Json();
    if (verb.empty() || !arguments.is_object()) {
      return Refusal(Code::request_malformed, "a request is {\"verb\":…,\"arguments\":{…}}");
    }
    if (verb == "stop") {
      return Json{{"stopping", true}, {"pid", static_cast<std::uint64_t>(os::this_process().pid)}};
    }
    if (!Engine::knows(verb)) {
      return Refusal(Code::request_malformed, "no verb of this server: " + printable(verb),
                     Json{{"verb", printable(verb)}});
    }
    const Json client = request.value("client", Json::object());
    const auto says = [&](const char* what) { return client.is_object() && client.value(what, Json()) == Json(true); };
    const Caller caller{.process = process_,
                        .bound = says("bound"),
                        .is_bridge = says("bridge"),
                        .is_gone = [this] { return connection_.peer_is_gone(); },
                        .queue_place = queue_place_};
    // One request must not end the server, and the guards with it.
    try {
      return service_.engine.perform(Json{{"verb", verb}, {"arguments", arguments}}, caller, content,
                                     [this](const Json& said) { report(said); });
    } catch (const std::exception& failure) {
      return Refusal(Code::os_failed, std::string("the request came to an unforeseen end: ") + failure.what());
    }
  }

  // Of bytes done not every piece is told.
  void report(const Json& said) {
    const auto now = std::chrono::steady_clock::now();
    if (said.contains("done") && now - reported_ < kProgressPause) return;
    reported_ = now;
    static_cast<void>(connection_.send('P', dump_ascii(said)));
  }

  // A grant that nobody was told of would be nobody's until its deadline: it is released (CONTRACT section 3).
  void give_back(const Json& request, const Json& outcome) {
    for (Json& keys : keys_granted_now(outcome)) {
      keys["cwd"] = "/";
      static_cast<void>(
          perform("release", Json{{"arguments", keys}, {"client", request.value("client", Json())}}, nullptr));
    }
  }

  bool answer(const Result<Json>& result) {
    return send_document(connection_, result ? *result : result.refusal().to_json()).ok();
  }

  Client& client_;
  os::Connection& connection_;
  const Service& service_;
  os::ProcessIdentity process_;
  std::uint64_t queue_place_ = 0;
  std::chrono::steady_clock::time_point reported_ = std::chrono::steady_clock::now();
};

}  // namespace

SessionEnd run_session(Client& client, const Service& service) { return Session(client, service).run(); }

}  // namespace holdfast::server
