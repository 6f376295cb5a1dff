#include "engine/doctor_attacker.h"

#include "base/json.h"

namespace holdfast::engine {
namespace {

constexpr int kAnswerLimitMs = 4'000;
constexpr int kDeathLimitMs = 200;
constexpr int kEndLimitMs = 2'000;

}  // namespace

Result<void> DoctorAttacker::start() {
  HF_TRY(process_, os::ChildProcess::start(words_, {.folder = folder_, .environment = {}, .without_prefix = ""}));
  if (!user_) return {};
  HF_TRY(const AttackerReply reply, exchange(Json{{"way", "become_user"}, {"user", *user_}}));
  if (reply.error == 0) return {};
  kill();
  return Refusal(Code::os_failed, "the attacker could not become another user", Json{{"os_error", reply.error}});
}

Result<AttackerReply> DoctorAttacker::ask(const std::string& way, const std::string& name, const std::string& other) {
  if (!process_) HF_CHECK(start());
  return exchange(Json{{"way", way}, {"name", name}, {"other", other}});
}

Result<AttackerReply> DoctorAttacker::exchange(const Json& question) {
  HF_CHECK(process_->say(dump_ascii(question) + "\n"));
  bool interrupted = false;
  const auto line = process_->read_line(kAnswerLimitMs, [&] {
    if (interrupted || !asked_to_end_()) return;
    interrupted = true;
    process_->kill();
  });
  if (interrupted) return Refusal(Code::doctor_interrupted, "the doctor was asked to end");
  AttackerReply reply;
  if (!line) {
    // Its streams end with it; where they stand open it still waits for the kernel.
    const int status = process_->wait(kDeathLimitMs);
    reply.kept_waiting = status == os::ChildProcess::kTookTooLong;
    reply.ended_by = !reply.kept_waiting && status < 0 ? -status : 0;
    const std::string said = printable(process_->errors().substr(0, 200));
    process_.reset();
    if (reply.kept_waiting || reply.ended_by != 0) return reply;
    return Refusal(Code::os_failed, "an attacker ended without an answer: " + said, Json{{"status", status}});
  }
  const auto answer = parse_json(*line);
  const auto error = answer ? exact_u64(answer->value("errno", Json())) : std::nullopt;
  if (!error || *error > 4095) return Refusal(Code::os_failed, "an attacker answered no document: " + printable(*line));
  reply.error = static_cast<int>(*error);
  reply.held = answer->value("held", Json()) == true;
  return reply;
}

void DoctorAttacker::kill() {
  if (!process_) return;
  process_->kill();
  (void)process_->wait(kEndLimitMs);
  process_.reset();
}

}  // namespace holdfast::engine
