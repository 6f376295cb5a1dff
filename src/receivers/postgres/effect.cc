#include "receivers/postgres/effect.h"

namespace holdfast::receivers::postgres {

Result<Json> planned_outcome(const Command& command, const RowChange& change, const HeldRow& held,
                             const Transaction::Capture& capture) {
  if (held.version != Value(change.expected_version)) {
    return version_changed(command, change.expected_version, held.version_text);
  }
  Json captured;
  if (capture) {
    HF_TRY(captured, capture(Json{{"key", values_to_json(change.key)},
                                  {"values", values_to_json(held.values)},
                                  {"version", std::to_string(change.expected_version)}}));
  }
  return Json{{"resource", command.resource},
              {"key", values_to_json(change.key)},
              {"version_before", std::to_string(change.expected_version)},
              {"version", std::to_string(change.expected_version + 1)},
              {"captured", captured}};
}

Refusal outcome_unknown(const Refusal& why) {
  return Refusal(Code::receiver_outcome_unknown,
                 "receiver_outcome_unknown: the connection ended before the commit was answered", why.details());
}

}  // namespace holdfast::receivers::postgres
