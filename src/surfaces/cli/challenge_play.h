// The steps of the stale-writer challenge. Each function appends its part; they are played in the order in which
// they were appended, over one Play.
//
// Promises: what a step says was seen on the files, in the evidence chain or in a child's output; a step that could not
// show its subject says so. Threads: one.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "surfaces/cli/challenge_ground.h"
#include "surfaces/cli/challenge_report.h"
#include "surfaces/cli/challenge_scratch.h"

namespace holdfast::cli::challenge {

inline constexpr const char* kFile = "renewal-result.json";
inline constexpr const char* kFileScope = "file://project:/renewal-result.json";
inline constexpr const char* kByA = "{\"renewed_by\":\"worker-a\"}\n";
inline constexpr const char* kByB = "{\"renewed_by\":\"worker-b\"}\n";

struct Play {
  Scratch& scratch;
  Report& report;
  Ground* ground = nullptr;  // the receivers beside the file, where the challenge is on them, too
  std::unique_ptr<os::ChildProcess> worker_a = {};
  Json lease_of_a = nullptr;    // as A had it
  std::string lease_of_b = {};  // the file of B's keys on kFile
  std::size_t readings = 0;     // of the leased name while somebody attacked it
  std::vector<Sent> of_a = {};  // the commands that A holds
  std::vector<Sent> of_b = {};
  Json before_a_wakes = nullptr;  // what the receivers hold
};

// A workspace, its server and, with a ground, its receivers.
Result<Shown> set_up(Play& play);

// challenge_takeover.cc: A stalls, B takes over and replaces, A is refused.
void add_takeover_steps(Play& play, std::vector<Step>& steps);
// challenge_attacks.cc: A's own open, and programs that never asked.
void add_direct_open_step(Play& play, std::vector<Step>& steps);
void add_attack_steps(Play& play, std::vector<Step>& steps);
// challenge_races.cc: a folder redirected, a preimage displaced.
void add_race_steps(Play& play, std::vector<Step>& steps);
// challenge_ending.cc: the records, the quarantine, B's release.
void add_record_steps(Play& play, std::vector<Step>& steps);
void add_release_step(Play& play, std::vector<Step>& steps);
// challenge_partition.cc: t2, two views of who owns what.
void add_partition_steps(Play& play, std::vector<Step>& steps);
// challenge_queue.cc: t3, items that are delivered after the handoff.
void add_queue_steps(Play& play, std::vector<Step>& steps);
// challenge_lost_mark.cc: t4, receivers that are restored, and the workspace's own store.
void add_lost_mark_steps(Play& play, std::vector<Step>& steps);

// challenge_verbs.cc: what B does, and what is noted of it.
// Acquires as worker-b; `lease_file` gets what `acquire` printed. The record, or the refusal.
Result<Json> acquire_as_b(Play& play, const std::string& scope, const std::string& lease_file);
Result<Answer> write_as_b(Play& play, const std::string& scope, const std::string& lease_file);
Result<Answer> release_as_b(Play& play, const std::string& scope, const std::string& lease_file);
// The record of a held scope, as `leases` has it; null where nobody holds it.
Result<Json> held_record(Play& play, const std::string& scope);
// A decision on a write, renewal or release with its inputs: the keys presented, and the record that held then.
Json decision_of(const std::string& decision, const std::string& verb, const Json& presented, const Json& current);
// "released: quarantine_ungated, the bytes are kept as q-…" or "released: post_edit, content as expected".
std::string release_words(const Answer& released);

}  // namespace holdfast::cli::challenge
