#include "server/handoff_channel.h"

#include "base/json.h"
#include "server/adoption_errors.h"

namespace holdfast::server {

Result<Json> HandoffCaller::call(const std::string& method, const Json& parameters,
                                 const std::vector<const os::Handle*>& objects, int limit_ms) {
  const std::scoped_lock lock(mutex_);
  if (broken_) return Refusal(Code::handoff_failed, "the new image went away");
  auto answer = exchange(method, parameters, objects, limit_ms);
  if (!answer.ok()) {
    broken_ = true;
    on_broken_();
    return answer;
  }
  if (!answer->contains("error")) return answer->value("result", Json());
  const Json refusal = (*answer)["error"].value("data", Json());
  if (refusal.is_object() && refusal.contains("error")) return Refusal::from_json(refusal);
  return Refusal(Code::handoff_failed, "the new image refused: " + printable(dump_ascii((*answer)["error"])));
}

Result<Json> HandoffCaller::exchange(const std::string& method, const Json& parameters,
                                     const std::vector<const os::Handle*>& objects, int limit_ms) {
  const std::int64_t id = ++last_id_;
  const Json request = {{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", parameters}};
  HF_CHECK(channel_.send(dump_ascii(request), objects));
  HF_TRY(const auto message, channel_.receive(limit_ms));
  if (!message) return Refusal(Code::handoff_failed, "the new image went away in the middle of " + method);
  auto answer = parse_json(message->text);
  const bool whole = answer && answer->is_object() && answer->value("id", Json()) == Json(id) &&
                     (answer->contains("result") || (answer->contains("error") && (*answer)["error"].is_object()));
  if (whole) return std::move(*answer);
  return Refusal(Code::handoff_failed, "the new image answered " + method + " with something else");
}

Result<std::optional<HandoffRequest>> receive_request(os::DescriptorChannel& channel, int limit_ms) {
  HF_TRY(auto message, channel.receive(limit_ms));
  if (!message) return std::optional<HandoffRequest>();
  auto document = parse_json(message->text);
  if (!document || !document->is_object() || text_member(*document, "method").empty()) {
    return Refusal(Code::handoff_failed, "no request of a handoff");
  }
  HandoffRequest request;
  request.id = document->value("id", Json());
  request.method = text_member(*document, "method");
  request.parameters = document->value("params", Json::object());
  request.objects = std::move(message->objects);
  return std::optional<HandoffRequest>(std::move(request));
}

Result<void> answer_request(os::DescriptorChannel& channel, const Json& id, const Result<Json>& outcome) {
  Json answer = {{"jsonrpc", "2.0"}, {"id", id}};
  if (outcome.ok()) {
    answer["result"] = *outcome;
  } else {
    answer["error"] = adoption_error(outcome.refusal());
  }
  return channel.send(dump_ascii(answer));
}

}  // namespace holdfast::server
