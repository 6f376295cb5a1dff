// A handoff of work on a bench with a row and a program: opened, kept open by exactly what is named, closed.
//
//   class Mine : public support::HandoffBench {};   TEST_F(Mine, …) { open(kRows); stays_open(kRows, {"lease_held"}); }
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "support/row_bench.h"

namespace holdfast::support {

class HandoffBench : public testing::Test {
 protected:
  Answer open(const std::string& scope, const Words& more = {}) {
    return bench_.run(Words{"handoff", "open", scope, "--reason", "night shift"} + more);
  }
  Answer close(const std::string& scope, const Words& more = {}) {
    return bench_.run(Words{"handoff", "close", scope, "--reason", "all answered"} + more);
  }
  Json status(const std::string& scope) {
    const Answer answer = bench_.run({"handoff", "status", scope});
    EXPECT_TRUE(answer.ok()) << answer.text;
    return answer.ok() ? answer.at("handoffs")[0] : Json::object();
  }
  static std::vector<std::string> kinds(const Json& in_the_way) {
    std::vector<std::string> all;
    for (const Json& entry : in_the_way) all.push_back(text_member(entry, "what"));
    return all;
  }
  // Refused, naming exactly these; and status says the same.
  void stays_open(const std::string& scope, const std::vector<std::string>& expected) {
    const Answer refused = close(scope);
    ASSERT_EQ(refused.code(), "transition_open") << refused.text;
    const Json in_the_way = details_of(refused)["in_the_way"];
    EXPECT_EQ(kinds(in_the_way), expected) << in_the_way;
    for (const Json& entry : in_the_way) {
      EXPECT_FALSE(text_member(entry, "why").empty()) << entry;
      EXPECT_FALSE(text_member(entry, "closes_with").empty()) << entry;
    }
    const Json shown = status(scope);
    EXPECT_EQ(shown["in_the_way"], in_the_way);
    EXPECT_EQ(shown["state"], "open");
  }
  void closes(const std::string& scope) {
    const Answer closed = close(scope);
    ASSERT_TRUE(closed.ok()) << closed.text;
    EXPECT_EQ(closed.at("handoff")["state"], "closed");
  }
  Lease taken_over(const Lease& old, const std::string& scope) {
    EXPECT_TRUE(bench_.release(old).ok());
    return bench_.acquire(scope, "bob");
  }
  // A program under the lease, which runs until its input is closed.
  std::unique_ptr<Child> running(const Lease& lease, const std::string& id) {
    auto child = bench_.start(Words{"exec", lease.scope} + lease.keys() + Words{"--operation-id", id, "--", "cat"});
    EXPECT_TRUE(eventually([&] { return bench_.log().find(id) != std::string::npos; }));
    return child;
  }
  RowBench bench_;
};

}  // namespace holdfast::support
