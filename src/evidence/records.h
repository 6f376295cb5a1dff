// Records about bytes and faults that wait for a person: quarantine entries and reconciliation records, one JSON file
// each below evidence/quarantine/ and evidence/reconcile/, published whole, never removed.
//
// An id is 16 hex digits with a prefix ("q-", "r-"). put() replaces a record of the same id.
// Errors: state_persist_failed, state_unreadable, not_found.
#pragma once
#include <string>
#include <vector>

#include "holdfast/result.h"
#include "os/control_folder.h"

namespace holdfast::evidence {

enum class RecordKind { quarantine, reconcile };

class Records {
 public:
  explicit Records(os::ControlFolder& files) : files_(files) {}

  static std::string new_id(RecordKind kind);
  Result<void> put(RecordKind kind, const std::string& id, const Json& record);
  Result<Json> get(RecordKind kind, const std::string& id) const;
  // Every record, oldest first by its "at"; one that cannot be read is {"id","unreadable":true,"reason"}.
  Result<std::vector<Json>> all(RecordKind kind) const;

 private:
  os::ControlFolder& files_;
};

}  // namespace holdfast::evidence
