// Tenancy: the whole span in which a holder owns a scope, across renewals; and its record on disk.
//
// The record is one JSON object (CONTRACT section 2); generations, epochs and inode numbers are decimal strings in it.
// tenancy_from_json accepts exactly what to_json writes (unknown members are kept out, missing ones refused:
// state_unreadable), so that a cut or foreign record is never half understood (field report B02).
// Times: deadline decides (boot clock); started_at and expires_at are for people, and started_at is compared as an
// opaque string.
#pragma once
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/ids.h"
#include "holdfast/result.h"
#include "holdfast/scope.h"
#include "os/file.h"
#include "os/process.h"

namespace holdfast {

inline constexpr std::int64_t kTtlMaxSeconds = 15 * 60;

// `15m`, `90s`, or a bare number of minutes; clamped to 15 minutes. lease_ttl_invalid otherwise.
Result<std::int64_t> parse_ttl(std::string_view text);

// The server, or the short-lived process, that took the tenancy.
struct Holder {
  bool is_server = false;
  os::ProcessIdentity process;
  std::string session;  // of the server's liveness record

  Json to_json() const;
  static Holder from_json(const Json& value);
};

// What was at the scope when it was acquired.
struct PreWrite {
  bool exists = false;
  std::string kind = "none";  // file folder none
  std::string fnv1a;
  std::uint64_t byte_count = 0;
  std::string sha256;  // of a folder these three are of its manifest

  Json to_json() const;
  static PreWrite from_json(const Json& value);
};

struct Tenancy {
  Scope scope;
  std::string owner;
  std::string task_id;
  Generation generation;
  std::string started_at;
  std::string expires_at;
  std::int64_t ttl_seconds = 0;
  Deadline deadline;
  Holder holder;
  std::optional<os::ProcessIdentity> client;   // only of a bound lease or a bridge
  std::optional<os::ProcessIdentity> command;  // what `hold` or `run` runs under the lease
  bool bound = false;
  // Its client can write below its scopes only: what changed in a leased folder is known to be that client's work.
  bool confined = false;
  Epoch control_epoch;
  Json os_lock = Json::object();  // guard::Enforcement as it is, with its fault
  bool enforced_at_grant = false;
  PreWrite pre_write;
  std::string post_sha256;   // of the last gated write; empty: none
  bool post_absent = false;  // a reconciliation accepted that nothing is there
  std::string last_operation_id;
  os::Identity identity;  // of the object; unknown where absent
  os::Identity parent_identity;
  Json observed = Json::array();   // what others did to the file: {"what","at","who"}, the first 20
  Json contract = Json::object();  // the ownership-generation contract (second seed)
  std::string event;               // evidence id of the grant

  Json to_json() const;
  bool expired_at(const Instant& now) const { return deadline.passed_at(now); }
  void renew(const Instant& now, std::int64_t ttl);
};

Result<Tenancy> tenancy_from_json(const Json& value);

// A tenancy that has ended: resources/<sha256(scope)>.json.
struct EndedTenancy {
  Tenancy tenancy;
  std::string ended_at;
  std::string ended_by;  // release expiry takeover regrant force epoch client_death
  std::string event;     // evidence id of the end
  Json content_check = Json::object();

  Json to_json() const;
};

Result<EndedTenancy> ended_from_json(const Json& value);

// The six keys: namespace and resource_id are the scope's, the other four a caller presents.
struct TenancyKeys {
  std::string owner;
  std::string task_id;
  Generation generation;
  std::string started_at;
};

// Whether an act under these keys is current (seed, section 4). Refuses, in this order: stale_lease_generation (any key
// differs; "expected N, current M"), control_epoch_revoked, lease_expired. An ended tenancy whose keys all match is
// answered by how it ended, until somebody succeeds it.
Result<void> judge_keys(const Scope& scope, const TenancyKeys& keys, const std::optional<Tenancy>& current,
                        const std::optional<EndedTenancy>& last, Epoch epoch, const Instant& now);

// {"owner","task_id","generation","pid","since","until",…}: who holds it, for refusals (field report B49).
Json describe_holder(const Tenancy& tenancy, const Instant& now);

}  // namespace holdfast
