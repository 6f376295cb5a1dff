// The child's side of a remote receiver.
#include "base/base64.h"
#include "base/json.h"
#include "os/stream.h"
#include "receivers/remote/remote_receiver.h"
#include "receivers/remote/wire.h"

namespace holdfast::receivers {
namespace {

constexpr std::size_t kLineMax = 64U << 20U;

class Served {
 public:
  Served(const ReceiverSet& set, const os::Handle& in, const os::Handle& out) : set_(set), in_(in), out_(out) {}

  void run() {
    while (const auto question = next()) {
      const auto answer = answer_to(*question);
      if (!say(answer.ok() ? Json{{"ok", *answer}} : answer.refusal().to_json())) return;
    }
  }

 private:
  std::optional<Json> next() {
    for (;;) {
      if (const auto end = unread_.find('\n', looked_at_); end != std::string::npos) {
        auto document = parse_json(std::string_view(unread_).substr(0, end));
        unread_.erase(0, end + 1);
        looked_at_ = 0;
        return document && document->is_object() ? document : std::nullopt;
      }
      looked_at_ = unread_.size();
      std::string piece(65536, '\0');
      const auto count = os::read_some(in_, piece.data(), piece.size(), Code::request_malformed);
      if (!count.ok() || *count == 0 || unread_.size() > kLineMax) return std::nullopt;
      unread_.append(piece, 0, *count);
    }
  }

  bool say(const Json& document) { return os::write_stream(out_, dump_ascii(document) + "\n", Code::os_failed).ok(); }

  Result<Json> answer_to(const Json& question) {
    const std::string call = text_member(question, "call");
    if (call == "open") {
      HF_TRY(port_, set_.open(text_member(question, "kind"), question.value("config", Json::object())));
      return Json(true);
    }
    if (!port_) return Refusal(Code::receiver_unreachable, "receiver_unreachable: nothing was opened");
    if (call == "deliver") return deliver(question);
    if (call == "settle") {
      const Json outcome = question.value("outcome", Json());
      HF_CHECK(port_->settle(text_member(question, "operation_id"),
                             outcome.is_null() ? std::nullopt : std::optional(outcome)));
      return Json(true);
    }
    const std::string resource = text_member(question, "resource");
    const auto mark = wire::mark_from_json(question.value("mark", Json()));
    if (call == "read_mark") {
      HF_TRY(const auto read, port_->read_mark(resource));
      return wire::mark_to_json(read);
    }
    if (!mark) return Refusal(Code::request_malformed, "request_malformed: no call of a receiver: " + printable(call));
    if (call == "raise_mark") {
      HF_CHECK(port_->raise_mark(resource, *mark, wire::mark_from_json(question.value("expected", Json()))));
      return Json(true);
    }
    HF_TRY(const Generation now, call == "reseed" ? port_->reseed(resource, *mark) : port_->make_mark(resource, *mark));
    return Json(now.text());
  }

  Result<Json> deliver(const Json& question) {
    Transaction::Capture capture;
    if (question.value("capture", Json()) == Json(true)) {
      capture = [this](const Json& before) -> Result<Json> {
        const auto reply = say(Json{{"before", before}}) ? next() : std::nullopt;
        if (!reply) return Refusal(Code::receiver_unreachable, "receiver_unreachable: the server is gone");
        if (reply->contains("error")) return Refusal::from_json(*reply);
        return reply->value("captured", Json());
      };
    }
    const auto payload = base64_decode(text_member(question, "payload_base64"));
    if (!payload) return Refusal(Code::request_malformed, "request_malformed: the payload is no base64");
    HF_TRY(const Delivery delivery,
           port_->deliver(question.value("command", Json()), *payload,
                          wire::current_from_json(question.value("current", Json())), capture));
    return wire::delivery_to_json(delivery);
  }

  const ReceiverSet& set_;
  const os::Handle& in_;
  const os::Handle& out_;
  std::string unread_;
  std::size_t looked_at_ = 0;
  std::unique_ptr<Port> port_;
};

}  // namespace

void serve_receiver(const ReceiverSet& set, const os::Handle& in, const os::Handle& out) { Served(set, in, out).run(); }

}  // namespace holdfast::receivers
