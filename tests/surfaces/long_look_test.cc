// Reading, hashing and archiving a large file or a folder happens outside the transition at every end of a tenancy and
// every decision about it: others are answered meanwhile, and what changes meanwhile is found (CONTRACT section 2).
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/digest.h"
#include "base/json.h"
#include "support/workbench.h"

namespace holdfast {
namespace {

using support::Answer;
using support::Environment;
using support::eventually;
using support::Lease;
using support::operator+;
using support::Words;
using support::Workbench;

class LongLook : public testing::Test {
 protected:
  // More than what is looked at inside; the pause stands for the hours of a larger one.
  static std::string large(char fill) { return std::string(1U << 20U, fill); }

  // An archive is held just before its entry gets a name, until resume().
  Environment held_at(const std::string& point) const {
    return {{"HOLDFAST_FAULT", point + ":wait=" + gate()}, {"HOLDFAST_TRANSITION_TIMEOUT_MS", "5000"}};
  }
  std::string gate() const { return gates_.at("gate"); }
  bool is_held() const {
    return eventually([&] { return std::filesystem::exists(gate()); });
  }
  void resume() const { std::filesystem::remove(gate()); }

  // Verbs that change something, on scopes that have nothing to do with it.
  void expect_others_are_answered(const Environment& environment = {}) const {
    const Answer acquired = bench_.run({"acquire", "other.txt", "--owner", "o", "--task", "t"}, "", environment);
    ASSERT_TRUE(acquired.ok()) << acquired.text;
    const Lease other{"file://project:/other.txt", acquired.at("leases").at(0)};
    EXPECT_TRUE(bench_.heartbeat(other).ok());
    const Answer released = bench_.release(other);
    EXPECT_TRUE(released.ok()) << released.text;
    EXPECT_TRUE(std::filesystem::exists(gate())) << "the archive was not under way any more";
  }

  void authorise() const {
    bench_.put(".squad/control/lock-release.json",
               R"({"authorized_owners":["boss"],"scopes":["big"],"set_by":"the owner","reason":"stuck"})");
  }
  std::string amber(const std::string& bytes) const { return bench_.get(".squad/vault/amber/" + sha256_hex(bytes)); }
  Json end_of(const Lease& lease) const {
    const Answer log = bench_.run({"evidence", "log"});
    for (const Json& event : log.at("events")) {
      const std::string kind = text_member(event, "kind");
      if (kind != "tenancy_ended" && kind != "released_with_ungated_content") continue;
      if (event.at("facts").at("generation") == lease.record.at("generation")) return event.at("facts");
    }
    return Json::object();
  }
  static bool is_stopped(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    const std::string stat((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    return stat.find(") T ") != std::string::npos;
  }
  bool server_stops() {
    return eventually([&] { return is_stopped(bench_.server().pid()); });
  }

  support::TemporaryFolder gates_;
  Workbench bench_;
};

const Words kAcquireAgain = {"acquire", "big", "--owner", "alice", "--task", "task-1", "--fresh"};

TEST_F(LongLook, OthersAreAnsweredWhileAReGrantArchives) {
  bench_.put("big", large('a'));
  bench_.serve(held_at("vault_before_link@2"));  // the first is the capture
  const Lease lease = bench_.acquire("big");
  const auto again = bench_.start(kAcquireAgain);
  ASSERT_TRUE(is_held());
  expect_others_are_answered();
  EXPECT_TRUE(bench_.heartbeat(lease).ok()) << "it is its holder's until the re-grant";
  resume();
  const Answer answer = Workbench::answer_of(*again);
  ASSERT_TRUE(answer.ok()) << answer.text;
  EXPECT_EQ(answer.at("granted"), "regrant");
  EXPECT_EQ(end_of(lease).at("content_check").at("status"), "match");
  const Lease now{"file://project:/big", answer.at("leases").at(0)};
  EXPECT_TRUE(bench_.write(now, "new").ok());
  EXPECT_EQ(bench_.release(now).at("content_mismatch"), false);
}

TEST_F(LongLook, OthersAreAnsweredWhileADeadServersTenancyIsGrantedAgain) {
  bench_.put("big", large('a'));
  bench_.serve();
  const Lease lease = bench_.acquire("big");
  bench_.kill_server();
  bench_.put("big", large('b'));  // ungated: nobody guards it now
  bench_.serve(held_at("vault_before_link@1"));
  const auto again = bench_.start({"acquire", "big", "--owner", "alice", "--task", "task-1"});
  ASSERT_TRUE(is_held());
  expect_others_are_answered();
  resume();
  const Answer answer = Workbench::answer_of(*again);
  ASSERT_TRUE(answer.ok()) << answer.text;
  EXPECT_EQ(answer.at("granted"), "regrant");
  EXPECT_EQ(answer.at("leases").at(0).at("os_lock").at("enforced"), true);
  EXPECT_EQ(end_of(lease).at("content_check").at("status"), "mismatch");
  EXPECT_EQ(amber(large('b')), large('b'));
  const Lease now{"file://project:/big", answer.at("leases").at(0)};
  EXPECT_EQ(bench_.release(now).at("content_mismatch"), false) << "its baseline is what was there";
}

TEST_F(LongLook, OthersAreAnsweredWhileAForcedReleaseArchives) {
  bench_.put("big", large('a'));
  bench_.serve(held_at("vault_before_link@2"));
  const Lease lease = bench_.acquire("big");
  authorise();
  const auto forced = bench_.start({"release", "big", "--force", "--owner", "boss"});
  ASSERT_TRUE(is_held());
  expect_others_are_answered();
  resume();
  const Answer answer = Workbench::answer_of(*forced);
  ASSERT_TRUE(answer.ok()) << answer.text;
  EXPECT_EQ(answer.at("forced_by"), "boss");
  EXPECT_EQ(answer.at("content_mismatch"), false);
}

TEST_F(LongLook, OthersAreAnsweredWhileATakeoverOfAnExpiredTenancyArchives) {
  bench_.put("big", large('a'));
  const Environment quick = {{"HOLDFAST_TRANSITION_TIMEOUT_MS", "5000"}};
  const Lease lease = bench_.acquire("big", "alice", {"--ttl", "1s"});  // no server: nobody but a verb ends it
  const Words words = {"acquire", "big", "--owner", "bob", "--task", "t"};
  std::unique_ptr<support::Child> taken;
  ASSERT_TRUE(eventually([&] {
    taken = bench_.start(words, held_at("vault_before_link@1"));
    if (eventually([&] { return std::filesystem::exists(gate()); }, 1000)) return true;
    EXPECT_EQ(Workbench::answer_of(*taken).code(), "lease_scope_conflict");
    return false;
  }));
  expect_others_are_answered(quick);
  resume();
  const Answer answer = Workbench::answer_of(*taken);
  ASSERT_TRUE(answer.ok()) << answer.text;
  EXPECT_EQ(answer.at("granted"), "new");
  EXPECT_EQ(end_of(lease).at("ended_by"), "expiry");
}

TEST_F(LongLook, OthersAreAnsweredWhileRevokedLeasesAreArchived) {
  bench_.put("big", large('a'));
  bench_.serve(held_at("vault_before_link@2"));
  const Lease lease = bench_.acquire("big");
  const auto advanced = bench_.start({"epoch", "advance", "--reason", "drill"});
  ASSERT_TRUE(is_held());
  expect_others_are_answered();
  EXPECT_EQ(bench_.write(lease, "late").code(), "control_epoch_revoked") << "revoked at once; its end follows";
  resume();
  const Answer answer = Workbench::answer_of(*advanced);
  ASSERT_TRUE(answer.ok()) << answer.text;
  EXPECT_TRUE(eventually([&] { return !end_of(lease).empty(); }));
  EXPECT_EQ(end_of(lease).at("ended_by"), "epoch");
}

TEST_F(LongLook, OthersAreAnsweredWhileADecisionArchives) {
  bench_.put("big", large('a'));
  bench_.put("foreign", large('x'));
  bench_.serve(held_at("vault_before_link@2"));
  const Lease lease = bench_.acquire("big");
  std::filesystem::rename(bench_.at("foreign"), bench_.at("big"));
  std::string id;
  ASSERT_TRUE(eventually([&] {
    const Answer waiting = bench_.run({"reconcile", "list"});
    if (!waiting.at("reconcile").empty()) id = waiting.at("reconcile").at(0).at("id").get<std::string>();
    return !id.empty();
  }));
  const auto resolved = bench_.start(Words{"reconcile", "resolve", id, "--restore"} + lease.keys());
  ASSERT_TRUE(is_held());
  expect_others_are_answered();
  resume();
  const Answer answer = Workbench::answer_of(*resolved);
  ASSERT_TRUE(answer.ok()) << answer.text;
  EXPECT_EQ(bench_.get("big"), large('a'));
  EXPECT_EQ(amber(large('x')), large('x'));
  EXPECT_EQ(bench_.release(lease).at("content_mismatch"), false);
}

TEST_F(LongLook, AReGrantFindsWhatChangedBetweenItsLookAndItsTransition) {
  bench_.put("big", large('a'));
  const Lease lease = [&] {
    bench_.serve();
    const Lease taken = bench_.acquire("big", "alice", {"--no-guard"});
    bench_.kill_server();
    return taken;
  }();
  bench_.serve({{"HOLDFAST_FAULT", "acquire_after_capture:stop"}});
  Words words = {"acquire", "big", "--owner", "alice", "--task", "task-1", "--no-guard", "--lease", "lease.json"};
  bench_.put("lease.json", Json{{"leases", {lease.record}}}.dump());
  words.back() = bench_.at("lease.json");
  const auto again = bench_.start(words);
  ASSERT_TRUE(server_stops());
  bench_.put("big", large('c'));
  bench_.server().cont();
  const Answer answer = Workbench::answer_of(*again);
  ASSERT_TRUE(answer.ok()) << answer.text;
  EXPECT_EQ(end_of(lease).at("content_check").at("status"), "mismatch");
  EXPECT_EQ(amber(large('c')), large('c'));
  EXPECT_EQ(answer.at("leases").at(0).at("pre_write").at("sha256"), sha256_hex(large('c')));
  const Lease now{"file://project:/big", answer.at("leases").at(0)};
  EXPECT_EQ(bench_.release(now).at("content_mismatch"), false);
}

TEST_F(LongLook, WhatChangesBetweenTheLookAtAnEndAndTheNewBaselineIsNoBaselineUnseen) {
  bench_.put("big", large('a'));
  bench_.serve({{"HOLDFAST_FAULT", "regrant_after_look:stop"}});
  const Lease lease = bench_.acquire("big", "alice", {"--no-guard"});
  const auto again = bench_.start(kAcquireAgain + Words{"--no-guard"});
  ASSERT_TRUE(server_stops());
  bench_.put("big", large('c'));
  bench_.server().cont();
  const Answer answer = Workbench::answer_of(*again);
  ASSERT_TRUE(answer.ok()) << answer.text;
  EXPECT_EQ(end_of(lease).at("content_check").at("status"), "mismatch");
  EXPECT_EQ(end_of(lease).at("content_check").at("actual_sha256"), sha256_hex(large('c')));
  EXPECT_EQ(answer.at("leases").at(0).at("pre_write").at("sha256"), sha256_hex(large('c')));
}

TEST_F(LongLook, AReGrantWhoseTenancyEndsMeanwhileIsAGrant) {
  bench_.put("big", large('a'));
  bench_.serve(held_at("regrant_after_look"));
  const Lease lease = bench_.acquire("big");
  const auto again = bench_.start(kAcquireAgain);
  ASSERT_TRUE(is_held());
  ASSERT_TRUE(bench_.release(lease).ok());
  resume();
  const Answer answer = Workbench::answer_of(*again);
  ASSERT_TRUE(answer.ok()) << answer.text;
  EXPECT_EQ(answer.at("granted"), "new");
  EXPECT_EQ(answer.at("leases").at(0).at("os_lock").at("enforced"), true);
  const Lease now{"file://project:/big", answer.at("leases").at(0)};
  EXPECT_TRUE(bench_.write(now, "new").ok());
  EXPECT_EQ(bench_.release(now).at("content_mismatch"), false);
}

TEST_F(LongLook, AForcedReleaseFindsWhatChangedMeanwhile) {
  bench_.put("big", large('a'));
  bench_.serve({{"HOLDFAST_FAULT", "release_after_look:stop"}});
  const Lease lease = bench_.acquire("big", "alice", {"--no-guard"});
  authorise();
  const auto forced = bench_.start({"release", "big", "--force", "--owner", "boss"});
  ASSERT_TRUE(server_stops());
  bench_.put("big", large('c'));
  bench_.server().cont();
  const Answer answer = Workbench::answer_of(*forced);
  ASSERT_TRUE(answer.ok()) << answer.text;
  EXPECT_EQ(answer.at("content_mismatch"), true);
  EXPECT_EQ(amber(large('c')), large('c'));
}

TEST_F(LongLook, AForcedReleaseBreaksNoLeaseButTheOneThatWasAskedFor) {
  bench_.put("big", large('a'));
  bench_.serve(held_at("release_after_look"));
  bench_.acquire("big");
  authorise();
  const auto forced = bench_.start({"release", "big", "--force", "--owner", "boss"});
  ASSERT_TRUE(is_held());
  const Answer next = bench_.run(kAcquireAgain);
  ASSERT_TRUE(next.ok()) << next.text;
  resume();
  EXPECT_EQ(Workbench::answer_of(*forced).code(), "stale_lease_generation");
  EXPECT_TRUE(bench_.heartbeat(Lease{"file://project:/big", next.at("leases").at(0)}).ok());
}

TEST_F(LongLook, AForcedReleaseWhoseAuthorisationIsTakenBackMeanwhileIsRefused) {
  bench_.put("big", large('a'));
  bench_.serve(held_at("release_after_look"));
  const Lease lease = bench_.acquire("big");
  authorise();
  const auto forced = bench_.start({"release", "big", "--force", "--owner", "boss"});
  ASSERT_TRUE(is_held());
  std::filesystem::remove(bench_.at(".squad/control/lock-release.json"));
  resume();
  EXPECT_EQ(Workbench::answer_of(*forced).code(), "force_release_not_authorized");
  EXPECT_TRUE(bench_.heartbeat(lease).ok());
}

}  // namespace
}  // namespace holdfast
