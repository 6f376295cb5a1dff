// The clock is set by hours while server, `hold` and verbs live: no lease ends by it, and none lives longer; and the
// machine sleeps for hours: every lease has ended (CONTRACT section 3; field reports B23, B24, B26, B28). The program
// alone sees another time (support/shifted_clock); the machine's clock stays as it is.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/clock.h"
#include "base/json.h"
#include "os/process.h"
#include "support/workbench.h"

namespace holdfast {
namespace {

using support::Answer;
using support::Child;
using support::Environment;
using support::eventually;
using support::Lease;
using support::Words;
using support::Workbench;
using support::operator+;

constexpr std::int64_t kHour = 3600;

class MovedClock : public testing::Test {
 protected:
  MovedClock() {
    bench_.put("a.txt", "old");
    set_clock_by(0);
    sleep_for(0);
  }
  ~MovedClock() override { (void)run({"stop"}); }

  void set_clock_by(std::int64_t hours) const { move("set", hours * kHour); }
  void sleep_for(std::int64_t seconds) const { move("slept", seconds); }
  // As a whole: who reads meanwhile sees the clock before or after.
  void move(const std::string& how, std::int64_t seconds) const {
    clock_.write("staged", std::to_string(seconds));
    std::filesystem::rename(clock_.at("staged"), clock_.at(how));
  }
  Environment shifted() const {
    const auto library = std::filesystem::path(HOLDFAST_PROGRAM).parent_path() / "libholdfast_shifted_clock.so";
    return {{"LD_PRELOAD", library.string()},
            {"HOLDFAST_TEST_CLOCK_SET", clock_.at("set")},
            {"HOLDFAST_TEST_CLOCK_SLEPT", clock_.at("slept")}};
  }
  Answer run(const Words& words, const std::string& input = "") const { return bench_.run(words, input, shifted()); }
  Lease acquire(const std::string& owner, const std::string& ttl) const {
    const Answer answer = run({"acquire", "a.txt", "--owner", owner, "--task", "t", "--ttl", ttl});
    EXPECT_TRUE(answer.ok()) << answer.text;
    return answer.ok() ? Lease{"file://project:/a.txt", answer.at("leases").at(0)} : Lease{};
  }
  // A hold whose program has begun and sleeps.
  std::unique_ptr<Child> holding(const std::string& ttl) {
    auto child = bench_.start(
        {"hold", "a.txt", "--owner", "alice", "--task", "t", "--ttl", ttl, "--", "sh", "-c", "echo $$; exec sleep 60"},
        shifted());
    const auto program = os::process_of_pid(std::stol("0" + child->read_line()));
    EXPECT_TRUE(program.ok());
    if (program.ok()) program_ = *program;
    return child;
  }
  Answer acquire_by_another() const { return run({"acquire", "a.txt", "--owner", "bob", "--task", "t"}); }
  Answer heartbeat(const Lease& lease) const { return run(Words{"heartbeat", lease.scope} + lease.keys()); }
  bool is_free() const { return run({"leases"}).at("leases").empty(); }
  // Seconds from the machine's clock to the time of the last event of that kind.
  std::int64_t shift_in_evidence(const std::string& kind) const {
    const Answer log = bench_.run({"evidence", "log"});
    std::int64_t at_us = 0;
    for (const Json& event : log.at("events")) {
      if (event.at("kind") == kind) { EXPECT_TRUE(parse_wall(text_member(event, "at"), at_us)); }
    }
    return (at_us - SystemClock().now().wall_us) / 1'000'000;
  }
  std::size_t count_in_evidence(const std::string& kind) const {
    std::size_t count = 0;
    const Answer log = bench_.run({"evidence", "log"});
    for (const Json& event : log.at("events")) count += event.at("kind") == kind ? 1U : 0U;
    return count;
  }

  Workbench bench_;
  support::TemporaryFolder clock_;
  os::ProcessIdentity program_;
};

// The parameter: by how many hours the clock is set.
class WallClock : public MovedClock, public testing::WithParamInterface<int> {
 protected:
  void set_clock() const { set_clock_by(GetParam()); }
  void expect_shifted(const std::string& kind) const {
    EXPECT_NEAR(static_cast<double>(shift_in_evidence(kind)), static_cast<double>(GetParam() * kHour), 60) << kind;
  }
  void expect_held_after_the_clock_was_set(const Lease& lease) const {
    set_clock();
    EXPECT_EQ(acquire_by_another().code(), "lease_scope_conflict");
    const Json listed = run({"leases"}).at("leases").at(0);
    EXPECT_EQ(listed.at("state"), "live");
    EXPECT_GT(listed.at("remaining_seconds"), 500);
    EXPECT_LE(listed.at("remaining_seconds"), 600);
    const Answer renewed = heartbeat(lease);
    ASSERT_TRUE(renewed.ok()) << renewed.text;
    EXPECT_EQ(renewed.at("lease").at("generation"), lease.record.at("generation"));
    expect_shifted("lease_renewed");
    set_clock_by(-GetParam());
    EXPECT_TRUE(heartbeat(lease).ok());
    EXPECT_EQ(acquire_by_another().code(), "lease_scope_conflict");
  }
  // A lease of four seconds is over soon after, however the clock stands.
  void expect_ended_by_its_own_time(const Lease& lease) const {
    EXPECT_TRUE(eventually([&] { return acquire_by_another().ok(); }, 15'000));
    EXPECT_EQ(heartbeat(lease).code(), "stale_lease_generation");
  }
};

INSTANTIATE_TEST_SUITE_P(SetByHours, WallClock, testing::Values(5, -5),
                         [](const auto& hours) { return hours.param > 0 ? "Forward" : "Back"; });

TEST_P(WallClock, B23B24WithAServerALeaseIsHeldThoughTheClockWasSet) {
  bench_.serve(shifted());
  const Lease lease = acquire("alice", "10m");
  EXPECT_NEAR(static_cast<double>(shift_in_evidence("lease_acquired")), 0, 60);
  expect_held_after_the_clock_was_set(lease);
  const Answer written = run(Words{"write", lease.scope} + lease.keys() + Words{"--from", "-"}, "new");
  EXPECT_TRUE(written.ok()) << written.text;
}

TEST_P(WallClock, B23B24WithoutAServerALeaseIsHeldThoughTheClockWasSet) {
  const Lease lease = acquire("alice", "10m");
  expect_held_after_the_clock_was_set(lease);
}

TEST_P(WallClock, B23B24WithAServerALeaseEndsByItsTimeThoughTheClockWasSet) {
  bench_.serve(shifted());
  const Lease lease = acquire("alice", "4s");
  set_clock();
  EXPECT_EQ(acquire_by_another().code(), "lease_scope_conflict");
  // The server ends it by itself.
  EXPECT_TRUE(eventually([&] { return is_free(); }, 15'000));
  EXPECT_EQ(heartbeat(lease).code(), "lease_expired");
  expect_shifted("tenancy_ended");
  expect_ended_by_its_own_time(lease);
}

TEST_P(WallClock, B23B24WithoutAServerALeaseEndsByItsTimeThoughTheClockWasSet) {
  const Lease lease = acquire("alice", "4s");
  set_clock();
  EXPECT_EQ(acquire_by_another().code(), "lease_scope_conflict");
  EXPECT_TRUE(eventually([&] { return run({"leases"}).at("leases").at(0).at("state") == "expired"; }, 15'000));
  EXPECT_EQ(heartbeat(lease).code(), "lease_expired");
  expect_ended_by_its_own_time(lease);
}

TEST_P(WallClock, ALeaseThatWasGrantedAndRenewedUnderAWrongClockEndsByItsTime) {
  bench_.serve(shifted());
  set_clock();
  const Lease lease = acquire("alice", "4s");
  EXPECT_TRUE(heartbeat(lease).ok());
  set_clock_by(0);
  EXPECT_EQ(acquire_by_another().code(), "lease_scope_conflict");
  expect_ended_by_its_own_time(lease);
}

TEST_P(WallClock, B23B24AHoldRenewsThroughEverySettingOfTheClock) {
  const std::string enough = bench_.at("enough");
  const auto child = bench_.start({"hold", "a.txt", "--owner", "alice", "--task", "t", "--ttl", "2s", "--", "sh", "-c",
                                   "until test -e " + enough + "; do sleep 0.05; done"},
                                  shifted());
  // Three renewals under each clock are as long as the lease itself.
  for (const int hours : {0, GetParam(), -GetParam(), 0}) {
    set_clock_by(hours);
    const std::size_t before = count_in_evidence("lease_renewed");
    EXPECT_TRUE(eventually([&] { return count_in_evidence("lease_renewed") >= before + 3; })) << hours;
    EXPECT_EQ(acquire_by_another().code(), "lease_scope_conflict");
  }
  bench_.put("enough", "");
  EXPECT_EQ(child->wait(), 0);
  EXPECT_EQ(count_in_evidence("lease_acquired"), 1U);
  EXPECT_TRUE(is_free());
}

TEST_P(WallClock, B24AStoppedHoldLosesItsLeaseByItsTime) {
  const auto child = holding("2s");
  child->stop();
  set_clock();
  EXPECT_TRUE(eventually([&] { return is_free(); }, 15'000));
  child->cont();
  EXPECT_EQ(child->wait(), 75);
}

TEST_P(WallClock, B24AProgramEndsByTheDeadlineThoughItsServerAnswersNobody) {
  bench_.serve(shifted());
  const auto child = holding("3s");
  bench_.server().stop();
  set_clock();
  EXPECT_TRUE(eventually([&] { return os::liveness_of(program_) == os::Liveness::dead; }, 12'000));
  bench_.server().cont();
  EXPECT_EQ(child->wait(), 75);
  EXPECT_TRUE(eventually([&] { return is_free(); }));
}

TEST_P(WallClock, B24AWaitIsNeitherCutShortNorWithoutEnd) {
  bench_.serve(shifted());
  const Lease lease = acquire("alice", "10m");
  const auto patient = bench_.start({"acquire", "a.txt", "--owner", "bob", "--task", "t", "--wait", "60"}, shifted());
  const auto hasty = bench_.start({"acquire", "a.txt", "--owner", "carol", "--task", "t", "--wait", "2"}, shifted());
  ::usleep(300'000);
  set_clock();
  EXPECT_EQ(Workbench::answer_of(*hasty).code(), "lease_scope_conflict");
  ASSERT_TRUE(run(Words{"release", lease.scope} + lease.keys()).ok());
  EXPECT_TRUE(Workbench::answer_of(*patient).ok());
}

class Suspend : public MovedClock {};

TEST_F(Suspend, B26OfHoursHasEndedEveryLeaseOfALiveServer) {
  bench_.serve(shifted());
  const Lease lease = acquire("alice", "10m");
  sleep_for(2 * kHour);
  EXPECT_EQ(heartbeat(lease).code(), "lease_expired");
  EXPECT_TRUE(eventually([&] { return is_free(); })) << "the server ends it by itself";
  const Answer next = acquire_by_another();
  ASSERT_TRUE(next.ok()) << next.text;
  EXPECT_TRUE(heartbeat(Lease{lease.scope, next.at("leases").at(0)}).ok());
}

TEST_F(Suspend, B26OfHoursEndsTheProgramOfAHold) {
  const auto child = holding("10m");
  sleep_for(2 * kHour);
  EXPECT_EQ(child->wait(), 75);
  EXPECT_EQ(os::liveness_of(program_), os::Liveness::dead);
  EXPECT_TRUE(eventually([&] { return is_free(); }));
}

TEST_F(Suspend, ShorterThanTheLeaseLeavesItAndItsTimeGoesOn) {
  bench_.serve(shifted());
  const Lease lease = acquire("alice", "10m");
  sleep_for(kHour / 10);
  EXPECT_EQ(acquire_by_another().code(), "lease_scope_conflict");
  EXPECT_LE(run({"leases"}).at("leases").at(0).at("remaining_seconds"), 240);
  EXPECT_TRUE(heartbeat(lease).ok());
}

}  // namespace
}  // namespace holdfast
