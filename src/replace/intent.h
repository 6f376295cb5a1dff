// The intent journal: intents/<sha256(operation_id)>.json, one guarded replacement each, durable before its publish and
// settled or classified before any later act on the scope.
//
// States: prepared --publish, verified--> settled
//         prepared --refused before the rename, or a crash before it--> not_published   (the id may run again)
//         prepared --a verification failed--> fault                                     (a reconciliation record waits)
//         fault    --reconcile resolve--> reconciled
// Settled intents are kept: a repeated operation id is answered with the first outcome (CONTRACT section 5).
// A prepared intent gets a second name from its scope, intents/<sha256(scope)>.open, durable with the first: what is
// open on one scope is found without reading the others. That name stays when the intent is settled; it is stale then,
// and goes to the next intent of the scope.
// Invariant: at most one prepared intent a scope. Errors: state_persist_failed, state_unreadable.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "holdfast/result.h"
#include "os/control_folder.h"
#include "os/file.h"

namespace holdfast::replace {

struct Preimage {
  bool exists = false;
  std::string sha256;
  std::uint64_t byte_count = 0;
  os::Identity identity;
};

struct Intent {
  std::string operation_id;
  std::string state = "prepared";
  std::string scope;  // full canonical
  Json command;       // the whole command (CONTRACT section 5)
  std::string planned_sha256;
  std::uint64_t planned_byte_count = 0;
  Preimage preimage;
  os::Identity staged;         // T
  std::string temporary_name;  // leaf beside the destination
  std::string at;
  Json outcome;              // Exhibit 3 once settled
  std::string reconcile_id;  // of a fault
  std::string event;         // evidence id of the outcome

  Json to_json() const;
};

Result<Intent> intent_from_json(const Json& value);

struct Unreadable {
  std::string name;
  std::string reason;
};
struct Prepared {
  std::vector<Intent> found;
  std::vector<Unreadable> unreadable;
};

class IntentJournal {
 public:
  explicit IntentJournal(os::ControlFolder& files) : files_(files) {}
  Result<void> put(const Intent& intent);
  // A settled intent's bytes, to be staged and flushed with the commit of what it says; then settle() gives the name,
  // once the event and the tenancy's record stand: durable with the next intent. A power cut before that leaves the
  // prepared intent, which recovery closes from what is on the disk.
  static os::Staged staged(const Intent& intent);
  Result<void> settle(const Intent& intent);
  Result<std::optional<Intent>> find(const std::string& operation_id) const;
  Result<Prepared> prepared() const;  // those that a crash may have left: reads every intent
  // Those of one scope: reads what its open name and `last` (operations whose settling may not have been flushed) lead
  // to, and no more, once has_open_names(). Every one of the scope else, and where the open name cannot be read.
  Result<std::vector<Intent>> prepared_on(const std::string& scope, const std::vector<std::string>& last) const;
  Result<bool> has_open_names() const;
  // For a workspace from before there were open names: gives them to these, all that are prepared, and notes it.
  Result<void> give_open_names(const std::vector<Intent>& prepared);

 private:
  os::ControlFolder& files_;
};

// Fixed length, whatever the destination's name is (field report B80).
std::string new_temporary_name();

}  // namespace holdfast::replace
