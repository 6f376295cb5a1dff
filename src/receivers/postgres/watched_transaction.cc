#include "receivers/postgres/watched_transaction.h"

#include "base/json.h"

namespace holdfast::receivers::postgres {
namespace {

constexpr const char* kLockNotAvailable = "55P03";

}  // namespace

Result<std::optional<Generation>> WatchedTransaction::mark(const std::string&) {
  const auto generation = parse_u64(judged_.mark);
  return generation ? std::optional(Generation{*generation}) : std::nullopt;
}

Result<void> WatchedTransaction::set_mark(const std::string&, Generation mark) {
  raised_ = mark;
  return {};
}

// Where it is known, nothing was read.
Result<std::optional<Applied>> WatchedTransaction::applied(const std::string&) { return std::optional<Applied>(); }

Result<void> WatchedTransaction::remember(const Applied& applied) {
  remembered_ = applied;
  return {};
}

Result<Json> WatchedTransaction::apply(const Command& command, const std::string&, const Capture& capture) {
  return planned_outcome(command, change_.row, judged_.row, capture);
}

Result<void> WatchedTransaction::commit() {
  if (!remembered_) return Refusal(Code::receiver_unreachable, "receiver_unreachable: nothing was judged");
  const auto written = procedures_.write(change_, judged_, *remembered_, raised_);
  is_overtaken_ = false;
  if (written.ok()) {
    seen_after_ = *written;
    return {};
  }
  const Refusal why = written.refusal();
  if (session_.is_lost(why)) return outcome_unknown(why);
  is_overtaken_ = why.details().value("sqlstate", "") != kLockNotAvailable;
  return why;
}

}  // namespace holdfast::receivers::postgres
