// A child command, made by a program from the command that it was started with (second seed, step 3).
#include <gtest/gtest.h>

#include "base/json.h"
#include "support/workbench.h"

namespace holdfast {
namespace {

using support::Answer;
using support::Environment;
using support::Lease;
using support::Words;
using support::Workbench;
using support::operator+;

class Delegated : public testing::Test {
 protected:
  Delegated() {
    bench_.serve();
    EXPECT_TRUE(bench_.run({"receiver", "add", "deploy", "--kind", "command", "--resource", "session://deploy"}).ok());
    lease_ = bench_.acquire("session://deploy");
    parent_ = bench_.run(Words{"issue", "session://deploy", "--from", "-"} + lease_.keys(), "whole job").document;
  }
  Environment of_parent() const { return {{"HOLDFAST_COMMAND", dump_ascii(parent_["command"])}}; }
  Answer child(const Words& more = {}) const {
    return bench_.run(Words{"delegate", "--from", "-"} + more, "one step", of_parent());
  }
  Workbench bench_;
  Lease lease_;
  Json parent_;
};

TEST_F(Delegated, CarriesItsParentsTenancyAndIdAndNoMore) {
  const Answer made = child();
  ASSERT_TRUE(made.ok()) << made.text;
  const Json& command = made.at("command");
  for (const char* same : {"owner", "task_id", "generation", "control_epoch", "issuer", "operation_family",
                           "consequence_class", "resource"}) {
    EXPECT_EQ(command[same], parent_["command"][same]) << same;
  }
  EXPECT_EQ(command["parent_operation_id"], parent_["command"]["operation_id"]);
  EXPECT_NE(command["operation_id"], parent_["command"]["operation_id"]);
  EXPECT_NE(command["payload_sha256"], parent_["command"]["payload_sha256"]);
}

TEST_F(Delegated, NeverLeavesItsParentsResource) {
  EXPECT_TRUE(child({"--resource", "session://deploy/step-1"}).ok());
  EXPECT_FALSE(child({"--resource", "session://other"}).ok());
  EXPECT_FALSE(child({"--resource", "session://deployment"}).ok());
  EXPECT_FALSE(child({"--resource", "file://project:/a.txt"}).ok());
}

TEST_F(Delegated, IsRefusedWhereItsParentsTenancyIsOver) {
  const Answer made = child();
  ASSERT_TRUE(bench_.release(lease_).ok());
  (void)bench_.acquire("session://deploy", "bob");
  const Answer late = bench_.run({"receive", "--", "cat"}, made.text);
  EXPECT_EQ(late.code(), "stale_lease_generation") << late.text;
  EXPECT_EQ(late.status, 1);
}

TEST_F(Delegated, RunsOnceUnderItsParentsTenancy) {
  const Answer made = child();
  const Answer ran = bench_.run({"receive", "--", "sh", "-c", "cat >> " + bench_.at("ran")}, made.text);
  EXPECT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(bench_.run({"receive", "--", "sh", "-c", "cat >> " + bench_.at("ran")}, made.text).status, 0);
  EXPECT_EQ(bench_.get("ran"), "one step");
}

TEST_F(Delegated, IsNotMadeWithoutAParentOrFromOneThatWasChanged) {
  EXPECT_EQ(bench_.run({"delegate", "--from", "-"}, "x").code(), "usage");
  const Environment two_answers = {{"HOLDFAST_COMMAND", dump_ascii(parent_["command"])}, {"HOLDFAST_GENERATION", "9"}};
  EXPECT_FALSE(bench_.run({"delegate", "--from", "-"}, "x", two_answers).ok());
}

}  // namespace
}  // namespace holdfast
