// What has to hold after a race for one row, judged from three sources that know nothing of each other: the database,
// the evidence chain, and what each writer was told.
#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "base/json.h"
#include "support/row_database.h"
#include "support/workbench.h"

namespace holdfast::support {

class RaceJudge {
 public:
  RaceJudge(const Workbench& bench, const RowDatabase& rows, std::string logs)
      : bench_(bench), rows_(rows), logs_(std::move(logs)) {}

  void judge() {
    read_evidence();
    read_operations();
    read_logs();
    every_version_is_one_operation_of_its_generation();
    every_effect_was_made_under_its_own_tenancy();
    nothing_that_was_told_is_missing();
    the_mark_is_where_it_has_to_be();
    EXPECT_TRUE(bench_.generations_verify());
    EXPECT_TRUE(bench_.evidence_verifies());
  }

  std::size_t effects() const { return by_version_.size(); }
  std::size_t told(const std::string& what) const {
    const auto found = told_.find(what);
    return found == told_.end() ? 0 : found->second;
  }
  // Tenancies that ran out: somebody else took the resource from who was stopped, stalled or killed.
  std::size_t ran_out() const { return ran_out_; }
  std::string summary() const {
    std::ostringstream text;
    text << effects() << " effects in " << tenancies_.size() << " tenancies, " << ran_out_ << " of them ran out;";
    for (const auto& [what, count] : told_) text << " " << what << " " << count << ";";
    return text.str();
  }

 private:
  struct Effect {
    std::string operation;
    std::uint64_t generation = 0;
    std::string owner;
  };
  struct Lasted {
    std::string owner;
    std::uint64_t from = 0;  // places in the chain
    std::uint64_t to = UINT64_MAX;
  };

  void read_evidence() {
    std::set<std::string> segments;
    for (const auto& entry : std::filesystem::directory_iterator(bench_.at(".squad/evidence"))) {
      if (entry.path().filename().string().starts_with("log-")) segments.insert(entry.path().string());
    }
    for (const std::string& segment : segments) {
      std::ifstream file(segment, std::ios::binary);
      for (std::string line; std::getline(file, line);) {
        const auto event = parse_json(line);
        ASSERT_TRUE(event) << line;
        note(*event);
      }
    }
  }

  void note(const Json& event) {
    if (text_member(event, "scope") != rows_.resource()) return;
    const std::string kind = text_member(event, "kind");
    const Json& facts = event["facts"];
    const std::uint64_t seq = exact_u64(event["seq"]).value();
    if (kind == "lease_acquired") {
      const std::uint64_t generation = exact_u64(facts["generation"]).value();
      EXPECT_TRUE(tenancies_.try_emplace(generation, Lasted{text_member(facts, "owner"), seq}).second) << generation;
    }
    if (kind == "tenancy_ended") {
      tenancies_[exact_u64(facts["generation"]).value()].to = seq;
      if (text_member(facts, "ended_by") == "expiry") ++ran_out_;
    }
    if (kind != "command_accepted") return;
    const std::string operation = text_member(facts["command"], "operation_id");
    EXPECT_TRUE(accepted_at_.emplace(operation, seq).second) << operation << " was accepted twice";
  }

  void read_operations() {
    for (const auto& row : rows_.run("SELECT operation_id,generation,command,outcome FROM holdfast_operations")) {
      const auto command = parse_json(row[2]);
      const auto outcome = parse_json(row[3]);
      ASSERT_TRUE(command && outcome) << row[0];
      EXPECT_EQ(text_member(*command, "generation"), row[1]);
      const std::uint64_t version = parse_u64(text_member(*outcome, "version")).value();
      EXPECT_EQ(text_member(*outcome, "version_before"), std::to_string(version - 1));
      const Effect effect{row[0], parse_u64(row[1]).value(), text_member(*command, "owner")};
      EXPECT_TRUE(by_version_.emplace(version, effect).second) << "two operations made version " << version;
      EXPECT_TRUE(version_of_.emplace(row[0], version).second) << row[0];
    }
  }

  void read_logs() {
    for (const auto& entry : std::filesystem::directory_iterator(logs_)) {
      if (!entry.path().filename().string().starts_with("log-")) continue;
      std::ifstream file(entry.path(), std::ios::binary);
      for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string what;
        std::string operation;
        std::string second;
        words >> what >> operation >> second;
        ++told_[what == "refused" ? what + " " + second : what];
        if (what == "accepted" || what == "repeated") told_versions_.insert({operation, second});
      }
    }
  }

  // The row began at version 1, and each effect is one version: no number is missing, none is there twice, and read in
  // this order the generations never go down.
  void every_version_is_one_operation_of_its_generation() const {
    std::uint64_t version = 1;
    std::uint64_t generation = 0;
    for (const auto& [made, effect] : by_version_) {
      EXPECT_EQ(made, ++version) << effect.operation;
      EXPECT_GE(effect.generation, generation) << "generation went down at version " << made;
      generation = effect.generation;
    }
    EXPECT_EQ(rows_.version(), std::to_string(version));
    if (!by_version_.empty()) { EXPECT_EQ(rows_.state(), by_version_.rbegin()->second.operation); }
  }

  // The decision stands in the chain between the beginning and the end of the tenancy that the command names. Where a
  // kill came between effect and evidence the order of the versions, which was checked, bounds it.
  void every_effect_was_made_under_its_own_tenancy() const {
    for (const auto& [version, effect] : by_version_) {
      const auto tenancy = tenancies_.find(effect.generation);
      ASSERT_NE(tenancy, tenancies_.end()) << "generation " << effect.generation << " was never granted";
      EXPECT_EQ(effect.owner, tenancy->second.owner) << effect.operation;
      const auto accepted = accepted_at_.find(effect.operation);
      if (accepted == accepted_at_.end()) continue;
      EXPECT_GT(accepted->second, tenancy->second.from) << effect.operation;
      EXPECT_LT(accepted->second, tenancy->second.to) << effect.operation << " came in after its tenancy had ended";
    }
    for (const auto& [operation, seq] : accepted_at_) EXPECT_TRUE(version_of_.contains(operation)) << operation;
  }

  void nothing_that_was_told_is_missing() const {
    for (const auto& [operation, version] : told_versions_) {
      const auto found = version_of_.find(operation);
      ASSERT_NE(found, version_of_.end()) << operation << " was told as applied and is not there";
      EXPECT_EQ(std::to_string(found->second), version) << operation;
    }
  }

  void the_mark_is_where_it_has_to_be() const {
    const std::uint64_t mark = parse_u64(rows_.mark()).value_or(0);
    if (!by_version_.empty()) { EXPECT_GE(mark, by_version_.rbegin()->second.generation); }
    EXPECT_TRUE(tenancies_.contains(mark)) << mark;
    const Answer listed = bench_.run({"receiver", "list"});
    for (const Json& line : listed.at("receivers")) {
      if (line.value("built_in", Json()) == Json(true)) continue;
      EXPECT_EQ(line.at("state"), "open") << line.dump();
      const std::uint64_t copy = exact_u64(line.at("marks").at(rows_.resource())).value_or(UINT64_MAX);
      EXPECT_LE(copy, mark) << "the workspace's copy is above what the receiver can give";
    }
  }

  const Workbench& bench_;
  const RowDatabase& rows_;
  std::string logs_;
  std::map<std::uint64_t, Lasted> tenancies_;
  std::map<std::uint64_t, Effect> by_version_;
  std::map<std::string, std::uint64_t> version_of_;
  std::map<std::string, std::uint64_t> accepted_at_;
  std::map<std::string, std::size_t> told_;
  std::set<std::pair<std::string, std::string>> told_versions_;
  std::size_t ran_out_ = 0;
};

}  // namespace holdfast::support
