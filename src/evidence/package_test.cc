#include "evidence/package.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/digest.h"
#include "base/json.h"
#include "evidence/chain.h"
#include "evidence/decision.h"
#include "os/fake/control_folder.h"
#include "support/refused_with.h"
#include "support/temporary_folder.h"

namespace holdfast::evidence {
namespace {

using support::granted;
using support::refused_with;
using support::TemporaryFolder;
using Verdict = Recomputed::Verdict;

Json inputs_of(const Json& changes = Json::object()) {
  Json inputs = {{"presented_generation", "14"},
                 {"current_generation", "14"},
                 {"presented_owner", "a"},
                 {"current_owner", "a"},
                 {"presented_started_at", "t1"},
                 {"current_started_at", "t1"},
                 {"presented_task", "x"},
                 {"current_task", "x"},
                 {"expired", false},
                 {"revoked", false}};
  inputs.update(changes);
  return inputs;
}

Json decision_of(const std::string& decision, const Json& changes = Json::object()) {
  return {{"decision", decision}, {"inputs", inputs_of(changes)}};
}

std::string log_text() {
  os::FakeControlFolder files;
  Chain chain(files);
  for (int number = 0; number < 3; ++number) {
    Event event;
    event.kind = "refused";
    event.facts = {{"code", "stale_lease_generation"}};
    EXPECT_TRUE(granted(chain.append({event}, Instant{1, 2, "boot"})));
  }
  return files.read("evidence/log-000001.jsonl").value().value();
}

class PackageTest : public testing::Test {
 protected:
  TemporaryFolder place;
  const std::string folder = place.at("package");
  std::map<std::string, std::string> contents = {
      {"log-000001.jsonl", log_text()},
      {"decisions.json",
       dump_canonical(Json::array({decision_of("stale_lease_generation", {{"current_generation", "15"}}),
                                   decision_of("accepted"), decision_of("lease_scope_conflict")}))},
      {"steps.json", "[]"}};
  const Json facts = {{"made_at", "2026-10-31T18:00:00Z"}, {"unknown", Json::array({"what the network did"})}};

  void write() { ASSERT_TRUE(granted(write_package(folder, {contents, facts}))); }
  std::string problem() {
    const auto found = verify_package(folder);
    EXPECT_TRUE(refused_with(found, Code::evidence_chain_broken));
    return found.ok() ? "" : found.refusal().details()["first_break"]["file"].get<std::string>();
  }
};

TEST_F(PackageTest, VerifiesAsItWasWritten) {
  write();
  const auto found = verify_package(folder);
  ASSERT_TRUE(granted(found));
  EXPECT_EQ(found.value()["verified"], true);
  EXPECT_EQ(found.value()["chain"]["events"], 3);
  EXPECT_EQ(found.value()["decisions"]["recomputed"], 2);
  ASSERT_EQ(found.value()["unknown"].size(), 2U);
  EXPECT_EQ(found.value()["unknown"][0], "what the network did");
  EXPECT_NE(found.value()["unknown"][1].get<std::string>().find("lease_scope_conflict"), std::string::npos);
}

TEST_F(PackageTest, IsCheckedBySha256sumToo) {
  write();
  EXPECT_EQ(place.read("package/manifest.sha256"),
            sha256_hex(place.read("package/manifest.json")) + "  manifest.json\n");
  const Json manifest = *parse_json(place.read("package/manifest.json"));
  EXPECT_EQ(manifest["protocol"], "holdfast.package.1");
  EXPECT_EQ(manifest["files"]["steps.json"], sha256_hex("[]"));
}

TEST_F(PackageTest, FindsEveryChangedByteInEveryFile) {
  write();
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = "package/" + entry.path().filename().string();
    const std::string good = place.read(name);
    for (std::size_t at = 0; at<good.size(); at += good.size()> 600 ? 7 : 1) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ 1);
      place.write(name, bad);
      EXPECT_FALSE(verify_package(folder).ok()) << name << " byte " << at;
    }
    place.write(name, good);
  }
  EXPECT_TRUE(granted(verify_package(folder)));
}

TEST_F(PackageTest, FindsAMissingAnExtraAndAForeignFile) {
  write();
  place.write("package/extra.txt", "x");
  EXPECT_EQ(problem(), "extra.txt");
  std::filesystem::remove(place.at("package/extra.txt"));
  place.link("/etc/passwd", "package/link");
  EXPECT_EQ(problem(), "link");
  std::filesystem::remove(place.at("package/link"));
  place.make_folder("package/folder");
  EXPECT_EQ(problem(), "folder");
  std::filesystem::remove(place.at("package/folder"));
  std::filesystem::remove(place.at("package/steps.json"));
  EXPECT_EQ(problem(), "steps.json");
}

TEST_F(PackageTest, FindsALinkInTheStatedFilesPlace) {
  write();
  place.write("same", "[]");
  std::filesystem::remove(place.at("package/steps.json"));
  place.link(place.at("same"), "package/steps.json");
  EXPECT_EQ(problem(), "steps.json");
}

TEST_F(PackageTest, FindsAMissingManifest) {
  write();
  std::filesystem::remove(place.at("package/manifest.sha256"));
  EXPECT_EQ(problem(), "manifest.json");
  std::filesystem::remove(place.at("package/manifest.json"));
  EXPECT_EQ(problem(), "manifest.json");
  EXPECT_TRUE(refused_with(verify_package(place.at("nothing")), Code::not_found));
}

TEST_F(PackageTest, FindsADecisionThatDoesNotFollowFromItsInputs) {
  contents["decisions.json"] = dump_canonical(Json::array({decision_of("accepted", {{"current_owner", "b"}})}));
  write();
  EXPECT_EQ(problem(), "decisions.json");
}

TEST_F(PackageTest, FindsABrokenChainBelowRightDigests) {
  std::string& log = contents["log-000001.jsonl"];
  log[log.find("stale")] = 'S';
  write();
  EXPECT_EQ(problem(), "log-000001.jsonl");
}

TEST_F(PackageTest, ChangesNothingWhileItVerifies) {
  write();
  place.write("package/steps.json", "[1]");
  problem();
  EXPECT_EQ(place.read("package/steps.json"), "[1]");
}

TEST_F(PackageTest, IsWrittenOnlyIntoAnEmptyFolderAndUnderPlainNames) {
  write();
  EXPECT_TRUE(refused_with(write_package(folder, {contents, facts}), Code::target_exists));
  for (const char* name : {"../x", "a/b", "", ".hidden", "manifest.json", "manifest.sha256"}) {
    EXPECT_TRUE(refused_with(write_package(place.at("other"), {{{name, "x"}}, facts}), Code::request_malformed))
        << name;
  }
  EXPECT_FALSE(place.exists("other"));
  EXPECT_FALSE(place.exists("x"));
}

TEST_F(PackageTest, NeverTrustsANameInAManifest) {
  write();
  place.write("outside", "x");
  Json manifest = *parse_json(place.read("package/manifest.json"));
  manifest["files"]["../outside"] = sha256_hex("x");
  const std::string text = dump_canonical(manifest);
  place.write("package/manifest.json", text);
  place.write("package/manifest.sha256", sha256_hex(text) + "  manifest.json\n");
  EXPECT_EQ(problem(), "manifest.json");
}

std::string decided_log(const Json& decision) {
  os::FakeControlFolder files;
  Chain chain(files);
  Event event;
  event.kind = "command_refused";
  event.facts = decision;
  EXPECT_TRUE(granted(chain.append({event}, Instant{1, 2, "boot"})));
  return files.read("evidence/log-000001.jsonl").value().value();
}

TEST_F(PackageTest, RecomputesTheDecisionsThatStandInTheChain) {
  contents["log-000001.jsonl"] = decided_log(decision_of("stale_lease_generation", {{"current_generation", "15"}}));
  write();
  EXPECT_EQ(verify_package(folder).value()["decisions"]["in_chain"], 1);
  contents["log-000001.jsonl"] = decided_log(decision_of("stale_lease_generation"));
  ASSERT_TRUE(granted(write_package(place.at("wrong"), {contents, facts})));
  const auto found = verify_package(place.at("wrong"));
  ASSERT_TRUE(refused_with(found, Code::evidence_chain_broken));
  EXPECT_EQ(found.refusal().details()["first_break"]["file"], "log-000001.jsonl");
}

TEST_F(PackageTest, FindsADecisionThatItsOwnEventContradicts) {
  const Json stale = decision_of("stale_lease_generation", {{"current_generation", "15"}});
  contents["log-000001.jsonl"] = decided_log(stale);
  const auto event = parse_json(contents["log-000001.jsonl"]);
  Json accepted = decision_of("accepted");
  accepted["evidence"] = (*event)["id"];
  contents["decisions.json"] = dump_canonical(Json::array({accepted}));
  write();
  EXPECT_EQ(problem(), "decisions.json");
}

TEST_F(PackageTest, VerifiesItsPartsAndThatTheyAreItsOwn) {
  const Package part{contents, facts};
  ASSERT_TRUE(granted(write_package(folder, {{{"notes.txt", "x"}}, facts, {{"one", part}, {"two", part}}})));
  const auto found = verify_package(folder);
  ASSERT_TRUE(granted(found));
  EXPECT_EQ(found.value()["parts"]["two"]["chain"]["events"], 3);
  EXPECT_EQ(found.value()["unknown"].size(), 5U) << "its own, and each part's with its name";

  place.write("package/one/steps.json", "[1]");
  EXPECT_EQ(problem(), "one/steps.json");
  place.write("package/one/steps.json", "[]");
  // A part that verifies by itself, but is not the one that was put there.
  std::filesystem::remove_all(place.at("package/one"));
  ASSERT_TRUE(granted(write_package(place.at("package/one"), {{{"steps.json", "[2]"}}, facts})));
  EXPECT_EQ(problem(), "one/manifest.json");
  std::filesystem::remove_all(place.at("package/one"));
  EXPECT_EQ(problem(), "one");
}

TEST_F(PackageTest, TakesNoPartsByNamesThatLeadElsewhereOrWithoutAnEnd) {
  EXPECT_TRUE(refused_with(write_package(folder, {{}, facts, {{"../x", {}}}}), Code::request_malformed));
  EXPECT_TRUE(refused_with(write_package(folder, {{{"one", "x"}}, facts, {{"one", {}}}}), Code::request_malformed));
  EXPECT_FALSE(place.exists("package"));
  Package nested;
  for (int depth = 0; depth < 5; ++depth) nested = Package{{}, Json::object(), {{"part", nested}}};
  ASSERT_TRUE(granted(write_package(folder, nested)));
  EXPECT_TRUE(refused_with(verify_package(folder), Code::evidence_chain_broken));
}

TEST(Decision, FollowsFromWhatWasAppliedBefore) {
  const Json operation = {{"resource", "session://a"}, {"payload_sha256", "1"}};
  const Json inputs = {{"receiver_mark", "15"}, {"presented_operation", operation}, {"applied_operation", operation}};
  EXPECT_EQ(recompute(decision_of("repeated", inputs)).verdict, Verdict::agrees)
      << "below the mark, and still repeated";
  EXPECT_EQ(recompute(decision_of("accepted", inputs)).verdict, Verdict::differs);
  Json other = inputs;
  other["applied_operation"]["payload_sha256"] = "2";
  EXPECT_EQ(recompute(decision_of("operation_id_reused", other)).verdict, Verdict::agrees);
  Json started = inputs;
  started["applied_state"] = "started";
  EXPECT_EQ(recompute(decision_of("receiver_outcome_unknown", started)).verdict, Verdict::agrees);
  Json none = inputs;
  none["applied_operation"] = nullptr;
  EXPECT_EQ(recompute(decision_of("stale_lease_generation", none)).verdict, Verdict::agrees);
}

TEST(Decision, FollowsFromTheIssuerAndFromTheEffect) {
  const Json issuer = {{"expected_issuer", "one"}, {"presented_issuer", "two"}};
  EXPECT_EQ(recompute(decision_of("generation_incomparable", issuer)).verdict, Verdict::agrees);
  const Json changed = {{"effect", {{"expected", "1"}, {"current", "2"}}}};
  EXPECT_EQ(recompute(decision_of("record_version_changed", changed)).verdict, Verdict::agrees);
  EXPECT_EQ(recompute(decision_of("record_missing", {{"effect", {{"key", 1}}}})).verdict, Verdict::agrees);
  EXPECT_EQ(recompute(decision_of("record_missing", changed)).verdict, Verdict::differs);
}

TEST(Decision, FollowsFromTheKeysThenTheEpochThenTheDeadline) {
  EXPECT_EQ(recompute(decision_of("accepted")).verdict, Verdict::agrees);
  EXPECT_EQ(recompute(decision_of("accepted", {{"presented_generation", 14}})).verdict, Verdict::agrees);
  for (const char* key : {"owner", "task", "started_at", "generation"}) {
    const Json change = {{"current_" + std::string(key), "other"}, {"revoked", true}, {"expired", true}};
    EXPECT_EQ(recompute(decision_of("stale_lease_generation", change)).verdict, Verdict::agrees) << key;
    EXPECT_EQ(recompute(decision_of("accepted", change)).verdict, Verdict::differs) << key;
  }
  EXPECT_EQ(recompute(decision_of("control_epoch_revoked", {{"revoked", true}, {"expired", true}})).verdict,
            Verdict::agrees);
  EXPECT_EQ(recompute(decision_of("lease_expired", {{"expired", true}})).verdict, Verdict::agrees);
  EXPECT_EQ(recompute(decision_of("lease_expired")).verdict, Verdict::differs);
  EXPECT_EQ(recompute(decision_of("stale_lease_generation", {{"current_generation", nullptr}})).verdict,
            Verdict::agrees);
  EXPECT_EQ(
      recompute(decision_of("stale_lease_generation", {{"presented_resource_id", "/a"}, {"current_resource_id", "/b"}}))
          .verdict,
      Verdict::agrees);
}

TEST(Decision, FollowsFromTheReceiversMark) {
  const Json mark = {{"receiver_mark", "14"}, {"workspace_mark", "14"}};
  EXPECT_EQ(recompute(decision_of("accepted", mark)).verdict, Verdict::agrees);
  EXPECT_EQ(recompute(decision_of("stale_lease_generation", {{"receiver_mark", "15"}})).verdict, Verdict::agrees);
  EXPECT_EQ(recompute(decision_of("receiver_high_water_missing", {{"receiver_mark", nullptr}})).verdict,
            Verdict::agrees);
  EXPECT_EQ(
      recompute(decision_of("receiver_high_water_missing", {{"receiver_mark", "3"}, {"workspace_mark", "4"}})).verdict,
      Verdict::agrees);
  EXPECT_EQ(recompute(decision_of("accepted", {{"receiver_mark", nullptr}})).verdict, Verdict::differs);
  EXPECT_EQ(recompute(decision_of("generation_incomparable", {{"receiver_mark", "1"}, {"presented_generation", "x"}}))
                .verdict,
            Verdict::agrees);
}

TEST(Decision, IsUnknownWhereItCannotBeRecomputed) {
  EXPECT_EQ(recompute(decision_of("destination_has_hard_links")).verdict, Verdict::unknown);
  EXPECT_EQ(recompute({{"decision", "accepted"}}).verdict, Verdict::unknown);
  Json incomplete = decision_of("accepted");
  incomplete["inputs"].erase("current_owner");
  EXPECT_EQ(recompute(incomplete).verdict, Verdict::unknown);
  EXPECT_EQ(recompute(decision_of("accepted", {{"expired", "no"}})).verdict, Verdict::unknown);
  EXPECT_EQ(recompute(Json::array()).verdict, Verdict::differs);
}

}  // namespace
}  // namespace holdfast::evidence
