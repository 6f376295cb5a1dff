// Handoffs of a folder with leases inside it, and what a person sees of a handoff.
#include <gtest/gtest.h>

#include <filesystem>

#include "support/handoff_bench.h"

namespace holdfast {
namespace {

using support::Child;
using support::kRows;
using support::Lease;
using support::RowBench;
using support::Words;
using support::operator+;

class NestedHandoff : public support::HandoffBench {
 protected:
  NestedHandoff() {
    std::filesystem::create_directory(bench_.at("dir"));
    bench_.put("dir/a.txt", "old");
    outer_ = bench_.acquire("dir");
    inner_ = bench_.acquire("dir/a.txt");
  }
  Lease outer_;
  Lease inner_;
};

TEST_F(NestedHandoff, HasTheInnerLeaseInTheWayThoughItsGenerationIsTheNewer) {
  ASSERT_GT(inner_.generation(), outer_.generation());
  ASSERT_TRUE(open("dir").ok());
  stays_open("dir", {"lease_held", "lease_held", "no_new_owner"});
  bench_.release(inner_);
  stays_open("dir", {"lease_held", "no_new_owner"});
  taken_over(outer_, "dir");
  closes("dir");
}

TEST_F(NestedHandoff, HasAProgramOfTheInnerLeaseInTheWayUntilItEnds) {
  const auto program = running(inner_, "op-inner");
  ASSERT_TRUE(open("dir").ok());
  bench_.release(inner_);
  taken_over(outer_, "dir");
  stays_open("dir", {"command_unclassified"});
  EXPECT_TRUE(status("dir")["first_accepted_generation"].is_null()) << "the old owner's is nobody else's first";
  program->close_input();
  program->wait();
  closes("dir");
}

TEST_F(NestedHandoff, HasAnActOfTheInnerLeaseInTheWayWhileItCanBeCommitted) {
  ASSERT_TRUE(bench_.prepare_file(inner_, "op-inner", "new").ok());
  ASSERT_TRUE(bench_.approve("op-inner").ok());
  ASSERT_TRUE(open("dir").ok());
  stays_open("dir", {"lease_held", "lease_held", "no_new_owner", "act_unclassified"});
  bench_.release(inner_);
  stays_open("dir", {"lease_held", "no_new_owner"});
  const Json fenced = status("dir")["inventory"]["acts"][0];
  EXPECT_EQ(fenced["classified"], "fenced: its generation has ended");
  taken_over(outer_, "dir");
  closes("dir");
  EXPECT_EQ(bench_.get("dir/a.txt"), "old");
}

class HandoffPrinted : public support::HandoffBench {
 protected:
  std::string printed(const Words& words) {
    Child child = support::spawn(Words{HOLDFAST_PROGRAM, "--workspace", bench_.root()} + words,
                                 {.folder = {}, .environment = {}, .stderr_to_stdout = true});
    child.close_input();
    std::string text = child.read_all();
    child.wait();
    return text;
  }
  static void has(const std::string& text, const std::vector<std::string>& parts) {
    for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << " in:\n" << text;
  }
};

TEST_F(HandoffPrinted, SaysAtAGlanceWhetherItMayBeClosedAndWhatClosesEachThing) {
  EXPECT_EQ(printed({"handoff", "status"}), "no handoff was opened\n");
  const Lease old = bench_.acquire(kRows);
  const std::string line = bench_.issue(old, RowBench::change("late", "1") + Words{"--operation-id", "op-late"});
  ASSERT_TRUE(open(kRows, {"--reconciliation-owner", "ada"}).ok());
  has(printed({"handoff", "status"}),
      {"session://sqlite.records/accounts  OPEN: 4 things stand in the way", "from", "alice, task task-1, generation 1",
       "still holds it", "to", "nobody yet", "first accepted", "nothing yet", "accounts NOT fenced",
       "1 lease, 1 command", "ada", "  1. alice still holds", "     closed by its release"});
  has(printed({"handoff", "close", kRows, "--reason", "r"}),
      {"refused: transition_open: 4 things stand in the way", "  - alice still holds", "    closed by its release",
       "  - command op-late is on its way"});
  taken_over(old, kRows);
  has(printed({"handoff", "status", kRows}),
      {"OPEN, and can be closed", "ended by release", "bob, task task-1, generation 2, ready", "accounts fenced"});
  bench_.receive(line);
  has(printed({"handoff", "status"}), {"ended by release; refused since (ev-"});
  const std::string closed = printed({"handoff", "close", kRows, "--reason", "r"});
  has(closed, {"session://sqlite.records/accounts  closed at "});
  EXPECT_EQ(closed.find("in the way"), std::string::npos);
  for (std::size_t begin = 0, end = 0; (end = closed.find('\n', begin)) != std::string::npos; begin = end + 1) {
    EXPECT_LE(end - begin, 80U) << closed.substr(begin, end - begin);
  }
}

}  // namespace
}  // namespace holdfast
