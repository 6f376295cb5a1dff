// Requested acts from outside: bound to exact bytes and one tenancy, approved once, consumed once (CONTRACT section 5;
// first seed, section 8).
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/base64.h"
#include "support/row_bench.h"

namespace holdfast {
namespace {

using support::Answer;
using support::details_of;
using support::eventually;
using support::kDeploy;
using support::kRows;
using support::Lease;
using support::RowBench;
using support::Words;
using support::operator+;

class Act : public testing::Test {
 protected:
  // A row's act as far as approved.
  Lease approved(const std::string& id, const Words& more = {}) {
    const Lease lease = bench_.acquire(kRows, "alice", more);
    EXPECT_TRUE(bench_.prepare_row(lease, id, "paid", "1").ok());
    EXPECT_TRUE(bench_.approve(id).ok());
    return lease;
  }
  void expect_refused(const Answer& answer, const std::string& code) {
    EXPECT_EQ(answer.code(), code) << answer.text;
    EXPECT_EQ(bench_.row(), "new 1");
  }
  std::string state(const std::string& id) { return text_member(bench_.act(id), "state"); }
  RowBench bench_;
};

TEST_F(Act, OnARowIsPreparedShownApprovedAndCarriedOutOnce) {
  const Lease lease = bench_.acquire(kRows);
  const Answer prepared = bench_.prepare_row(lease, "op-1", "paid", "1", {"--reason", "the invoice"});
  ASSERT_TRUE(prepared.ok()) << prepared.text;
  Json act = bench_.act("op-1");
  EXPECT_EQ(base64_decode(text_member(act, "payload_base64")),
            R"({"key":{"id":{"integer":"7"}},"set":{"state":{"text":"paid"}}})");
  act.erase("payload_base64");
  EXPECT_EQ(act, prepared.at("act"));
  EXPECT_EQ(act["typed_key"], (Json{{"id", {{"integer", "7"}}}}));
  EXPECT_EQ(act["prepared_version"], "1");
  EXPECT_EQ(act["command"]["generation"], lease.record["generation"]);
  EXPECT_EQ(act["command"]["control_epoch"], "1");
  EXPECT_EQ(act["reason"], "the invoice");
  EXPECT_EQ(bench_.row(), "new 1");
  const Answer approved = bench_.approve("op-1", {"--reason", "read and right"});
  EXPECT_EQ(approved.at("act")["approval"]["by"], "ada");
  EXPECT_EQ(approved.at("act")["approval"]["reason"], "read and right");
  EXPECT_EQ(bench_.row(), "new 1");
  const Answer committed = bench_.commit("op-1", lease);
  ASSERT_TRUE(committed.ok()) << committed.text;
  EXPECT_EQ(committed.at("outcome")["outcome"]["version"], "2");
  EXPECT_EQ(bench_.row(), "paid 2");
  EXPECT_EQ(state("op-1"), "consumed");
  EXPECT_EQ(bench_.run({"act", "list"}).at("acts")[0]["state"], "consumed");
  for (const char* kind : {"act_prepared", "act_approved", "command_accepted", "act_committed"}) {
    EXPECT_EQ(bench_.events(kind).size(), 1U) << kind;
  }
  EXPECT_TRUE(bench_.evidence_verifies());
}

// Whoever approves sees the very bytes, and not their digest alone.
TEST_F(Act, IsShownWithItsBytesToPeopleAsToPrograms) {
  const Lease lease = bench_.acquire(kRows);
  ASSERT_TRUE(bench_.prepare_row(lease, "op-1", "paid", "1").ok());
  const Lease file = bench_.acquire("a.txt");
  ASSERT_TRUE(bench_.prepare_file(file, "op-2", "one\nt\x1b[31mwo\n").ok());
  ASSERT_TRUE(bench_.prepare_file(file, "op-3", "\xff\xfe").ok());
  const auto printed = [&](const std::string& id) {
    support::Child child = support::spawn({HOLDFAST_PROGRAM, "--workspace", bench_.root(), "act", "show", id});
    const std::string text = child.read_all();
    EXPECT_EQ(child.wait(), 0);
    return text;
  };
  EXPECT_NE(printed("op-1").find(R"("set":{"state":{"text":"paid"}})"), std::string::npos) << printed("op-1");
  EXPECT_NE(printed("op-2").find("bytes\n  one\n  t"), std::string::npos) << printed("op-2");
  EXPECT_EQ(printed("op-2").find('\x1b'), std::string::npos);
  EXPECT_NE(printed("op-3").find("2, no text"), std::string::npos) << printed("op-3");
  std::filesystem::remove(bench_.at(".squad/vault/primary/" + sha256_hex("\xff\xfe")));
  EXPECT_TRUE(bench_.act("op-3")["payload_base64"].is_null());
  EXPECT_NE(printed("op-3").find("not in the vault"), std::string::npos);
  EXPECT_EQ(bench_.with_act({"act", "approve", "op-3"}, bench_.act("op-3")).code(), "act_mismatch");
  EXPECT_TRUE(bench_.with_act({"act", "approve", "op-2"}, bench_.act("op-2")).ok());
}

TEST_F(Act, OnAFileIsPlannedOnWhatIsThereUnlessSomethingElseIsSaid) {
  bench_.put("a.txt", "old");
  const Lease lease = bench_.acquire("a.txt");
  ASSERT_TRUE(bench_.prepare_file(lease, "op-1", "new").ok());
  EXPECT_EQ(bench_.act("op-1")["prepared_version"], sha256_hex("old"));
  EXPECT_EQ(bench_.act("op-1")["typed_key"], (Json{{"file", "file://project:/a.txt"}}));
  ASSERT_TRUE(bench_.approve("op-1").ok());
  ASSERT_TRUE(bench_.commit("op-1", lease).ok());
  EXPECT_EQ(bench_.get("a.txt"), "new");
  const Lease absent = bench_.acquire("b.txt");
  ASSERT_TRUE(bench_.prepare_file(absent, "op-2", "made").ok());
  EXPECT_EQ(bench_.act("op-2")["prepared_version"], "absent");
  ASSERT_TRUE(bench_.approve("op-2").ok());
  ASSERT_TRUE(bench_.commit("op-2", absent).ok());
  EXPECT_EQ(bench_.get("b.txt"), "made");
  EXPECT_EQ(bench_.prepare_file(absent, "op-3", "x", {"--precondition", "no digest"}).code(), "usage");
  EXPECT_EQ(bench_.prepare_file(bench_.acquire("dir"), "op-4", "x").code(), "");
  std::filesystem::create_directory(bench_.at("dir"));
  EXPECT_EQ(bench_.prepare_file(bench_.acquire("dir"), "op-5", "x").code(), "destination_not_a_file");
}

TEST_F(Act, ThatAFileOrARowHasMovedAwayFromAppliesNothingAndCanBeLetGo) {
  bench_.put("a.txt", "old");
  const Lease file = bench_.acquire("a.txt");
  ASSERT_TRUE(bench_.prepare_file(file, "op-f", "mine").ok());
  ASSERT_TRUE(bench_.write(file, "in between").ok());
  ASSERT_TRUE(bench_.approve("op-f").ok());
  EXPECT_EQ(bench_.commit("op-f", file).code(), "preimage_hash_mismatch");
  EXPECT_EQ(bench_.get("a.txt"), "in between");
  const Lease rows = approved("op-r");
  bench_.sql("UPDATE accounts SET state='theirs',version=2 WHERE id=7");
  EXPECT_EQ(bench_.commit("op-r", rows).code(), "record_version_changed");
  EXPECT_EQ(bench_.row(), "theirs 2");
  bench_.sql("DELETE FROM accounts");
  EXPECT_EQ(bench_.commit("op-r", rows).code(), "record_missing");
  // Known not to be applied: neither is under way, and both are fenced with their generation.
  for (const char* id : {"op-f", "op-r"}) EXPECT_EQ(state(id), "approved") << id;
  bench_.sql("INSERT INTO accounts VALUES(7,'new',1)");
  EXPECT_TRUE(bench_.commit("op-r", rows).ok()) << "a planned version that is back is the planned version";
}

TEST_F(Act, IsNotCarriedOutWithoutApproval) {
  const Lease lease = bench_.acquire(kRows);
  ASSERT_TRUE(bench_.prepare_row(lease, "op-1", "paid", "1").ok());
  expect_refused(bench_.commit("op-1", lease), "approval_required");
  expect_refused(bench_.commit("op-none", lease), "not_found");
  EXPECT_EQ(state("op-1"), "prepared");
  ASSERT_TRUE(bench_.approve("op-1").ok());
  EXPECT_TRUE(bench_.commit("op-1", lease).ok());
}

TEST_F(Act, ThatWasConsumedIsNeverCarriedOutAgain) {
  const Lease lease = approved("op-1");
  const Answer first = bench_.commit("op-1", lease);
  ASSERT_TRUE(first.ok());
  for (int again = 0; again < 3; ++again) {
    const Answer replay = bench_.commit("op-1", lease);
    EXPECT_EQ(replay.code(), "act_consumed");
    EXPECT_EQ(details_of(replay)["outcome"], first.at("outcome"));
  }
  EXPECT_EQ(bench_.approve("op-1").code(), "act_consumed");
  // Not for a later tenancy either, and not where the row would take it.
  bench_.sql("UPDATE accounts SET state='new',version=1 WHERE id=7");
  bench_.release(lease);
  expect_refused(bench_.commit("op-1", bench_.acquire(kRows, "bob")), "act_consumed");
}

TEST_F(Act, AnOperationIdNamesOneActOnly) {
  const Lease lease = bench_.acquire(kRows);
  const Answer first = bench_.prepare_row(lease, "op-1", "paid", "1");
  EXPECT_EQ(bench_.prepare_row(lease, "op-1", "paid", "1").at("act"), first.at("act")) << "the same again is the same";
  EXPECT_EQ(bench_.prepare_row(lease, "op-1", "late", "1").code(), "operation_id_reused");
  EXPECT_EQ(bench_.prepare_row(lease, "op-1", "paid", "2").code(), "operation_id_reused");
  const Lease file = bench_.acquire("a.txt");
  EXPECT_EQ(bench_.prepare_file(file, "op-1", "x").code(), "operation_id_reused");
  EXPECT_EQ(bench_.act("op-1")["command"], first.at("act")["command"]);
  // One that a queue used at the receiver already.
  bench_.receive(bench_.issue(lease, RowBench::change("sent", "1") + Words{"--operation-id", "op-2"}));
  ASSERT_EQ(bench_.row(), "sent 2");
  ASSERT_TRUE(bench_.prepare_row(lease, "op-2", "paid", "2").ok());
  ASSERT_TRUE(bench_.approve("op-2").ok());
  EXPECT_EQ(bench_.commit("op-2", lease).code(), "operation_id_reused");
  EXPECT_EQ(bench_.row(), "sent 2");
}

TEST_F(Act, PreparedUnderAnotherTenancyIsRefusedAfterEveryWayThatOneEnds) {
  struct Way {
    const char* name;
    std::function<Lease(const Lease&)> end;  // and the tenancy after it
    const char* by_old;                      // what the old holder is answered
  };
  const auto again = [&](const Words& more = {}) { return bench_.acquire(kRows, "alice", more); };
  const std::vector<Way> ways = {
      {"regrant", [&](const Lease&) { return again({"--fresh"}); }, "stale_lease_generation"},
      {"release", [&](const Lease& old) { return bench_.release(old), again(); }, "stale_lease_generation"},
      {"takeover", [&](const Lease& old) { return bench_.release(old), bench_.acquire(kRows, "bob"); },
       "stale_lease_generation"},
      {"epoch",
       [&](const Lease&) {
         EXPECT_TRUE(bench_.run({"epoch", "advance", "--reason", "drill"}).ok());
         return Lease{};
       },
       "control_epoch_revoked"}};
  for (const Way& way : ways) {
    const std::string id = std::string("op-") + way.name;
    const Lease old = approved(id);
    const Lease now = way.end(old);
    expect_refused(bench_.commit(id, old), way.by_old);
    if (!now.record.is_null()) {
      const Answer borrowed = bench_.commit(id, now);
      expect_refused(borrowed, "stale_lease_generation");
      EXPECT_EQ(details_of(borrowed)["expected"], old.record["generation"]) << way.name;
      bench_.release(now);
    }
    EXPECT_EQ(state(id), "approved");
  }
}

TEST_F(Act, WhoseLeaseRanOutIsRefusedWhetherOrNotSomebodyTookOver) {
  const Lease old = approved("op-1", {"--ttl", "1s"});
  ASSERT_TRUE(eventually([&] { return bench_.run({"leases"}).at("leases").empty(); }));
  expect_refused(bench_.commit("op-1", old), "lease_expired");
  const Lease bob = bench_.acquire(kRows, "bob");
  expect_refused(bench_.commit("op-1", old), "stale_lease_generation");
  expect_refused(bench_.commit("op-1", bob), "stale_lease_generation");
}

TEST_F(Act, IsBoundToOwnerAndTaskAndNotToItsGenerationAlone) {
  const Lease lease = approved("op-1");
  for (const char* key : {"owner", "task_id", "started_at"}) {
    Lease forged = lease;
    forged.record[key] = "2001-01-01T00:00:00.000000Z";
    expect_refused(bench_.commit("op-1", forged), "stale_lease_generation");
  }
  const Lease file = bench_.acquire("a.txt");
  expect_refused(bench_.commit("op-1", file), "stale_lease_generation");
  EXPECT_TRUE(bench_.commit("op-1", lease).ok());
}

TEST_F(Act, WhoseFileWasTamperedWithAfterApprovalIsRefused) {
  const Lease lease = approved("op-1");
  const std::string path = bench_.act_path("op-1");
  const std::string whole = bench_.get(path);
  for (const char* member :
       {"generation", "precondition", "payload_sha256", "owner", "resource", "consequence_class"}) {
    Json act = *parse_json(whole);
    act["command"][member] = "2";
    bench_.put(path, act.dump());
    const Answer refused = bench_.commit("op-1", lease);
    EXPECT_EQ(refused.code(), "act_mismatch") << member << refused.text;
    EXPECT_EQ(bench_.approve("op-1").code(), "act_mismatch") << member;
    EXPECT_EQ(bench_.row(), "new 1") << member;
  }
  Json unapproved = *parse_json(whole);
  unapproved["approval"] = nullptr;
  bench_.put(path, unapproved.dump());
  expect_refused(bench_.commit("op-1", lease), "approval_required");
  for (const std::string& broken : {std::string(), std::string("{"), std::string("[]"), std::string(R"({"command":1})"),
                                    std::string(R"({"protocol":"holdfast.act.1","command":{"operation_id":"x"}})")}) {
    bench_.put(path, broken);
    expect_refused(bench_.commit("op-1", lease), "state_unreadable");
  }
  bench_.put(path, whole);
  EXPECT_TRUE(bench_.commit("op-1", lease).ok());
}

// The bytes that are delivered are those that the command names, whatever the act's file says of them beside it.
TEST_F(Act, WhoseBytesWereExchangedIsRefused) {
  const Lease lease = approved("op-1");
  ASSERT_TRUE(bench_.prepare_row(lease, "op-other", "stolen", "1").ok());
  Json act = *parse_json(bench_.get(bench_.act_path("op-1")));
  act["payload_sha256"] = bench_.act("op-other")["payload_sha256"];
  bench_.put(bench_.act_path("op-1"), act.dump());
  expect_refused(bench_.commit("op-1", lease), "content_corrupted_in_transit");
}

TEST_F(Act, WhoseBytesTheVaultLostOrHasOthersOfIsRefused) {
  const Lease lease = approved("op-1");
  const std::string kept = ".squad/vault/primary/" + text_member(bench_.act("op-1"), "payload_sha256");
  const std::string bytes = bench_.get(kept);
  ASSERT_FALSE(bytes.empty());
  std::filesystem::rename(bench_.at(kept), bench_.at("aside"));
  expect_refused(bench_.commit("op-1", lease), "vault_entry_missing");
  bench_.put(kept, std::string(bytes.size(), 'x'));
  expect_refused(bench_.commit("op-1", lease), "vault_entry_corrupt");
  std::filesystem::rename(bench_.at("aside"), bench_.at(kept));
  EXPECT_TRUE(bench_.commit("op-1", lease).ok());
  EXPECT_EQ(bench_.row(), "paid 2");
}

TEST_F(Act, NeverChangesWhatGovernsItsTask) {
  bench_.put("spec.md", "the law");
  ASSERT_TRUE(bench_.run({"task", "set", "task-1", "--source", "spec.md", "--source", kRows}).ok());
  EXPECT_EQ(bench_.prepare_file(bench_.acquire("spec.md"), "op-f", "mine").code(), "governing_source_is_destination");
  expect_refused(bench_.prepare_row(bench_.acquire(kRows), "op-r", "paid", "1"), "governing_source_is_destination");
  ASSERT_TRUE(bench_.run({"task", "set", "task-1"}).ok());
  // What came to govern it after the approval counts as well.
  const Lease lease = approved("op-late");
  const Lease spec = bench_.acquire("spec.md");
  ASSERT_TRUE(bench_.prepare_file(spec, "op-spec", "mine").ok());
  ASSERT_TRUE(bench_.approve("op-spec").ok());
  ASSERT_TRUE(bench_.run({"task", "set", "task-1", "--source", kRows, "--source", "spec.md"}).ok());
  expect_refused(bench_.commit("op-late", lease), "governing_source_is_destination");
  EXPECT_EQ(bench_.commit("op-spec", spec).code(), "governing_source_is_destination");
  EXPECT_EQ(bench_.get("spec.md"), "the law");
  EXPECT_EQ(state("op-late"), "approved");
}

TEST_F(Act, ThatItsReceiverCouldNotReadIsRefusedBeforeAnybodyApprovesIt) {
  const Lease lease = bench_.acquire(kRows);
  const auto prepare = [&](const Words& more, const std::string& input = "") {
    return bench_.run(Words{"act", "prepare", kRows} + lease.keys() + more, input);
  };
  for (const Words& change : {Words{"--key", "id=integer:7", "--set", "id=integer:8"},
                              {"--key", "id=integer:7", "--set", "version=integer:8"},
                              {"--key", "name=text:x", "--set", "state=text:x"},
                              {"--key", "id=null", "--set", "state=text:x"},
                              {"--key", "id=integer:seven", "--set", "state=text:x"}}) {
    EXPECT_EQ(prepare(change + Words{"--precondition", "1"}).code(), "request_malformed")
        << testing::PrintToString(change);
  }
  const Words good = {"--key", "id=integer:7", "--set", "state=text:x"};
  EXPECT_EQ(prepare({"--key", "id=integer:7", "--precondition", "1"}).code(), "usage") << "it sets nothing";
  EXPECT_EQ(prepare(good).code(), "usage") << "a row's version is known to its planner only";
  EXPECT_EQ(prepare(good + Words{"--precondition", "one"}).code(), "request_malformed");
  EXPECT_EQ(prepare({"--from", "-", "--precondition", "1"}, "no JSON").code(), "request_malformed");
  EXPECT_TRUE(bench_.run({"act", "list"}).at("acts").empty());
}

TEST_F(Act, ForAReceiverThatRunsProgramsOrForNoneIsRefused) {
  const Lease deploy = bench_.acquire(kDeploy);
  const Lease nowhere = bench_.acquire("session://nowhere");
  for (const auto& [lease, code] : {std::pair{deploy, "usage"}, {nowhere, "not_found"}}) {
    EXPECT_EQ(bench_.prepare_file(lease, "op-1", "x", {"--precondition", "1"}).code(), code) << lease.scope;
  }
  EXPECT_TRUE(bench_.run({"act", "list"}).at("acts").empty());
}

// A crash between effect and record is closed by committing again, and nothing is done twice.
TEST_F(Act, WhoseCommitWasCutIsClosedByCommittingAgain) {
  const Lease lease = approved("op-1");
  bench_.kill_server();
  for (const char* at : {"act_before_effect", "act_after_effect"}) {
    bench_.serve({{"HOLDFAST_FAULT", std::string(at) + ":kill"}});
    EXPECT_NE(bench_.commit("op-1", lease).status, 0) << at;
    bench_.wait_for_server();
  }
  bench_.serve();
  EXPECT_EQ(bench_.row(), "paid 2") << "the effect of the second attempt";
  EXPECT_EQ(state("op-1"), "committing");
  // Even after its tenancy: the receiver tells.
  const Lease bob = [&] { return bench_.release(lease), bench_.acquire(kRows, "bob"); }();
  const Answer closed = bench_.commit("op-1", bob);
  ASSERT_TRUE(closed.ok()) << closed.text;
  EXPECT_EQ(closed.at("outcome")["repeated"], true);
  EXPECT_EQ(bench_.row(), "paid 2");
  EXPECT_EQ(bench_.commit("op-1", bob).code(), "act_consumed");
}

// The same where there was no effect: the receiver's "no" ends the attempt, and nothing stays open for ever.
TEST_F(Act, WhoseCommitWasCutBeforeItsEffectIsEndedByTheReceiversNo) {
  const Lease lease = approved("op-1");
  bench_.kill_server();
  bench_.serve({{"HOLDFAST_FAULT", "act_before_effect:kill"}});
  EXPECT_NE(bench_.commit("op-1", lease).status, 0);
  bench_.wait_for_server();
  bench_.serve();
  EXPECT_EQ(state("op-1"), "committing");
  bench_.release(lease);
  const Lease bob = bench_.acquire(kRows, "bob");
  expect_refused(bench_.commit("op-1", bob), "stale_lease_generation");
  EXPECT_EQ(state("op-1"), "approved");
  expect_refused(bench_.commit("op-1", bob), "stale_lease_generation");
}

TEST_F(Act, WhoseWordsAreNoneIsAFaultOfUse) {
  const Lease lease = bench_.acquire(kRows);
  const Words row = RowBench::change("paid", "1");
  const std::vector<Words> wrong = {
      {"act", "prepare", kRows},
      Words{"act", "prepare", kRows} + row,
      Words{"act", "prepare"} + lease.keys() + row,
      Words{"act", "prepare", kRows} + lease.keys(),
      Words{"act", "prepare", kRows} + lease.keys() + row + Words{"--from", "-"},
      Words{"act", "prepare", kRows} + lease.keys() + row + Words{"--operation-id", "a\tb"},
      {"act", "approve"},
      {"act", "approve", "op-1", "--act", bench_.at("absent.json")},
      {"act", "commit", "op-1"},
      Words{"act", "commit"} + lease.keys(),
      {"act", "show"},
      {"result", "grant", "op-1"},
      {"result", "grant", "op-1", "--to-task", "t"},
      {"result", "grant", "--to-task", "t", "--reason", "r"},
      Words{"result", "get", "op-1"} + lease.keys(),
      {"result", "get", "op-1", "--scope", kRows},
      {"handoff", "open", kRows},
      {"handoff", "open", "--reason", "r"},
      {"handoff", "close", kRows},
      {"handoff", "close", kRows, "--reason", "r", "--accept"}};
  for (const Words& words : wrong) {
    const Answer answer = bench_.run(words);
    EXPECT_FALSE(answer.code().empty()) << testing::PrintToString(words);
    const bool is_file = answer.code() == "content_unreadable" || answer.code() == "file_unreadable";
    EXPECT_EQ(answer.status, is_file ? 5 : 2) << testing::PrintToString(words) << answer.text;
  }
  EXPECT_TRUE(bench_.run({"act", "list"}).at("acts").empty());
}

TEST_F(Act, CarriesNoMoreThanItsBoundAndTakesAnyBytesUpToIt) {
  const Lease lease = bench_.acquire("a.bin");
  std::string bytes(3'000'000, '\0');
  for (std::size_t at = 0; at < bytes.size(); ++at) bytes[at] = static_cast<char>(at * 31U);
  ASSERT_TRUE(bench_.prepare_file(lease, "op-1", bytes).ok());
  EXPECT_EQ(bench_.act("op-1")["byte_count"], bytes.size());
  ASSERT_TRUE(bench_.approve("op-1").ok());
  ASSERT_TRUE(bench_.commit("op-1", lease).ok());
  EXPECT_TRUE(bench_.get("a.bin") == bytes);
  bench_.put("big", std::string((16U << 20U) + 1, 'x'));
  EXPECT_EQ(bench_.run(Words{"act", "prepare", "a.bin"} + lease.keys() + Words{"--from", bench_.at("big")}).code(),
            "content_unreadable");
}

TEST_F(Act, WithNoBytesIsAnActOnAnEmptyFile) {
  bench_.put("a.txt", "old");
  bench_.put("empty", "");
  const Lease lease = bench_.acquire("a.txt");
  const Answer prepared = bench_.run(Words{"act", "prepare", "a.txt"} + lease.keys() +
                                     Words{"--from", bench_.at("empty"), "--operation-id", "op-1"});
  ASSERT_TRUE(prepared.ok()) << prepared.text;
  Json shown = bench_.act("op-1");
  for (const Json& wrong : {Json(5), Json("eA=="), Json(nullptr), Json(Json::array())}) {
    shown["payload_base64"] = wrong;
    EXPECT_EQ(bench_.with_act({"act", "approve", "op-1"}, shown).code(), "act_mismatch") << wrong;
  }
  shown["payload_base64"] = "";
  EXPECT_TRUE(bench_.with_act({"act", "approve", "op-1"}, shown).ok());
  EXPECT_TRUE(bench_.commit("op-1", lease).ok());
  EXPECT_EQ(bench_.get("a.txt"), "");
}

}  // namespace
}  // namespace holdfast
