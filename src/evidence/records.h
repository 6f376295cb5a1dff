// Records about bytes and faults that wait for a person: quarantine entries and reconciliation records, one JSON file
// each below evidence/quarantine/ and evidence/reconcile/, published whole, never removed.
//
// What is open on one scope is found without reading the other records: evidence/reconcile/<sha256(scope)>.open lists
// the ids, and does so before the record itself is there; an id whose record is missing or resolved is not open.
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
  // The reconciliation records of a scope that wait for a decision, as all() gives them. Reads no others, but for the
  // first call on a workspace from before there were open lists; while one of its records cannot be read, nothing says
  // that it is not about this scope, and it is among them.
  Result<std::vector<Json>> open_on(const std::string& scope);
  // Makes the open lists where there are none yet, as far as every record can be read.
  Result<void> give_open_names();

 private:
  Result<Json> found(RecordKind kind, const std::string& id) const;
  Result<std::vector<std::string>> open_ids(const std::string& scope) const;
  Result<void> list_open(const std::string& scope, const std::string& id);
  Result<void> unlist(const std::string& scope, const std::string& id);
  os::ControlFolder& files_;
};

}  // namespace holdfast::evidence
