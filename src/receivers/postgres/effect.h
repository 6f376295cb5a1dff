// What is judged of the row itself, the same however it was read. Private to the PostgreSQL receiver.
// Errors: record_version_changed, and those of `capture`. Threads: pure but for `capture`.
#pragma once
#include "receivers/receiver.h"
#include "receivers/row_change.h"

namespace holdfast::receivers::postgres {

struct HeldRow {
  Value version;
  std::string version_text;
  Columns values;  // of the columns that a change sets
};

// The outcome of `change` on `held`, of which the state before was handed over.
Result<Json> planned_outcome(const Command& command, const RowChange& change, const HeldRow& held,
                             const Transaction::Capture& capture);

// Whatever was sent, its end was never told.
Refusal outcome_unknown(const Refusal& why);

}  // namespace holdfast::receivers::postgres
