// Tasks and what governs them, and the one verb that takes bytes away (CONTRACT sections 2, 4 and 8).
#include <gtest/gtest.h>

#include <filesystem>

#include "base/digest.h"
#include "base/json.h"
#include "support/workbench.h"

namespace holdfast {
namespace {

using support::Answer;
using support::Lease;
using support::Workbench;

TEST(Task, NeverWritesASourceThatGovernsIt) {
  Workbench bench;
  bench.put("spec.md", "the law");
  bench.serve();
  ASSERT_TRUE(bench.run({"task", "set", "task-1", "--source", "spec.md", "--source", "policies"}).ok());
  const Lease spec = bench.acquire("spec.md");
  const Answer refused = bench.write(spec, "mine");
  EXPECT_EQ(refused.code(), "governing_source_is_destination") << refused.text;
  EXPECT_EQ(bench.get("spec.md"), "the law");
  std::filesystem::create_directory(bench.at("policies"));
  const Lease below = bench.acquire("policies/a");
  EXPECT_EQ(bench.write(below, "x").code(), "governing_source_is_destination");
  const Answer shown = bench.run({"task", "show", "task-1"});
  EXPECT_EQ(shown.at("sources").size(), 2U);
}

TEST(Task, AnotherOneIsNotGovernedByItAndASourceCanBeTakenBack) {
  Workbench bench;
  bench.put("spec.md", "the law");
  bench.serve();
  ASSERT_TRUE(bench.run({"task", "set", "other", "--source", "spec.md"}).ok());
  const Lease lease = bench.acquire("spec.md");
  EXPECT_TRUE(bench.write(lease, "revised").ok());
  ASSERT_TRUE(bench.run({"task", "set", "task-1", "--source", "spec.md"}).ok());
  EXPECT_EQ(bench.write(lease, "again").code(), "governing_source_is_destination");
  ASSERT_TRUE(bench.run({"task", "set", "task-1"}).ok());
  EXPECT_TRUE(bench.write(lease, "again").ok());
  EXPECT_EQ(bench.run({"task", "show", "nobody"}).code(), "not_found");
}

class Prune : public testing::Test {
 protected:
  // Ungated bytes in quarantine, and the record's id.
  std::string set_aside(const std::string& name, const std::string& bytes) {
    bench_.put(name, "before");
    const Lease lease = bench_.acquire(name);
    bench_.put(name, bytes);
    return bench_.release(lease).at("quarantine_id");
  }
  bool in_vault(const std::string& bytes) const {
    return std::filesystem::exists(bench_.at(".squad/vault/amber/" + sha256_hex(bytes)));
  }
  Workbench bench_;
};

TEST_F(Prune, TakesOnlyWhatAPersonAcceptedAndKeepsItsDigest) {
  const std::string accepted = set_aside("a", "foreign a");
  const std::string waiting = set_aside("b", "foreign b");
  EXPECT_EQ(bench_.run({"reconcile", "resolve", accepted, "--accept"}).code(), "usage") << "a reason is needed";
  ASSERT_TRUE(bench_.run({"reconcile", "resolve", accepted, "--accept", "--reason", "looked at"}).ok());
  const Answer pruned = bench_.run({"vault", "prune", "--reason", "room"});
  ASSERT_TRUE(pruned.ok()) << pruned.text;
  EXPECT_EQ(pruned.at("pruned").size(), 1U);
  EXPECT_FALSE(in_vault("foreign a"));
  EXPECT_TRUE(in_vault("foreign b"));
  EXPECT_EQ(bench_.run({"quarantine", "show", accepted}).at("sha256"), sha256_hex("foreign a"));
  EXPECT_EQ(bench_.run({"quarantine", "export", accepted, "--to", "-"}).code(), "vault_entry_missing");
  EXPECT_TRUE(bench_.run({"quarantine", "export", waiting, "--to", bench_.at("out")}).ok());
  EXPECT_NE(bench_.log().find(sha256_hex("foreign a")), std::string::npos);
  EXPECT_TRUE(bench_.evidence_verifies());
}

TEST_F(Prune, KeepsBytesThatAnotherRecordStillNeeds) {
  const std::string one = set_aside("a", "the same bytes");
  set_aside("b", "the same bytes");
  ASSERT_TRUE(bench_.run({"reconcile", "resolve", one, "--accept", "--reason", "looked at"}).ok());
  EXPECT_TRUE(bench_.run({"vault", "prune", "--reason", "room"}).at("pruned").empty());
  EXPECT_TRUE(in_vault("the same bytes"));
}

}  // namespace
}  // namespace holdfast
