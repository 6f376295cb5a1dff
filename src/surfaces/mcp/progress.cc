#include "surfaces/mcp/progress.h"

#include <algorithm>

#include "base/json.h"
#include "surfaces/mcp/message.h"

namespace holdfast::mcp {
namespace {

// "waits for bob (task build) until 2026-…; place 2"
std::string waiting_text(const Json& waiting) {
  std::string text = "waits";
  for (const Json& holder : waiting.value("holders", Json::array())) {
    text += std::string(text == "waits" ? " for " : ", ") + text_member(holder, "owner") + " (task " +
            text_member(holder, "task_id") + ") until " + text_member(holder, "until");
  }
  if (const auto place = exact_u64(waiting.value("place", Json()))) text += "; place " + std::to_string(*place);
  return text;
}

}  // namespace

Progress::Progress(const Json& params, std::function<void(const Json&)> send) : send_(std::move(send)) {
  const Json meta = params.value("_meta", Json::object());
  if (!meta.is_object()) return;
  const Json token = meta.value("progressToken", Json());
  // A token goes out with each notification: one that is longer than an id may be is none.
  const bool is_text = token.is_string() && token.get_ref<const std::string&>().size() <= kIdMax;
  if (is_text || token.is_number_integer()) token_ = token;
}

ProgressReport Progress::report() {
  if (token_.is_null()) return {};
  return [this](const Json& said) { say(said); };
}

void Progress::say(const Json& said) {
  Json params = {{"progressToken", token_}};
  const auto done = exact_u64(said.value("done", Json()));
  if (done && *done <= told_) return;
  told_ = done ? *done : told_ + 1;
  params["progress"] = told_;
  if (said.contains("waiting")) params["message"] = waiting_text(said["waiting"]);
  send_(notification_message("notifications/progress", std::move(params)));
}

}  // namespace holdfast::mcp
