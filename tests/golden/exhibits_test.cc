// Exhibits 1 to 5 of the first seed: the same fields, from the program.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/digest.h"
#include "base/json.h"
#include "lease/generation/generation_store.h"
#include "replace/publish.h"
#include "support/workbench.h"

namespace holdfast {
namespace {

using support::Answer;
using support::Lease;
using support::Workbench;

std::vector<std::string> members(const Json& object) {
  std::vector<std::string> names;
  for (const auto& [name, value] : object.items()) names.push_back(name);
  return names;
}

TEST(Exhibit1, TheMarkerSealsTheWholeMapBeforeTheStoreIsPublished) {
  Workbench bench;
  bench.acquire("a.txt");
  bench.acquire("b.txt", "bob");
  const auto marker = parse_json(bench.get(".squad/.generations-initialized"));
  ASSERT_TRUE(marker);
  EXPECT_EQ(members(*marker), (std::vector<std::string>{"high_water", "map_sha256", "prepared_counters", "protocol"}));
  EXPECT_EQ((*marker)["protocol"], "room.generation.v2");
  EXPECT_EQ((*marker)["map_sha256"], sha256_hex((*marker)["prepared_counters"].dump()));
  EXPECT_EQ((*marker)["high_water"], 2U);
  const auto store = parse_json(bench.get(".squad/generations.json"));
  ASSERT_TRUE(store);
  EXPECT_EQ((*store)["counters"], (*marker)["prepared_counters"]);
}

TEST(Exhibit2, AStaleWorkerIsToldBothNumbers) {
  Workbench bench;
  bench.put("a.txt", "old");
  bench.serve();
  const Lease old = bench.acquire("a.txt", "alice");
  EXPECT_TRUE(bench.release(old).ok());
  const Lease current = bench.acquire("a.txt", "bob");
  const Answer refused = bench.write(old, "late");
  EXPECT_EQ(refused.code(), "stale_lease_generation");
  EXPECT_EQ(text_member(refused.document["error"], "message"), "stale_lease_generation: expected " +
                                                                   std::to_string(old.generation()) + ", current " +
                                                                   std::to_string(current.generation()));
  EXPECT_EQ(refused.document["error"]["details"]["holder"]["owner"], "bob");
  EXPECT_EQ(refused.status, 1);
  EXPECT_EQ(bench.get("a.txt"), "old");
}

TEST(Exhibit3, ASuccessCarriesTheFourVerifications) {
  Workbench bench;
  bench.put("a.txt", "old");
  bench.serve();
  const Answer written = bench.write(bench.acquire("a.txt"), "new");
  ASSERT_TRUE(written.ok()) << written.text;
  const Json& exhibit = written.document;
  EXPECT_EQ(exhibit["leased_scope"], "project:/a.txt");
  EXPECT_EQ(exhibit["planned_sha256"], sha256_hex("new"));
  EXPECT_EQ(text_member(exhibit, "published_identity").substr(0, 7), "volume-");
  for (const char* check :
       {"guard_identity_matches_published", "guard_content_matches_planned", "guard_resolved_path_matches_scope"}) {
    EXPECT_EQ(exhibit[check], true) << check;
  }
  EXPECT_TRUE(exhibit["preimage_displaced_to"].is_null());
  EXPECT_EQ(exhibit["new_long_term_guard"], "G'");
  EXPECT_EQ(exhibit["verification"], "complete");
}

TEST(Exhibit4, AFaultRecordHasEveryFieldAndTheNextAction) {
  replace::Plan plan;
  plan.scope = "file://project:/artifacts/renewal-result.json";
  plan.path = "project:/artifacts/renewal-result.json";
  plan.planned.sha256 = sha256_hex("planned");
  plan.preimage.exists = true;
  plan.preimage.sha256 = sha256_hex("before");
  replace::Fault fault;
  fault.code = Code::destination_preimage_displaced;
  fault.error = "the captured preimage was moved before the rename, so an uncaptured object was replaced";
  fault.rename_completed = true;
  fault.preimage_displaced_to = "project:/artifacts/renewal-result.previous";
  const Json record = replace::fault_record(plan, fault, "r-1", 4104, "2026-10-31T18:00:00Z");
  for (const char* name : {"path", "scope", "error", "fault", "rename_completed", "planned_sha256", "preimage_sha256",
                           "destination_existed_before", "preimage_displaced_to", "reconcile_by", "pid", "ts"}) {
    EXPECT_TRUE(record.contains(name)) << name;
  }
  EXPECT_EQ(record["fault"], "destination_preimage_displaced");
  EXPECT_EQ(record["preimage_displaced_to"], "project:/artifacts/renewal-result.previous");
  for (const Code code :
       {Code::destination_guard_lost, Code::destination_name_redirected, Code::destination_identity_changed,
        Code::destination_content_diverged, Code::destination_preimage_displaced, Code::destination_unverifiable}) {
    EXPECT_FALSE(facts_of(code).hint.empty());
    EXPECT_EQ(facts_of(code).exit_status, 4);
  }
}

TEST(Exhibit5, AReleaseOfDivergedBytesQuarantinesThemAndRestoresNothing) {
  Workbench bench;
  bench.put("a.txt", "old");
  bench.serve();
  const Lease lease = bench.acquire("a.txt", "reviewer-beta");
  ASSERT_TRUE(bench.write(lease, "gated").ok());
  bench.kill_server();
  bench.put("a.txt", "nobody gated this");
  bench.serve();
  const Answer released = bench.release(lease);
  ASSERT_EQ(released.status, 0) << released.text;
  const Json& exhibit = released.document;
  EXPECT_EQ(exhibit["released"], "project:/a.txt");
  EXPECT_EQ(exhibit["owner"], "reviewer-beta");
  EXPECT_EQ(exhibit["was_held"], true);
  EXPECT_EQ(exhibit["amber_kind"], "quarantine_ungated");
  EXPECT_EQ(exhibit["content_mismatch"], true);
  EXPECT_EQ(exhibit["content_check"]["status"], "mismatch");
  EXPECT_EQ(exhibit["content_check"]["baseline_source"], "gated_write_post_sha256");
  EXPECT_EQ(exhibit["content_check"]["expected_sha256"], sha256_hex("gated"));
  EXPECT_EQ(exhibit["content_check"]["actual_sha256"], sha256_hex("nobody gated this"));
  EXPECT_FALSE(text_member(exhibit, "warning").empty());
  EXPECT_EQ(bench.get("a.txt"), "nobody gated this");
  EXPECT_EQ(bench.get(".squad/vault/amber/" + sha256_hex("nobody gated this")), "nobody gated this");
}

}  // namespace
}  // namespace holdfast
