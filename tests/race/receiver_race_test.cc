// 32 writers for half a minute against one row, and everything that can happen to them: they are killed, they are
// stopped for longer than their lease lives, they sleep over it, they send what they kept under somebody else's
// tenancy, and the receiver's process and the server are killed under them. Then the database, the evidence and what
// the writers were told have to agree (field reports B18, B101, B127, M38, M39; second seed, T1 to T4).
//
// HOLDFAST_RACE_SEED replays a plan: what each writer and the disturber do in which order follows from it; how the
// machine interleaves them does not. HOLDFAST_RACE_SECONDS makes it longer.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <iostream>

#include "race/receiver_race_judge.h"
#include "race/receiver_race_writer.h"
#include "support/private_postgres.h"

namespace holdfast {
namespace {

using support::Child;
using support::RowDatabase;
using support::Workbench;
using Clock = std::chrono::steady_clock;

constexpr unsigned kWriters = 32;

const support::RegisterRole kWriter("row-race-writer", [](const std::vector<std::string>& arguments) {
  return support::RaceWriter(arguments).run();
});

unsigned long number_from(const char* name, unsigned long otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoul(text, nullptr, 10);
}

// Kills, stops and starts, by plan.
class Disturber {
 public:
  Disturber(Workbench& bench, const RowDatabase& rows, const std::string& logs, unsigned long seed, long seconds)
      : bench_(bench),
        rows_(rows),
        logs_(logs),
        seed_(seed),
        plan_(seed),
        end_(Clock::now() + std::chrono::seconds(seconds)) {
    for (unsigned number = 0; number < kWriters; ++number) start(number);
  }

  void run() {
    while (Clock::now() < end_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(40 + plan_() % 160));
      wake_who_is_due(Clock::now());
      const auto what = static_cast<unsigned>(plan_() % 100);
      const auto number = static_cast<unsigned>(plan_() % kWriters);
      disturb(what, number, static_cast<int>(1100 + plan_() % 1500));
    }
    wake_who_is_due(Clock::time_point::max());
    for (Writer& writer : writers_) EXPECT_EQ(writer.process->wait(), 0);
  }

  std::map<std::string, int> done;

 private:
  struct Writer {
    std::unique_ptr<Child> process;
    int life = 0;
    std::optional<Clock::time_point> stopped_until = {};
  };

  void start(unsigned number) {
    if (writers_.size() <= number) writers_.emplace_back();
    Writer& writer = writers_[number];
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end_ - Clock::now()).count();
    writer.process = std::make_unique<Child>(support::spawn_as(
        "row-race-writer",
        {bench_.root(), logs_, rows_.kind(), rows_.where(), std::to_string(seed_), std::to_string(number),
         std::to_string(writer.life++), std::to_string(std::max<long>(left, 0))}));
    writer.stopped_until.reset();
  }

  void wake_who_is_due(Clock::time_point now) {
    for (Writer& writer : writers_) {
      if (!writer.stopped_until || *writer.stopped_until > now) continue;
      writer.process->cont();
      writer.stopped_until.reset();
    }
  }

  void disturb(unsigned what, unsigned number, int stopped_ms) {
    Writer& writer = writers_[number];
    if (what < 40) {
      ++done["writers killed"];
      writer.process->kill();
      writer.process->wait();
      start(number);
    } else if (what < 85) {
      if (writer.stopped_until) return;
      ++done["writers stopped"];
      writer.process->signal(SIGSTOP);
      writer.stopped_until = Clock::now() + std::chrono::milliseconds(stopped_ms);
    } else if (what < 98) {
      for (const pid_t pid : support::receiver_processes_of(bench_.server().pid())) {
        ++done["receivers killed"];
        ::kill(pid, SIGKILL);
      }
    } else {
      ++done["servers killed"];
      bench_.kill_server();
      bench_.serve();
    }
  }

  Workbench& bench_;
  const RowDatabase& rows_;
  std::string logs_;
  unsigned long seed_;
  std::mt19937_64 plan_;
  Clock::time_point end_;
  std::vector<Writer> writers_;
};

void race_for_a_row(const RowDatabase& rows) {
  const unsigned long seed = number_from("HOLDFAST_RACE_SEED", std::random_device()());
  const auto seconds = static_cast<long>(number_from("HOLDFAST_RACE_SECONDS", 30));
  std::cout << "HOLDFAST_RACE_SEED=" << seed << std::endl;
  const support::TemporaryFolder logs;
  Workbench bench;
  rows.make();
  bench.serve();
  ASSERT_TRUE(bench.run(rows.receiver_add("accounts")).ok());
  Disturber disturber(bench, rows, logs.path(), seed, seconds);
  disturber.run();
  bench.kill_server();
  bench.serve();
  (void)bench.run({"recover"});

  support::RaceJudge judge(bench, rows, logs.path());
  judge.judge();
  std::cout << rows.kind() << ": " << judge.summary();
  for (const auto& [what, count] : disturber.done) std::cout << " " << what << " " << count << ";";
  std::cout << std::endl;
  // It was a race, and not a walk: everything that it is about did happen.
  EXPECT_GE(judge.effects(), 100U);
  EXPECT_GE(judge.ran_out(), 3U);
  EXPECT_GE(judge.told("refused stale_lease_generation"), 10U);
  EXPECT_GE(judge.told("repeated"), 3U);
  EXPECT_GE(disturber.done["writers killed"], 10);
  EXPECT_GE(disturber.done["writers stopped"], 10);
}

TEST(ReceiverRace, NothingStaleGetsIntoOneSqliteRowAndNothingIsLost) {
  const support::TemporaryFolder folder;
  const RowDatabase rows("sqlite", folder.at("rows.db"));
  race_for_a_row(rows);
  EXPECT_EQ(rows.one("PRAGMA integrity_check"), "ok");
}

TEST(ReceiverRace, NothingStaleGetsIntoOnePostgresRowAndNothingIsLost) {
  const support::PrivatePostgres server;
  ASSERT_TRUE(server.is_ready()) << server.why_not();
  race_for_a_row(RowDatabase("postgres", server.connection()));
}

}  // namespace
}  // namespace holdfast
