#include "lease/tenancy.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "support/refused_with.h"

namespace holdfast {
namespace {

using support::granted;
using support::refused_with;

Instant at(std::int64_t boot_ms, const std::string& boot = "boot") {
  return Instant{boot_ms, 1'700'000'000'000'000, boot};
}

Tenancy tenancy() {
  Tenancy made;
  made.scope = Scope{Namespace::file, "project:/a.txt"};
  made.owner = "alice";
  made.task_id = "t";
  made.generation = Generation{9007199254740993ULL};
  made.started_at = "2026-10-31T18:00:00.000001Z";
  made.renew(at(0), 60);
  made.control_epoch = Epoch{2};
  made.post_sha256 = std::string(64, 'a');
  return made;
}

TenancyKeys keys() { return {"alice", "t", Generation{9007199254740993ULL}, "2026-10-31T18:00:00.000001Z"}; }

TEST(Ttl, UnderstandsMinutesAndSecondsAndClampsToFifteenMinutes) {
  EXPECT_EQ(*parse_ttl("1"), 60);
  EXPECT_EQ(*parse_ttl("2m"), 120);
  EXPECT_EQ(*parse_ttl("90s"), 90);
  EXPECT_EQ(*parse_ttl("15"), 900);
  EXPECT_EQ(*parse_ttl("16"), 900);
  EXPECT_EQ(*parse_ttl("100000000000"), 900);
  for (const char* text : {"0", "0s", "0m", "", "m", "s", "15x", "1 hour", "-1", "1.5", "99999999999999999999999"}) {
    EXPECT_TRUE(refused_with(parse_ttl(text), Code::lease_ttl_invalid)) << text;
  }
}

TEST(TenancyRecord, SurvivesTheRoundTripWithLargeNumbersExact) {
  const Json document = *parse_json(dump_pretty(tenancy().to_json()));
  EXPECT_EQ(document["generation"], "9007199254740993");
  const auto again = tenancy_from_json(document);
  ASSERT_TRUE(granted(again));
  EXPECT_EQ(again->to_json(), tenancy().to_json());
}

TEST(TenancyRecord, IsNeverHalfUnderstood) {  // B02
  const Json whole = tenancy().to_json();
  for (const char* member :
       {"protocol", "namespace", "resource_id", "owner", "task_id", "generation", "started_at", "expires_at",
        "ttl_seconds", "deadline", "holder", "control_epoch", "os_lock", "pre_write", "contract"}) {
    Json cut = whole;
    cut.erase(member);
    EXPECT_TRUE(refused_with(tenancy_from_json(cut), Code::state_unreadable)) << member;
    cut[member] = 1.5;
    EXPECT_TRUE(refused_with(tenancy_from_json(cut), Code::state_unreadable)) << member;
  }
}

TEST(JudgeKeys, AcceptsTheCurrentTenancysOwnKeys) {
  EXPECT_TRUE(granted(judge_keys(tenancy().scope, keys(), tenancy(), std::nullopt, Epoch{2}, at(1000))));
}

// Field reports B34, B42: a late heartbeat or release takes nothing from a successor.
TEST(JudgeKeys, EachKeyAloneIsEnoughToRefuse) {  // B34
  for (int key = 0; key < 4; ++key) {
    TenancyKeys other = keys();
    if (key == 0) other.owner = "mallory";
    if (key == 1) other.task_id = "other";
    if (key == 2) other.generation.value += 1;
    if (key == 3) other.started_at = "2026-10-31T18:00:00.000002Z";
    EXPECT_TRUE(refused_with(judge_keys(tenancy().scope, other, tenancy(), std::nullopt, Epoch{2}, at(1000)),
                             Code::stale_lease_generation))
        << key;
  }
}

TEST(JudgeKeys, ADeadlineOnTheBootClockOrAnotherBootExpiresIt) {  // B23, B24, B26
  const auto judged = [&](const Instant& now) {
    return judge_keys(tenancy().scope, keys(), tenancy(), std::nullopt, Epoch{2}, now);
  };
  EXPECT_TRUE(granted(judged(at(59'999))));
  EXPECT_TRUE(refused_with(judged(at(60'000)), Code::lease_expired));
  EXPECT_TRUE(refused_with(judged(at(0, "another boot")), Code::lease_expired));
  Instant clock_set_by_hours = at(1000);
  clock_set_by_hours.wall_us += 10LL * 3600 * 1'000'000;
  EXPECT_TRUE(granted(judged(clock_set_by_hours)));
}

TEST(JudgeKeys, AnOlderEpochIsRevokedWhateverTimeIsLeft) {
  EXPECT_TRUE(refused_with(judge_keys(tenancy().scope, keys(), tenancy(), std::nullopt, Epoch{3}, at(1)),
                           Code::control_epoch_revoked));
}

TEST(JudgeKeys, AfterItsEndTheAnswerIsHowItEndedUntilSomebodySucceeds) {
  EndedTenancy ended;
  ended.tenancy = tenancy();
  const auto judged = [&](const std::string& by) {
    ended.ended_by = by;
    return judge_keys(tenancy().scope, keys(), std::nullopt, ended, Epoch{2}, at(1));
  };
  EXPECT_TRUE(refused_with(judged("expiry"), Code::lease_expired));
  EXPECT_TRUE(refused_with(judged("epoch"), Code::control_epoch_revoked));
  EXPECT_TRUE(refused_with(judged("release"), Code::stale_lease_generation));
  const auto never = judge_keys(tenancy().scope, keys(), std::nullopt, std::nullopt, Epoch{2}, at(1));
  EXPECT_EQ(never.refusal().message(), "stale_lease_generation: expected 9007199254740993, current none");
}

}  // namespace
}  // namespace holdfast
