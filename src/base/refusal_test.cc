#include "holdfast/refusal.h"

#include <gtest/gtest.h>

#include <set>

#include "holdfast/result.h"

namespace holdfast {
namespace {

TEST(Catalogue, NamesEachCodeOnceAndInSnakeCase) {
  std::set<std::string_view> names;
  for (std::size_t index = 0; index < code_count(); ++index) {
    const CodeFacts& facts = facts_at(index);
    EXPECT_TRUE(names.insert(facts.name).second) << facts.name;
    EXPECT_EQ(facts.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_"), std::string_view::npos)
        << facts.name;
  }
}

TEST(Catalogue, SaysForEachCodeWhatItMeansAndWhatToDo) {
  for (std::size_t index = 0; index < code_count(); ++index) {
    const CodeFacts& facts = facts_at(index);
    EXPECT_FALSE(facts.summary.empty()) << facts.name;
    EXPECT_FALSE(facts.hint.empty()) << facts.name;
    EXPECT_GE(facts.exit_status, 1) << facts.name;
    EXPECT_LE(facts.exit_status, 5) << facts.name;
    EXPECT_EQ(static_cast<std::size_t>(facts.code), index) << facts.name;
    EXPECT_EQ(&facts_of(facts.code), &facts);
    EXPECT_EQ(facts_named(facts.name), &facts);
  }
  EXPECT_EQ(facts_named("no_such_code"), nullptr);
}

TEST(Catalogue, GivesTheExitStatusesOfTheContract) {
  EXPECT_EQ(facts_of(Code::usage).exit_status, 2);
  EXPECT_EQ(facts_of(Code::lease_transition_busy).exit_status, 3);
  EXPECT_EQ(facts_of(Code::reconciliation_required).exit_status, 4);
  EXPECT_EQ(facts_of(Code::destination_content_diverged).exit_status, 4);
  EXPECT_EQ(facts_of(Code::generation_persist_failed).exit_status, 5);
  EXPECT_EQ(facts_of(Code::stale_lease_generation).exit_status, 1);
}

TEST(Refusal, IsADocumentOfTheAgreedShape) {
  Refusal refusal(Code::stale_lease_generation, "expected 14, current 15", Json{{"expected", "14"}});
  refusal.set_evidence("ev-0000000000000001");
  const Json error = refusal.to_json().at("error");
  EXPECT_EQ(error.at("code"), "stale_lease_generation");
  EXPECT_EQ(error.at("message"), "expected 14, current 15");
  EXPECT_EQ(error.at("effect"), "none");
  EXPECT_EQ(error.at("next").at("action"), "reacquire");
  EXPECT_EQ(error.at("details").at("expected"), "14");
  EXPECT_EQ(error.at("evidence"), "ev-0000000000000001");
}

TEST(Refusal, SurvivesTheWayThroughJson) {
  for (std::size_t index = 0; index < code_count(); ++index) {
    Refusal refusal(facts_at(index).code, "why", Json{{"generation", "18446744073709551615"}});
    refusal = std::move(refusal).with("path", "a/b").with_effect(Effect::unknown).with_hint("look");
    refusal.set_evidence("ev-1");
    const Refusal again = Refusal::from_json(refusal.to_json());
    EXPECT_EQ(again.to_json(), refusal.to_json()) << facts_at(index).name;
    EXPECT_EQ(again.code(), refusal.code());
    EXPECT_EQ(again.effect(), Effect::unknown);
  }
}

TEST(Refusal, OfAForeignDocumentIsStillARefusal) {
  for (const Json& document : {Json(), Json::object(), Json{{"error", "text"}}, Json{{"error", {{"code", "no_such"}}}},
                               Json{{"error", {{"code", 7}}}}, Json::array({1})}) {
    const Refusal refusal = Refusal::from_json(document);
    EXPECT_NE(facts_named(refusal.code_name()), nullptr);
  }
}

TEST(Result, HoldsAValueOrARefusal) {
  const Result<int> value = 7;
  const Result<int> refused = Refusal(Code::not_found, "no");
  EXPECT_TRUE(value.ok());
  EXPECT_EQ(*value, 7);
  EXPECT_FALSE(refused.ok());
  EXPECT_EQ(refused.refusal().code(), Code::not_found);
}

Result<int> doubled(Result<int> given) {
  HF_TRY(const int value, given);
  return 2 * value;
}

TEST(Result, PassesARefusalOnUnchanged) {
  EXPECT_EQ(doubled(4).value(), 8);
  EXPECT_EQ(doubled(Refusal(Code::usage, "no")).refusal().code(), Code::usage);
}

TEST(ResultDeathTest, AbortsWhereARefusalIsReadAsAValue) {
  const Result<int> refused = Refusal(Code::not_found, "no");
  EXPECT_DEATH(static_cast<void>(refused.value()), "assertion failed");
}

}  // namespace
}  // namespace holdfast
