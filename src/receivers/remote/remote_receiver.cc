#include "receivers/remote/remote_receiver.h"

#include "base/base64.h"
#include "base/json.h"
#include "os/child_process.h"
#include "receivers/remote/wire.h"

namespace holdfast::receivers {
namespace {

// What a child has printed stays in memory: before it is much, another takes its place.
constexpr std::size_t kPrintedMax = 4U << 20U;

class RemotePort : public Port {
 public:
  RemotePort(std::vector<std::string> program, std::string kind, Json config)
      : program_(std::move(program)), kind_(std::move(kind)), config_(std::move(config)) {}

  Result<void> start() {
    HF_TRY(child_, os::ChildProcess::start(program_));
    const auto opened = ask(Json{{"call", "open"}, {"kind", kind_}, {"config", config_}}, {});
    if (opened.ok()) return {};
    child_.reset();
    return opened.refusal();
  }

  Result<Delivery> deliver(const Json& command, const std::string& payload, const Current& current,
                           const Transaction::Capture& capture) override {
    HF_TRY(const Json answer, ask_a_fresh_one(Json{{"call", "deliver"},
                                                   {"command", command},
                                                   {"payload_base64", base64_encode(payload)},
                                                   {"current", wire::current_to_json(current)},
                                                   {"capture", static_cast<bool>(capture)}},
                                              capture));
    return wire::delivery_from_json(answer);
  }
  Result<void> raise_mark(const std::string& resource, Generation to, std::optional<Generation> expected) override {
    HF_CHECK(ask_a_fresh_one(Json{{"call", "raise_mark"},
                                  {"resource", resource},
                                  {"mark", to.text()},
                                  {"expected", wire::mark_to_json(expected)}}));
    return {};
  }
  Result<Generation> make_mark(const std::string& resource, Generation first) override {
    return mark_of(Json{{"call", "make_mark"}, {"resource", resource}, {"mark", first.text()}});
  }
  Result<Generation> reseed(const std::string& resource, Generation mark) override {
    return mark_of(Json{{"call", "reseed"}, {"resource", resource}, {"mark", mark.text()}});
  }
  Result<std::optional<Generation>> read_mark(const std::string& resource) override {
    HF_TRY(const Json answer, ask_a_fresh_one(Json{{"call", "read_mark"}, {"resource", resource}}));
    return wire::mark_from_json(answer);
  }
  Result<void> settle(const std::string& operation_id, const std::optional<Json>& outcome) override {
    HF_CHECK(ask_a_fresh_one(
        Json{{"call", "settle"}, {"operation_id", operation_id}, {"outcome", outcome.value_or(Json())}}));
    return {};
  }

 private:
  Result<Generation> mark_of(const Json& question) {
    HF_TRY(const Json answer, ask_a_fresh_one(question));
    if (const auto mark = wire::mark_from_json(answer)) return *mark;
    return Refusal(Code::receiver_unreachable, "receiver_unreachable: the receiver's process answered with no mark");
  }

  Result<Json> ask_a_fresh_one(const Json& question, const Transaction::Capture& capture = {}) {
    if (child_ == nullptr || child_->output().size() > kPrintedMax) HF_CHECK(start());
    auto answer = ask(question, capture);
    // A child that says that it cannot reach its database has opened something that is of no further use.
    if (!answer.ok() && answer.refusal().code() == Code::receiver_unreachable) child_.reset();
    if (answer.ok() || !was_gone_before_) return answer;
    HF_CHECK(start());
    return ask(question, capture);
  }

  // One question and its answer; in between the child may hand over a state to be captured.
  Result<Json> ask(const Json& question, const Transaction::Capture& capture) {
    const bool changes = text_member(question, "call") == "deliver";
    // Of a question that could not be said whole nothing was done: another child may be asked.
    was_gone_before_ = !child_->say(dump_ascii(question) + "\n").ok();
    if (was_gone_before_) return gone(false);
    for (;;) {
      const auto line = child_->read_line(kAnswerMs);
      const auto answer = line ? parse_json(*line) : std::nullopt;
      if (!answer || !answer->is_object()) return gone(changes);
      if (answer->contains("error")) return Refusal::from_json(*answer);
      if (answer->contains("ok")) return (*answer)["ok"];
      const auto captured = capture ? capture((*answer)["before"]) : Result<Json>(Json());
      const Json reply = captured.ok() ? Json{{"captured", *captured}} : captured.refusal().to_json();
      if (auto said = child_->say(dump_ascii(reply) + "\n"); !said.ok()) return gone(changes);
    }
  }

  Refusal gone(bool in_the_middle) {
    const std::string errors = child_->errors().substr(0, 400);
    child_.reset();
    return Refusal(in_the_middle ? Code::receiver_outcome_unknown : Code::receiver_unreachable,
                   std::string(in_the_middle ? "receiver_outcome_unknown" : "receiver_unreachable") +
                       ": the receiver's process is gone or does not answer",
                   Json{{"kind", kind_}, {"printed", printable(errors)}});
  }

  std::vector<std::string> program_;
  std::string kind_;
  Json config_;
  std::unique_ptr<os::ChildProcess> child_;
  bool was_gone_before_ = false;  // the child ended between two questions
};

}  // namespace

Result<std::unique_ptr<Port>> open_remote(const std::vector<std::string>& program, const std::string& kind,
                                          const Json& config) {
  auto port = std::make_unique<RemotePort>(program, kind, config);
  HF_CHECK(port->start());
  return std::unique_ptr<Port>(std::move(port));
}

}  // namespace holdfast::receivers
