#include "surfaces/mcp/conversation.h"

#include <exception>
#include <utility>

#include "base/json.h"

namespace holdfast::mcp {
namespace {

constexpr std::string_view kBatchRevision = "2025-03-26";
constexpr std::size_t kBatchMax = 64;

class StreamAnswers : public Answers {
 public:
  explicit StreamAnswers(LineWriter& out) : out_(out) {}
  bool send(const Json& message) override { return out_.write(dump_ascii(message)); }
  std::size_t limit() const override { return kReplyMax - 1; }

 private:
  LineWriter& out_;
};

// The answers to a batch, as one array once the last of its requests has let go.
class BatchAnswers : public Answers {
 public:
  BatchAnswers(LineWriter& out, std::size_t count) : out_(out), limit_((kReplyMax - 16) / count) {}
  ~BatchAnswers() override {
    if (!answers_.empty()) out_.write(dump_ascii(answers_));
  }
  bool send(const Json& message) override {
    const std::scoped_lock scoped(mutex_);
    answers_.push_back(message);
    return !out_.is_broken();
  }
  std::size_t limit() const override { return limit_; }

 private:
  LineWriter& out_;
  std::size_t limit_;
  std::mutex mutex_;
  Json answers_ = Json::array();
};

bool waits_for_others(const Message& request) {
  if (request.method != "tools/call" || request.params.value("name", Json()) != Json("lease_acquire")) return false;
  const Json arguments = request.params.value("arguments", Json());
  return arguments.is_object() && arguments.contains("wait_seconds") && arguments["wait_seconds"] != Json(0);
}

// A request that changes something is carried to its end: its outcome is what the client has to know.
bool is_stoppable(const Message& request) {
  if (request.method != "tools/call") return true;
  const Json name = request.params.value("name", Json());
  const Tool* tool = name.is_string() ? find_tool(name.get_ref<const std::string&>()) : nullptr;
  return tool == nullptr || tool->hints.read_only || tool->name == "lease_acquire";
}

}  // namespace

// A request that is being worked on.
struct Conversation::Running {
  Cancellation cancellation;
  bool is_stoppable = false;
  bool waits = false;
};

Conversation::Conversation(ServerLink& link, LineWriter& out, Doctor doctor, Extension* extension)
    : link_(link),
      out_(out),
      doctor_(std::move(doctor)),
      extension_(extension),
      stream_(std::make_shared<StreamAnswers>(out)),
      watch_(link, [this](const Json& message) { stream_->send(message); }) {}

void Conversation::take_too_long() {
  stream_->send(problem_message({kInvalidRequest, "a line has more than 8 MiB", Json(), Json()}));
}

void Conversation::take_line(std::string_view line) {
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) return;
  const ParsedLine parsed = parse_line(line);
  if (parsed.is_batch) return take_batch(parsed);
  take(parsed.items.front(), stream_, line.size());
}

void Conversation::take_batch(const ParsedLine& parsed) {
  const auto refuse = [&](const char* why) { stream_->send(problem_message({kInvalidRequest, why, Json(), Json()})); };
  if (negotiated_ != kBatchRevision) return refuse("batches are of revision 2025-03-26 only");
  if (parsed.items.empty()) return refuse("an empty batch");
  if (parsed.items.size() > kBatchMax) return refuse("a batch of more than 64 messages");
  const auto answers = std::make_shared<BatchAnswers>(out_, parsed.items.size());
  for (const Item& item : parsed.items) {
    const Message* message = std::get_if<Message>(&item);
    if (message != nullptr && message->method == "initialize") {
      answers->send(problem_message({kInvalidRequest, "initialize is no part of a batch", Json(), message->id}));
    } else {
      take(item, answers, 0);
    }
  }
}

void Conversation::take(const Item& item, const AnswersPtr& answers, std::size_t bytes) {
  if (const Problem* problem = std::get_if<Problem>(&item)) {
    answers->send(problem_message(*problem));
    return;
  }
  const auto& message = std::get<Message>(item);
  // The server itself asks nothing, so that a response answers nothing of its own.
  if (message.kind == Message::Kind::response && extension_ != nullptr) extension_->take_response(message);
  if (message.kind == Message::Kind::request) take_request(message, answers, bytes);
  if (message.kind == Message::Kind::notification) take_notification(message);
}

void Conversation::take_notification(const Message& notification) {
  if (notification.method != "notifications/cancelled") return;
  const Json id = notification.params.value("requestId", Json());
  if (id.is_string() || id.is_number_integer()) cancel(id);
}

void Conversation::cancel(const Json& id) {
  std::shared_ptr<Running> running;
  {
    const std::scoped_lock scoped(mutex_);
    const auto found = running_.find(id.dump());
    if (found != running_.end()) running = found->second;
  }
  if (running && running->is_stoppable) running->cancellation.cancel();
  watch_.stop_listening(id);
}

void Conversation::withdraw_waiting() {
  const std::scoped_lock scoped(mutex_);
  for (const auto& [id, running] : running_) {
    if (running->waits) running->cancellation.cancel();
  }
}

void Conversation::end_subscriptions() {
  for (const Json& id : watch_.subscriptions()) {
    watch_.stop_listening(id);
    Json result = {{"_meta", {{"io.modelcontextprotocol/subscriptionId", id}}}};
    stream_->send(result_message(id, shaped(std::move(result), Form{true, std::string(kModern)}, Caching::none)));
  }
}

void Conversation::take_request(const Message& request, const AnswersPtr& answers, std::size_t bytes) {
  const auto form = form_of(request, negotiated_);
  if (const Problem* problem = std::get_if<Problem>(&form)) {
    static_cast<void>(reply(request, answers, *problem));
    return;
  }
  start(request, std::get<Form>(form), answers, bytes);
}

bool Conversation::is_extended(const Message& request, const Form& form) const {
  return extension_ != nullptr && extension_->takes(request, form);
}

void Conversation::start(const Message& request, const Form& form, const AnswersPtr& answers, std::size_t bytes) {
  const bool extended = is_extended(request, form);
  const bool asks_server = extended || request.method == "tools/call" || request.method == "resources/read" ||
                           (!form.is_modern && request.method == "resources/subscribe") ||
                           (form.is_modern && request.method == "subscriptions/listen");
  if (!asks_server) return static_cast<void>(reply(request, answers, answer_at_once(request, form)));
  const auto running = std::make_shared<Running>();
  running->is_stoppable = is_stoppable(request);
  running->waits = extended || waits_for_others(request);
  if (!begin(request, running)) {
    return static_cast<void>(reply(request, answers, Problem{kInvalidRequest, kIdInUse, Json(), Json()}));
  }
  // The last to let go of `answers` sends a batch: the task, not the one that hands it over.
  const auto task = [this, request, form, answers, running] { work(request, form, answers, *running); };
  if (!running->waits) return workers_.submit(task, bytes);
  if (workers_.submit_to_own_thread(task)) return;
  end(request, running->cancellation);
  reply(request, answers, Problem{kInternalError, "too many requests wait already", Json(), Json()});
}

bool Conversation::begin(const Message& request, const std::shared_ptr<Running>& running) {
  const std::scoped_lock scoped(mutex_);
  return running_.emplace(request.id.dump(), running).second;
}

void Conversation::end(const Message& request, const Cancellation& cancellation) {
  const std::scoped_lock scoped(mutex_);
  const auto found = running_.find(request.id.dump());
  if (found != running_.end() && &found->second->cancellation == &cancellation) running_.erase(found);
}

void Conversation::work(const Message& request, const Form& form, const AnswersPtr& answers, Running& running) {
  try {
    if (is_extended(request, form)) {
      const auto send = [&](const Json& message) { answers->send(message); };
      Outcome outcome = extension_->answer(request, form, send, running.cancellation);
      if (!running.cancellation.is_cancelled()) reply(request, answers, std::move(outcome));
    } else if (request.method == "tools/call") {
      call_tool(request, form, answers, running.cancellation);
    } else if (request.method == "subscriptions/listen") {
      listen(request, answers, running.cancellation);
    } else {
      Outcome outcome = request.method == "resources/read"
                            ? read_resource_of(request.params, form, running.cancellation, answers->limit())
                            : subscribe(request);
      const bool is_cancelled = running.cancellation.is_cancelled();
      end(request, running.cancellation);
      if (!is_cancelled) reply(request, answers, std::move(outcome));
    }
  } catch (const std::exception& failure) {
    reply(request, answers, Problem{kInternalError, printable(failure.what()), Json(), Json()});
  }
  end(request, running.cancellation);
}

bool Conversation::reply(const Message& request, const AnswersPtr& answers, Outcome outcome) {
  if (auto* problem = std::get_if<Problem>(&outcome)) {
    problem->id = request.id;
    return answers->send(problem_message(*problem));
  }
  if (extension_ != nullptr) extension_->add_to(request.method, std::get<Json>(outcome));
  const Json message = result_message(request.id, std::move(std::get<Json>(outcome)));
  if (dump_ascii(message).size() < answers->limit()) return answers->send(message);
  answers->send(problem_message({kInternalError, "the answer is longer than a reply may be", Json(), request.id}));
  return false;
}

}  // namespace holdfast::mcp
