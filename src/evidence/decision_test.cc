// A decision follows from what it was made from, rule by rule in the order of CONTRACT section 5: each answer is agreed
// with, each other answer to the same inputs is a difference, and inputs that are not whole are never agreed with.
#include "evidence/decision.h"

#include <gtest/gtest.h>

#include <array>

#include "base/json.h"

namespace holdfast::evidence {
namespace {

using Verdict = Recomputed::Verdict;

constexpr std::array kAnswers = {"accepted",
                                 "repeated",
                                 "stale_lease_generation",
                                 "control_epoch_revoked",
                                 "lease_expired",
                                 "generation_incomparable",
                                 "receiver_high_water_missing",
                                 "operation_id_reused",
                                 "receiver_outcome_unknown",
                                 "record_version_changed",
                                 "record_missing"};

Json operation(const std::string& payload) {
  return {{"resource", "session://r"}, {"operation_family", "act"}, {"precondition", "1"}, {"payload_sha256", payload}};
}

// Of a command that a receiver with a mark takes.
Json taken() {
  return {{"presented_generation", "5"},
          {"receiver_mark", "5"},
          {"workspace_mark", "5"},
          {"presented_issuer", {{"workspace_id", "ws-1"}, {"authority", "local"}}},
          {"expected_issuer", {{"workspace_id", "ws-1"}, {"authority", "local"}}},
          {"current_generation", "5"},
          {"presented_owner", "alice"},
          {"current_owner", "alice"},
          {"presented_task", "t"},
          {"current_task", "t"},
          {"presented_operation", operation("a")},
          {"applied_operation", nullptr},
          {"revoked", false},
          {"expired", false}};
}

Json with(Json inputs, const Json& changes) {
  inputs.update(changes);
  return inputs;
}

Verdict verdict(const std::string& decision, const Json& inputs) {
  return recompute(Json{{"decision", decision}, {"inputs", inputs}}).verdict;
}

// This answer, and no other of those that are recomputed.
void gives(const std::string& answer, const Json& inputs) {
  for (const char* said : kAnswers) {
    EXPECT_EQ(verdict(said, inputs), said == answer ? Verdict::agrees : Verdict::differs) << said << " of " << inputs;
  }
}

TEST(Decision, IsAcceptedWhereNothingIsAgainstIt) {
  gives("accepted", taken());
  gives("accepted", with(taken(), {{"receiver_mark", "4"}, {"workspace_mark", nullptr}}));
  gives("accepted", with(taken(), {{"presented_generation", 5}, {"current_generation", 5}}));
}

TEST(Decision, OfARepeatedCommandIsItsFirstOutcomeWhateverItsTenancyHasBecome) {
  const Json again = with(taken(), {{"applied_operation", operation("a")}});
  gives("repeated", again);
  gives("repeated", with(again, {{"receiver_mark", "9"}, {"workspace_mark", "9"}, {"current_generation", "9"}}));
  gives("repeated", with(again, {{"revoked", true}, {"expired", true}}));
}

TEST(Decision, OfAnOperationIdThatWasUsedForAnotherCommandIsReused) {
  for (const char* member : {"resource", "operation_family", "precondition", "payload_sha256"}) {
    Json other = operation("a");
    other[member] = "another";
    gives("operation_id_reused", with(taken(), {{"applied_operation", other}}));
    gives("operation_id_reused", with(taken(), {{"applied_operation", other}, {"applied_state", "started"}}));
    other.erase(member);
    gives("operation_id_reused", with(taken(), {{"applied_operation", other}}));
  }
  Json unsaid = with(taken(), {{"applied_operation", operation("a")}});
  unsaid.erase("presented_operation");
  EXPECT_NE(verdict("repeated", unsaid), Verdict::agrees) << "what was presented is not known";
}

TEST(Decision, OfACommandThatWasStartedAndHasNotComeBackIsUnknown) {
  const Json started = with(taken(), {{"applied_operation", operation("a")}, {"applied_state", "started"}});
  gives("receiver_outcome_unknown", started);
  gives("repeated", with(started, {{"applied_state", "finished"}}));
  gives("accepted", with(taken(), {{"applied_state", "started"}}));
}

TEST(Decision, OfAnotherIssuersCommandIsIncomparableBeforeAnythingElse) {
  for (const Json& issuer :
       {Json{{"workspace_id", "ws-2"}, {"authority", "local"}}, Json{{"workspace_id", "ws-1"}, {"authority", "etcd"}},
        Json{{"workspace_id", "ws-1"}}, Json("ws-1"), Json(nullptr)}) {
    const Json inputs = with(taken(), {{"presented_issuer", issuer}});
    gives("generation_incomparable", inputs);
    gives("generation_incomparable", with(inputs, {{"receiver_mark", nullptr}}));
    gives("generation_incomparable", with(inputs, {{"applied_operation", operation("a")}}));
  }
  Json unsaid = taken();
  unsaid.erase("presented_issuer");
  gives("generation_incomparable", unsaid);
}

TEST(Decision, OfAGenerationThatIsNoneIsIncomparable) {
  for (const Json& none : {Json(nullptr), Json("0"), Json(0), Json(-1), Json("x"), Json(""), Json("05"), Json(1.5),
                           Json("18446744073709551616"), Json::array({"5"})}) {
    gives("generation_incomparable", with(taken(), {{"presented_generation", none}}));
  }
}

TEST(Decision, OfAReceiverThatLostItsMarkIsClosedEvenToWhatItWouldRepeat) {
  for (const Json& mark : {Json(nullptr), Json("4"), Json("x")}) {
    const Json lost = with(taken(), {{"receiver_mark", mark}, {"applied_operation", operation("a")}});
    gives("receiver_high_water_missing", lost);
  }
}

TEST(Decision, OfACommandBelowTheMarkOrOfAnotherTenancyIsStale) {
  gives("stale_lease_generation", with(taken(), {{"receiver_mark", "6"}, {"workspace_mark", "6"}}));
  gives("stale_lease_generation", with(taken(), {{"current_generation", "6"}}));
  gives("stale_lease_generation", with(taken(), {{"current_generation", nullptr}}));
  gives("stale_lease_generation", with(taken(), {{"current_owner", "bob"}}));
  gives("stale_lease_generation", with(taken(), {{"current_task", "other"}, {"expired", true}, {"revoked", true}}));
}

TEST(Decision, OfARevokedOrExpiredTenancySaysWhich) {
  gives("control_epoch_revoked", with(taken(), {{"revoked", true}, {"expired", true}}));
  gives("lease_expired", with(taken(), {{"expired", true}}));
}

TEST(Decision, OfAnEffectThatWasRefusedFollowsFromWhatItFound) {
  const Json changed = {{"resource", "session://r"}, {"expected", "1"}, {"current", "2"}};
  gives("record_version_changed", with(taken(), {{"effect", changed}}));
  const Json missing = {{"resource", "session://r"}, {"key", {{"id", {{"integer", "7"}}}}}};
  gives("record_missing", with(taken(), {{"effect", missing}}));
  // What stands before the effect is answered first.
  gives("lease_expired", with(taken(), {{"effect", changed}, {"expired", true}}));
  gives("stale_lease_generation", with(taken(), {{"effect", missing}, {"current_owner", "bob"}}));
}

TEST(Decision, OfAnEffectThatSaysNothingIsNeverAgreedWith) {
  for (const Json& effect : {Json(nullptr), Json::object(), Json("refused"), Json{{"expected", "1"}, {"current", "1"}},
                             Json{{"expected", "1"}}}) {
    const Json inputs = with(taken(), {{"effect", effect}});
    for (const char* said : kAnswers) EXPECT_EQ(verdict(said, inputs), Verdict::unknown) << said << effect;
  }
}

TEST(Decision, IsUnknownWhereItIsNotRecomputedOrWithoutWhatItWasMadeFrom) {
  for (const char* other : {"preimage_hash_mismatch", "content_corrupted_in_transit", "no_such_code"}) {
    EXPECT_EQ(verdict(other, taken()), Verdict::unknown) << other;
  }
  EXPECT_EQ(recompute(Json{{"decision", "accepted"}}).verdict, Verdict::unknown);
  EXPECT_EQ(verdict("accepted", Json::array()), Verdict::unknown);
  EXPECT_EQ(verdict("accepted", Json::object()), Verdict::unknown) << "without a mark every key counts";
  for (const char* member : {"revoked", "expired"}) {
    EXPECT_EQ(verdict("accepted", with(taken(), {{member, "no"}})), Verdict::unknown) << member;
  }
  for (const Json& none : {Json::object(), Json{{"decision", 1}}, Json{{"decision", ""}}}) {
    EXPECT_EQ(recompute(none).verdict, Verdict::differs) << none;
  }
}

// The file receiver compares with the tenancy alone: each of its four keys counts.
TEST(Decision, WithoutAMarkNeedsEveryKeyOfTheTenancy) {
  Json inputs = taken();
  for (const char* member : {"receiver_mark", "workspace_mark"}) inputs.erase(member);
  inputs.update({{"presented_started_at", nullptr}, {"current_started_at", nullptr}});
  gives("accepted", inputs);
  for (const char* key : {"generation", "owner", "started_at", "task"}) {
    for (const char* side : {"presented_", "current_"}) {
      Json cut = inputs;
      cut.erase(side + std::string(key));
      EXPECT_EQ(verdict("accepted", cut), Verdict::unknown) << side << key;
    }
  }
  gives("repeated", with(inputs, {{"applied_operation", operation("a")}}));
  gives("operation_id_reused", with(inputs, {{"applied_operation", operation("b")}}));
}

}  // namespace
}  // namespace holdfast::evidence
