#include "surfaces/cli/receive.h"

#include <filesystem>

#include "base/base64.h"
#include "base/fault_point.h"
#include "base/json.h"
#include "holdfast/command.h"
#include "os/command_process.h"
#include "os/stream.h"
#include "os/temporary_folder.h"
#include "surfaces/cli/request_path.h"

namespace holdfast::cli {
namespace {

using Sent = holdfast::Command;  // what travels; the command table's own rows bear that name here

constexpr std::size_t kLineMax = 32U << 20U;
constexpr int kNotAll = 1;
constexpr int kMachineFailed = 5;
constexpr int kEndedBySignal = 128;

// The lines of a stream; one that is too long is passed over whole, and is nullopt in its place.
class Lines {
 public:
  explicit Lines(const os::Handle& stream) : stream_(stream) {}

  struct Line {
    std::optional<std::string> text;
    bool is_blank() const { return text && text->find_first_not_of(" \t\r") == std::string::npos; }
  };

  // nullopt at the end. content_unreadable where the stream cannot be read: that is no end.
  Result<std::optional<Line>> next() {
    bool too_long = false;
    for (;;) {
      if (const auto end = unread_.find('\n', looked_at_); end != std::string::npos) {
        Line line;
        if (!too_long && end <= kLineMax) line.text = unread_.substr(0, end);
        unread_.erase(0, end + 1);
        looked_at_ = 0;
        return std::optional(std::move(line));
      }
      too_long = too_long || unread_.size() > kLineMax;
      if (too_long) unread_.clear();
      looked_at_ = unread_.size();
      std::string piece(64U * 1024U, '\0');
      HF_TRY(const std::size_t count, os::read_some(stream_, piece.data(), piece.size(), Code::content_unreadable));
      unread_.append(piece, 0, count);
      if (count > 0) continue;
      if (unread_.empty() && !too_long) return std::optional<Line>();
      Line last;
      if (!too_long) last.text = unread_;
      unread_.clear();
      looked_at_ = 0;
      return std::optional(std::move(last));
    }
  }

 private:
  const os::Handle& stream_;
  std::string unread_;
  std::size_t looked_at_ = 0;
};

class Worker {
 public:
  Worker(const Invocation& invocation, const Sending& sending, std::string folder, const os::Handle& out)
      : invocation_(invocation), sending_(sending), folder_(std::move(folder)), out_(out) {}

  int run(Lines& lines) {
    for (;;) {
      auto read = lines.next();
      if (read.ok() && !*read) return status_;
      if (read.ok() && (*read)->is_blank()) continue;
      ++number_;
      operation_id_.clear();
      const auto answer = read.ok() ? take((*read)->text) : Result<Json>(read.refusal());
      Json said = answer.ok() ? *answer : answer.refusal().to_json();
      said["line"] = number_;
      if (!operation_id_.empty()) said["operation_id"] = operation_id_;
      const Json ended = answer.ok() ? answer->value("outcome", Json::object()).value("exit_status", Json()) : Json();
      if (ended.is_number_integer() && ended != Json(0)) status_ = std::max(status_, kNotAll);
      if (!answer.ok()) status_ = std::max(status_, kNotAll);
      if (!os::write_stream(out_, dump_ascii(said) + "\n", Code::os_failed).ok()) return kMachineFailed;
      if (!read.ok()) return kMachineFailed;
      if (stop_) return status_;
    }
  }

 private:
  static Refusal malformed(const std::string& why) {
    return Refusal(Code::request_malformed, "request_malformed: the line " + why);
  }

  Result<Json> take(const std::optional<std::string>& line) {
    if (!line) return malformed("is longer than 32 MiB");
    const auto envelope = parse_json(*line);
    if (!envelope || !envelope->is_object()) return malformed("is no JSON object");
    const Json command = envelope->value("command", Json());
    if (!command.is_object()) return malformed("has no command");
    operation_id_ = printable(text_member(command, "operation_id"));
    const std::string payload = text_member(*envelope, "payload_base64");
    HF_TRY(Json answer, send(Json{{"verb", "deliver"},
                                  {"arguments",
                                   {{"command", command},
                                    {"payload_base64", payload},
                                    {"runs_programs", !invocation_.program.empty()}}}},
                             sending_));
    const bool starts = text_member(answer.value("outcome", Json()), "state") == "started";
    if (!starts) return answer;
    return run_program(command, base64_decode(payload).value_or(""), std::move(answer));
  }

  Result<Json> run_program(const Json& envelope, const std::string& payload, Json answer) {
    HF_TRY(const Sent command, command_from_json(envelope));
    HF_FAULT_POINT("receive_before_program");
    const auto status = status_of_program(command, payload);
    HF_FAULT_POINT("receive_after_program");
    if (!status.ok()) {
      // Nothing ran: the same command may come again.
      (void)send(Json{{"verb", "receiver_settle"},
                      {"arguments",
                       {{"name", answer["receiver"]},
                        {"operation_id", command.operation_id},
                        {"not_run", true},
                        {"reason", "the program could not be started"}}}},
                 sending_);
      stop_ = true;
      return status.refusal();
    }
    if (*status != 0) status_ = std::max(status_, kNotAll);
    stop_ = *status > kEndedBySignal;
    HF_TRY(const Json ended, send(Json{{"verb", "delivery_end"},
                                       {"arguments",
                                        {{"resource", command.resource},
                                         {"operation_id", command.operation_id},
                                         {"generation", std::to_string(command.generation)},
                                         {"exit_status", *status}}}},
                                  sending_));
    answer["outcome"] = ended["outcome"];
    answer["current"] = ended["current"];
    answer["ended"] = ended["evidence"];
    return answer;
  }

  Result<int> status_of_program(const Sent& command, const std::string& payload) {
    const std::string path = folder_ + "/payload-" + std::to_string(number_);
    HF_TRY(const os::Handle input, payload_at(path, payload));
    os::CommandOptions options;
    for (const auto& [name, value] : command.environment()) options.environment.emplace_back(name, value);
    options.environment.emplace_back("HOLDFAST_WORKSPACE", sending_.root);
    options.input = &input;
    HF_TRY(const auto process, os::CommandProcess::start(invocation_.program, options));
    HF_CHECK(process->release_gate());
    for (;;) {
      if (const auto status = process->wait(60'000)) return *status;
    }
  }

  static Result<os::Handle> payload_at(const std::string& path, const std::string& payload) {
    {
      HF_TRY(const os::Handle file, os::create_file(path, Code::state_persist_failed));
      HF_CHECK(os::write_stream(file, payload, Code::state_persist_failed));
    }
    auto input = os::open_to_read(path, Code::state_persist_failed);
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
    return input;
  }

  const Invocation& invocation_;
  const Sending& sending_;
  std::string folder_;
  const os::Handle& out_;
  std::string operation_id_;
  std::int64_t number_ = 0;
  int status_ = 0;
  bool stop_ = false;
};

}  // namespace

int run_receive(const Invocation& invocation, const std::string& root, const Surroundings& surroundings,
                Output& output) {
  const auto folder = os::make_temporary_folder(std::filesystem::temp_directory_path().string(), "holdfast-receive");
  if (!folder.ok()) return output.refuse(folder.refusal());
  const auto out = os::take_standard_output();
  if (!out.ok()) return output.refuse(out.refusal());
  const Sending sending{.surroundings = surroundings, .root = root, .mutating = true, .direct = invocation.direct};
  os::Handle in(0);
  Lines lines(in);
  const int status = Worker(invocation, sending, *folder, *out).run(lines);
  in.release();  // the process's, not ours to close
  std::error_code ignored;
  std::filesystem::remove_all(*folder, ignored);
  return status;
}

}  // namespace holdfast::cli
