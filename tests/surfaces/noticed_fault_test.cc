// What somebody did to a leased file past the lease, noticed by the watch or by the next act: a record to decide on,
// like a fault of a replacement (CONTRACT section 4), and every way on from it. Nothing of either side is lost.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/digest.h"
#include "support/workbench.h"

namespace holdfast {
namespace {

using support::Answer;
using support::Lease;
using support::operator+;
using support::Words;
using support::Workbench;

class NoticedFault : public testing::Test {
 protected:
  NoticedFault() {
    bench_.put("a.txt", "before");
    bench_.serve();
    lease_ = bench_.acquire("a.txt");
  }

  // `sed -i`, `mv`, an editor: another object takes the name, which no read lease stops.
  void replaced_by_a_stranger() {
    bench_.put("stranger", "foreign");
    std::filesystem::rename(bench_.at("stranger"), bench_.at("a.txt"));
  }

  Json open_record() const {
    for (int tries = 0; tries < 200; ++tries) {
      const Answer listed = bench_.run({"reconcile", "list"});
      const Json records = listed.at("reconcile");
      if (!records.empty()) return records.front();
    }
    return Json::object();
  }

  bool is_in_quarantine(const std::string& bytes) const {
    const Json listed = bench_.run({"quarantine", "list"}).at("quarantine");
    for (const Json& entry : listed) {
      if (entry["sha256"] == sha256_hex(bytes)) return true;
    }
    return false;
  }

  Workbench bench_;
  Lease lease_;
};

TEST_F(NoticedFault, IsARecordBeforeAnybodyActsOnTheScope) {
  replaced_by_a_stranger();
  const Json record = open_record();
  EXPECT_EQ(record["fault"], "destination_identity_changed") << record;
  EXPECT_EQ(record["rename_completed"], false);
  EXPECT_EQ(record["preimage_sha256"], sha256_hex("before"));
  EXPECT_NE(record["reconcile_by"].get<std::string>(), "");
}

TEST_F(NoticedFault, RefusesEveryWriteUntilItIsDecided) {
  replaced_by_a_stranger();
  for (int times = 0; times < 2; ++times) {
    const Answer refused = bench_.write(lease_, "mine");
    EXPECT_EQ(refused.code(), "reconciliation_required") << refused.text;
    EXPECT_EQ(refused.status, 4);
    EXPECT_EQ(refused.at("error").at("effect"), "none");
    EXPECT_EQ(refused.at("error").at("details").at("reconcile").at("fault"), "destination_identity_changed");
  }
  EXPECT_EQ(bench_.get("a.txt"), "foreign");
}

TEST_F(NoticedFault, RestoringPutsBackWhatWasHeldAndKeepsWhatTookItsPlace) {
  ASSERT_TRUE(bench_.write(lease_, "written under the lease").ok());
  replaced_by_a_stranger();
  const std::string id = open_record().value("id", "");
  const Answer restored = bench_.run(Words{"reconcile", "resolve", id, "--restore"} + lease_.keys());
  ASSERT_TRUE(restored.ok()) << restored.text;
  EXPECT_EQ(bench_.get("a.txt"), "written under the lease");
  EXPECT_TRUE(is_in_quarantine("foreign"));
  EXPECT_TRUE(bench_.write(lease_, "goes on").ok());
  const Answer released = bench_.release(lease_);
  EXPECT_EQ(released.at("content_mismatch"), false) << released.text;
  EXPECT_TRUE(bench_.evidence_verifies());
}

TEST_F(NoticedFault, AcceptingTakesWhatIsThereAsTheBaseline) {
  replaced_by_a_stranger();
  const std::string id = open_record().value("id", "");
  ASSERT_TRUE(bench_.run({"reconcile", "resolve", id, "--accept", "--reason", "it is right"}).ok());
  const Answer written = bench_.write(lease_, "on top", {"--preimage", sha256_hex("foreign")});
  EXPECT_TRUE(written.ok()) << written.text;
  EXPECT_EQ(bench_.release(lease_).at("content_mismatch"), false);
}

TEST_F(NoticedFault, TheEndOfTheTenancyIsADecisionAndKeepsTheBytes) {
  replaced_by_a_stranger();
  const std::string id = open_record().value("id", "");
  const Answer released = bench_.release(lease_);
  EXPECT_EQ(released.at("content_mismatch"), true);
  EXPECT_TRUE(is_in_quarantine("foreign"));
  EXPECT_TRUE(bench_.run({"reconcile", "list"}).at("reconcile").empty());
  EXPECT_EQ(bench_.run({"reconcile", "show", id}).at("record").at("resolution").at("decision"), "tenancy_ended");
  const Lease next = bench_.acquire("a.txt", "bob");
  EXPECT_TRUE(bench_.write(next, "bob's").ok());
}

TEST_F(NoticedFault, AnUnlinkedFileCanBeRestored) {
  std::filesystem::remove(bench_.at("a.txt"));
  const std::string id = open_record().value("id", "");
  const Answer restored = bench_.run(Words{"reconcile", "resolve", id, "--restore"} + lease_.keys());
  ASSERT_TRUE(restored.ok()) << restored.text;
  EXPECT_EQ(bench_.get("a.txt"), "before");
  EXPECT_TRUE(bench_.write(lease_, "after").ok());
}

TEST_F(NoticedFault, OutlivesTheServerThatSawIt) {
  replaced_by_a_stranger();
  const std::string id = open_record().value("id", "");
  bench_.kill_server();
  bench_.serve();
  EXPECT_EQ(open_record().value("id", ""), id);
  EXPECT_EQ(bench_.get("a.txt"), "foreign");
}

}  // namespace
}  // namespace holdfast
