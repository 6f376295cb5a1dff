// One client's conversation: what it says, line by line, and what it is answered.
//
// Both eras at once, judged request by request: one with the modern era's _meta is answered in that form, any other in
// the form of the legacy revision that `initialize` settled.
// Calling sequence: take_line() and take_too_long() from the thread that reads; then finish().
// Promises: every request is answered once, or not at all where it was cancelled and nothing came of it; a notification
// never is; requests run beside one another; nothing that a line holds ends the service.
// Threads: as said; answers are written from many. Source: CONTRACT section 9; MCP 2024-11-05 to 2026-07-28.
#pragma once
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "holdfast/result.h"
#include "surfaces/mcp/era.h"
#include "surfaces/mcp/extension.h"
#include "surfaces/mcp/lines.h"
#include "surfaces/mcp/message.h"
#include "surfaces/mcp/server_link.h"
#include "surfaces/mcp/tool.h"
#include "surfaces/mcp/watch.h"
#include "surfaces/mcp/workers.h"

namespace holdfast::mcp {

constexpr std::size_t kLineMax = 8U << 20U;
constexpr std::size_t kReplyMax = 1U << 20U;
constexpr const char* kIdInUse = "a request with this id still runs";

using Doctor = std::function<Result<Json>(const std::string& root)>;

// Where answers go: to the stream, or into the array that answers a batch.
class Answers {
 public:
  virtual ~Answers() = default;
  virtual bool send(const Json& message) = 0;  // false: nobody reads any more
  virtual std::size_t limit() const = 0;       // bytes of one answer
};

class Conversation {
 public:
  Conversation(ServerLink& link, LineWriter& out, Doctor doctor, Extension* extension = nullptr);

  void take_line(std::string_view line);
  void take_too_long();
  // The client says nothing more: requests that wait for somebody are withdrawn, the others may still answer.
  void withdraw_waiting();
  bool wait_until_idle(std::chrono::milliseconds limit) { return workers_.wait_until_idle(limit); }
  void end_subscriptions();

 private:
  using AnswersPtr = std::shared_ptr<Answers>;
  struct Running;

  void take_batch(const ParsedLine& parsed);
  void take(const Item& item, const AnswersPtr& answers, std::size_t bytes);
  void take_request(const Message& request, const AnswersPtr& answers, std::size_t bytes);
  void take_notification(const Message& notification);
  void cancel(const Json& id);
  void start(const Message& request, const Form& form, const AnswersPtr& answers, std::size_t bytes);
  bool begin(const Message& request, const std::shared_ptr<Running>& running);
  // Frees the id, where it is still this request's. Before the answer goes out: its client may use the id again at
  // once.
  void end(const Message& request, const Cancellation& cancellation);

  bool is_extended(const Message& request, const Form& form) const;
  Outcome answer_at_once(const Message& request, const Form& form);
  Outcome initialize(const Json& params);
  Outcome list_tools(const Json& params, const Form& form);
  void work(const Message& request, const Form& form, const AnswersPtr& answers, Running& running);
  void call_tool(const Message& request, const Form& form, const AnswersPtr& answers, Cancellation& cancellation);
  Outcome read_resource_of(const Json& params, const Form& form, Cancellation& cancellation, std::size_t limit);
  Outcome subscribe(const Message& request);
  void listen(const Message& request, const AnswersPtr& answers, const Cancellation& cancellation);
  // false: this outcome went to nobody, because nobody reads any more or it was longer than a reply may be.
  bool reply(const Message& request, const AnswersPtr& answers, Outcome outcome);

  ServerLink& link_;
  LineWriter& out_;
  Doctor doctor_;
  Extension* extension_;  // of a test build, or null
  AnswersPtr stream_;
  std::string negotiated_;  // the legacy revision, empty before initialize; of the reading thread
  Watch watch_;
  Workers workers_;
  std::mutex mutex_;  // of what follows
  std::map<std::string, std::shared_ptr<Running>> running_;
};

}  // namespace holdfast::mcp
