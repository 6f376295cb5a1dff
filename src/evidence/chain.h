// The evidence chain: what happened, each event with the hash of the one before it.
//
// On disk: evidence/log-000001.jsonl, one event a line, a new segment at 4 MiB. A line is canonical JSON with the
// members at, boot_ms, control_epoch, facts, hash, high_water, id, kind, parents, prev, scope, seq; hash is the SHA-256
// of the canonical line without its hash member; prev the hash before it ("0"*64 for the first). high_water and
// control_epoch are the largest that any event so far has named, so that the last line alone tells them. Numbers that
// a double cannot carry are decimal strings.
// docs/formats/evidence.md has the grammar and a worked example that a script can check with no code of ours.
//
// Promises: append writes all events of one call with one flush, or none (a short write is taken back); a torn last
// line that a crash left is set aside as evidence/torn-<seq>-<n>, never deleted, and an event says so; verify() never
// changes anything and names the first break by segment, line and seq; an append after tampering leaves the break
// where it is, so that it is named for ever.
// Does not promise: that somebody who rewrites the whole chain, or takes whole lines off its very end, is noticed
// (export the head hash for that).
// Calling sequence: append only under the transition mutex. Threads: one Chain is used under the mutex; log/verify of
// another Chain object over the same files is safe at any time.
// Errors: state_persist_failed, not_found (show), and what ControlFolder refuses. A break is no refusal of verify(): it
// is in the answer, and refusal_of() makes evidence_chain_broken of it.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "holdfast/result.h"
#include "os/control_folder.h"

namespace holdfast::evidence {

struct Event {
  std::string kind;                  // lease_acquired, write_published, refused, …: docs/formats/evidence.md
  std::string scope;                 // full canonical scope, or empty
  std::vector<std::string> parents;  // ids of events that led to this one
  Json facts = Json::object();
  Generation generation;  // raises high_water where it is larger
  Epoch epoch;            // raises control_epoch where it is larger
  std::string id;         // given by append where empty: "ev-" and 16 hex digits
};

struct Marks {
  std::uint64_t seq = 0;  // of the last event; 0: none yet
  std::string head;       // hash of the last event
  Generation high_water;
  Epoch control_epoch;
};

struct Break {
  std::string segment;
  std::uint64_t line = 0;  // 1-based
  std::uint64_t seq = 0;   // expected there
  std::string reason;
};

struct Verification {
  std::uint64_t events = 0;  // that verify, up to the break
  std::string head;          // hash of the last of them
  std::optional<Break> first_break;
  Json to_json() const;  // {"verified","events","head","first_break":null|{…}}
};

// evidence_chain_broken with details.first_break; only of a verification that found one.
Refusal refusal_of(const Verification& verification);

std::string new_event_id();

class Chain {
 public:
  static constexpr std::uint64_t kSegmentBytes = 4U << 20U;

  explicit Chain(os::ControlFolder& files);
  ~Chain();

  // Reads the tail (cheap: the last segment's last lines). Called by the others where needed; again after the files
  // changed under us.
  Result<Marks> marks();
  // Ids of the appended events, in order. Without events: only sets a torn last line aside, where there is one.
  // A parent that no event has is not written as one, but into facts.unknown_parents: the chain stays whole.
  // `beside`: files that are staged and flushed in the same wait; none of them is left where the append is refused.
  Result<std::vector<std::string>> append(std::vector<Event> events, const Instant& now,
                                          const std::vector<os::Staged>& beside = {});

  // Events in order, oldest first; the visitor returns false to stop. A line that cannot be read is passed on as
  // {"unreadable":true,"segment","line"}.
  Result<void> each(const std::function<bool(const Json& event)>& visit);
  Result<Json> show(const std::string& id);  // the event, with "children": ids that name it as parent
  // Whether an event has this id; looks at the newest segment first and parses only lines that have its text.
  Result<bool> contains(const std::string& id);
  Result<Verification> verify();
  // Every segment as (file name, bytes), in order: what a package and `evidence export` hold. All of it in memory.
  Result<std::vector<std::pair<std::string, std::string>>> segments();
  // verify() over texts: segments as (file name, bytes), in order; for packages.
  static Result<Verification> verify_lines(const std::vector<std::pair<std::string, std::string>>& segments);

 private:
  struct State;
  os::ControlFolder& files_;
  std::unique_ptr<State> state_;
};

}  // namespace holdfast::evidence
