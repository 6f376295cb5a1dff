// A PostgreSQL receiver that judges by what it read without a lock, or remembers, and changes by one call: whatever
// comes between the two, it is judged anew, and nothing is refused or applied by what is not so any more.
#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <vector>

#include "support/row_receiver.h"
#include "support/row_worker.h"

namespace holdfast::receivers {
namespace {

using support::granted;
using support::kAccounts;

class Watched : public support::RowReceiverTest {
 protected:
  void SetUp() override {
    RowReceiverTest::SetUp();
    forget_procedures();
  }
  void forget_procedures() {
    database_->run(
        "DO $$ DECLARE one text; BEGIN FOR one IN SELECT oid::regprocedure::text FROM pg_proc WHERE proname LIKE "
        "'holdfast\\_%' LOOP EXECUTE 'DROP PROCEDURE ' || one; END LOOP; END $$");
  }
  std::string procedures(const std::string& more = "") {
    return database_->ask("SELECT count(*) FROM pg_proc WHERE proname LIKE 'holdfast\\_%'" + more);
  }
  // One accepted change teaches it its procedures; behind a second one it remembers the row.
  void changed_before(int times) {
    for (int time = 0; time < times; ++time) {
      const std::string id = "before-" + std::to_string(++changes_);
      const std::string planned = version();
      ASSERT_EQ(decided(command(id, 5, planned, state_set(id)).to_json(), state_set(id), at_mark(5)), "accepted");
    }
  }
  // `between` happens where the state before is handed over: behind what was judged, before anything changes.
  Delivery delivered(const Command& asked, const std::string& payload, const std::function<void()>& between) {
    kept_.clear();
    const auto capture = [&](const Json& before) -> Result<Json> {
      kept_.push_back(before);
      if (kept_.size() == 1) between();
      return Json(std::to_string(kept_.size()));
    };
    auto delivery = deliver(*receiver_, asked.to_json(), payload, at_mark(5), capture);
    EXPECT_TRUE(granted(delivery));
    return delivery.ok() ? std::move(*delivery) : Delivery{};
  }
  std::vector<Json> kept_;
  int changes_ = 0;
};

// Read (1), and remembered (2).
constexpr int kWarm[] = {1, 2};

TEST_P(Watched, BeginsNothingOnTheServerBeforeItChangesAndLooksFromOutsideAfterwards) {
  for (const int warm : kWarm) {
    changed_before(warm);
    const std::string planned = version();
    const std::string was = state();
    const std::string id = "op-" + std::to_string(warm);
    const Delivery done = delivered(command(id, 6, planned, paid()), paid(), [&] {
      EXPECT_EQ(database_->ask("SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"), "0");
      EXPECT_EQ(database_->ask("SELECT 1 FROM accounts WHERE id=7 FOR UPDATE NOWAIT"), "1");
      EXPECT_EQ(database_->ask("SELECT 1 FROM holdfast_marks FOR UPDATE NOWAIT"), "1");
    });
    EXPECT_EQ(done.decision.decision, "accepted");
    EXPECT_EQ(done.observed.value("as_written", false), true);
    ASSERT_EQ(kept_.size(), 1U);
    EXPECT_EQ(kept_[0]["values"]["state"], Json({{"text", was}}));
    EXPECT_EQ(database_->ask("SELECT generation FROM holdfast_marks"), "6");
    EXPECT_EQ(state(), "paid");
    database_->run("UPDATE holdfast_marks SET generation='5'");
  }
  EXPECT_EQ(procedures(), "2");
}

TEST_P(Watched, RefusesWithWhatIsThereWhereAnotherOneCameBetween) {
  for (const int warm : kWarm) {
    struct Between {
      const char* sql;
      const char* decision;
      const char* current;
    };
    for (const Between& between :
         {Between{"UPDATE accounts SET version=version+1, state='other' WHERE id=7", "record_version_changed", "other"},
          Between{"DELETE FROM accounts WHERE id=7", "record_missing", ""},
          Between{"UPDATE holdfast_marks SET generation='9'", "stale_lease_generation", "before"},
          Between{"UPDATE holdfast_marks SET generation='4'", "receiver_high_water_missing", "before"},
          Between{"DELETE FROM holdfast_marks", "receiver_high_water_missing", "before"}}) {
      SCOPED_TRACE(between.sql);
      changed_before(warm);
      const std::string planned = version();
      const std::string count = operations();
      const std::string id = "op-" + std::to_string(++changes_);
      const Delivery refused = delivered(command(id, 5, planned, paid()), paid(), [&] { database_->run(between.sql); });
      EXPECT_EQ(refused.decision.decision, between.decision);
      EXPECT_EQ(operations(), count);
      EXPECT_TRUE(state().starts_with(between.current)) << state();
      database_->run("DELETE FROM holdfast_marks");
      database_->run("INSERT INTO holdfast_marks VALUES('" + kAccounts + "','5')");
      database_->run("DELETE FROM accounts WHERE id=7");
      database_->run("INSERT INTO accounts(id,version,state) VALUES(7,1,'new')");
    }
  }
}

// Without another version, and so the same row: it is changed, and what is kept is what was there then.
TEST_P(Watched, HandsOverTheStateBeforeOnceMoreWhereItChangedBetween) {
  for (const int warm : kWarm) {
    changed_before(warm);
    const std::string planned = version();
    const std::string id = "op-" + std::to_string(warm);
    const Delivery done = delivered(command(id, 5, planned, paid()), paid(),
                                    [&] { database_->run("UPDATE accounts SET state='other' WHERE id=7"); });
    EXPECT_EQ(done.decision.decision, "accepted");
    ASSERT_EQ(kept_.size(), 2U);
    EXPECT_EQ(kept_[1]["values"]["state"], Json({{"text", "other"}}));
    EXPECT_EQ(done.outcome["captured"], "2");
    EXPECT_EQ(
        database_->ask("SELECT outcome::json->>'captured' FROM holdfast_operations WHERE operation_id='" + id + "'"),
        "2");
  }
}

TEST_P(Watched, AppliesAnOperationOnceThatAnotherReceiverAppliedBetween) {
  for (const int warm : kWarm) {
    changed_before(warm);
    const Command asked = command("op-" + std::to_string(warm), 5, version(), paid());
    const auto other = opened("accounts", {"id"});
    const Delivery again = delivered(asked, paid(), [&] {
      const auto first = deliver(*other, asked.to_json(), paid(), at_mark(5));
      ASSERT_TRUE(granted(first));
      EXPECT_EQ(first->decision.decision, "accepted");
    });
    EXPECT_EQ(again.decision.decision, "repeated");
    EXPECT_EQ(again.outcome["captured"], Json());
  }
}

// What it remembers is not what is there: a command that was planned on what is there is not refused by a memory.
TEST_P(Watched, RefusesNothingByWhatItRemembers) {
  changed_before(2);
  ASSERT_EQ(version(), "3");
  database_->run("UPDATE accounts SET version=9 WHERE id=7");
  EXPECT_EQ(decided(command("op-1", 5, "9", paid()).to_json(), paid(), at_mark(5)), "accepted");
  changed_before(2);
  const auto other = opened("accounts", {"id"});
  ASSERT_TRUE(granted(raise_mark(*other, kAccounts, Generation{6}, Generation{5})));
  EXPECT_EQ(decided(command("op-2", 6, version(), paid()).to_json(), paid(), at_mark(6)), "accepted")
      << "by a memory the mark would be below the workspace's copy";
  EXPECT_EQ(decided(command("op-3", 5, version(), paid()).to_json(), paid(), at_mark(6)), "stale_lease_generation");
}

// B107.
TEST_P(Watched, CommitsNothingThatDoesNotReadBackAsWritten) {
  database_->run(
      "CREATE OR REPLACE FUNCTION shout() RETURNS trigger AS $$ BEGIN UPDATE accounts SET state=upper(state) WHERE "
      "id=NEW.id AND state<>upper(state); RETURN NULL; END $$ LANGUAGE plpgsql");
  for (const int warm : kWarm) {
    changed_before(warm);
    const std::string was = state();
    const std::string planned = version();
    const std::string count = operations();
    database_->run("CREATE TRIGGER shouts AFTER UPDATE ON accounts FOR EACH ROW EXECUTE FUNCTION shout()");
    EXPECT_EQ(decided(command("op-1", 5, planned, paid()).to_json(), paid(), at_mark(5)), "record_version_changed");
    EXPECT_EQ(state(), was);
    EXPECT_EQ(version(), planned);
    EXPECT_EQ(operations(), count);
    database_->run("DROP TRIGGER shouts ON accounts");
  }
}

TEST_P(Watched, KeepsOddTextsAsTheyAre) {
  const std::vector<std::string> odd = {"",        "NULL",       "null",         "a,b",    "(x)",
                                        "{\"y\"}", "\"",         "\\",           "\\\\\"", "it's; \\'",
                                        " a ",     "two\nlines", "\u00e4\u20ac", "$1",     "E'\\x'"};
  changed_before(1);
  std::string was = state();
  for (const std::string& text : odd) {
    const std::string payload = state_set(text);
    const std::string id = "op-'\"\\" + std::to_string(++changes_);
    const Delivery done = delivered(command(id, 5, version(), payload), payload, [] {});
    EXPECT_EQ(done.decision.decision, "accepted") << text;
    EXPECT_EQ(done.observed.value("as_written", false), true) << text;
    ASSERT_EQ(kept_.size(), 1U) << text;
    EXPECT_EQ(kept_[0]["values"]["state"], Json({{"text", was}}));
    EXPECT_EQ(state(), text);
    was = text;
  }
  const std::string cut = state_set(std::string("pa\0id", 5));
  EXPECT_EQ(decided(command("op-nul", 5, version(), cut).to_json(), cut, at_mark(5)), "request_malformed");
  EXPECT_EQ(state(), was);
}

TEST_P(Watched, HandsOverNullsAndBytesWithTheirTypes) {
  const auto both = [&](const Json& state, const Json& note) {
    return payload_of({{"id", {{"integer", "7"}}}}, {{"state", state}, {"note", note}});
  };
  const Json values[][2] = {{Json{{"text", "a"}}, Json{{"blob", "AP8n"}}},
                            {Json{{"null", true}}, Json{{"null", true}}},
                            {Json{{"text", ""}}, Json{{"blob", ""}}},
                            {Json{{"text", "b"}}, Json{{"blob", "XCIs"}}}};
  Json was = Json{{"state", {{"text", "new"}}}, {"note", {{"null", true}}}};
  int at = 0;
  for (int round = 0; round < 2; ++round) {
    for (const auto& [state, note] : values) {
      const std::string payload = both(state, note);
      const Delivery done = delivered(command("op-" + std::to_string(++at), 5, version(), payload), payload, [] {});
      EXPECT_EQ(done.decision.decision, "accepted");
      ASSERT_EQ(kept_.size(), 1U);
      EXPECT_EQ(kept_[0]["values"], was);
      was = Json{{"state", state}, {"note", note}};
    }
  }
}

// A column of another type than when it learnt: the procedure finds no such row, and the change goes the other way.
TEST_P(Watched, GoesTheOtherWayWhereAColumnIsOfAnotherTypeByNow) {
  changed_before(2);
  database_->run("ALTER TABLE accounts ALTER COLUMN state TYPE integer USING 1");
  const std::string two = state_set("2");
  EXPECT_EQ(decided(command("op-1", 5, version(), two).to_json(), two, at_mark(5)), "accepted");
  EXPECT_EQ(decided(command("op-2", 5, version(), paid()).to_json(), paid(), at_mark(5)), "receiver_unreachable");
  EXPECT_EQ(state(), "2");
}

TEST_P(Watched, UsesAndKeepsNoProcedureOfAnotherTextOrOwner) {
  changed_before(2);
  const std::string name = database_->ask("SELECT proname FROM pg_proc WHERE proname LIKE 'holdfast\\_write\\_%'");
  const std::string arguments =
      "(sent text, held_before text, under text, command text, outcome text, raised text, INOUT answer text)";
  // Of an older version, or of a neighbour's hand: its name, and nothing of what it promises.
  database_->run("CREATE OR REPLACE PROCEDURE " + name + arguments +
                 " LANGUAGE plpgsql AS $$ BEGIN answer := 't(5,99,x)'; END $$");
  receiver_ = opened("accounts", {"id"});
  changed_before(3);
  EXPECT_EQ(version(), "6");
  database_->run("DO $$ BEGIN CREATE ROLE neighbour; EXCEPTION WHEN duplicate_object THEN NULL; END $$");
  database_->run("GRANT CREATE ON SCHEMA public TO neighbour");
  database_->run("ALTER PROCEDURE " + name + " OWNER TO neighbour");
  receiver_ = opened("accounts", {"id"});
  changed_before(2);
  delivered(command("op-1", 5, version(), paid()), paid(), [&] {
    EXPECT_EQ(database_->ask("SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"), "1");
  });
  EXPECT_EQ(state(), "paid");
  database_->run("ALTER PROCEDURE " + name + " OWNER TO holdfast");
  database_->run("REVOKE CREATE ON SCHEMA public FROM neighbour");
}

TEST_P(Watched, GoesOnWhereItsProceduresWereDropped) {
  for (const int warm : kWarm) {
    changed_before(warm);
    forget_procedures();
    changed_before(2);
    receiver_ = opened("accounts", {"id"});
  }
  EXPECT_EQ(version(), "8");
}

// T1: paused between what was judged and the change, it holds no takeover back, and is refused when it goes on.
TEST_P(Watched, APausedOneLetsTheTakeoverThroughAndIsRefusedBehindIt) {
  for (const int warm : kWarm) {
    support::RowWorker old(database_->config());
    for (int time = 0; time < warm; ++time) {
      const std::string id = "old-" + std::to_string(++changes_);
      old.send(command(id, 5, version(), state_set(id)), state_set(id), at_mark(5));
      ASSERT_EQ(old.answer().value("decision", ""), "accepted");
    }
    const std::string was = state();
    old.send(command("op-late", 5, version(), state_set("late")), state_set("late"), at_mark(5), "captured");
    ASSERT_TRUE(old.is_at_point());
    old.process().stop();
    ASSERT_TRUE(granted(raise_mark(*receiver_, kAccounts, Generation{6}, Generation{5})));
    old.process().cont();
    old.go();
    EXPECT_EQ(old.answer().value("decision", ""), "stale_lease_generation");
    EXPECT_EQ(state(), was);
    database_->run("UPDATE holdfast_marks SET generation='5'");
  }
}

TEST_P(Watched, NeedsNoPrivilegeToMakeProcedures) {
  database_->run("DO $$ BEGIN CREATE ROLE guest LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$");
  database_->run("REVOKE CREATE ON SCHEMA public FROM PUBLIC");
  database_->run("GRANT SELECT, INSERT, UPDATE ON accounts, holdfast_marks, holdfast_operations TO guest");
  const std::string connection = support::shared_postgres().connection() + " user=guest";
  auto guest = support::open_row_receiver(Json{{"connection", connection}}, "accounts", {"id"});
  ASSERT_TRUE(granted(guest));
  receiver_ = std::move(*guest);
  changed_before(4);
  EXPECT_EQ(version(), "5");
  EXPECT_EQ(procedures(), "0");
}

TEST_P(Watched, MayLearnTogether) {
  constexpr int kClients = 8;
  for (int round = 0; round < 3; ++round) {
    forget_procedures();
    std::vector<std::thread> clients;
    for (int client = 0; client < kClients; ++client) {
      const std::string row = std::to_string(100 + round * kClients + client);
      database_->run("INSERT INTO accounts(id,version,state) VALUES(" + row + ",1,'new')");
      clients.emplace_back([this, row] {
        const auto mine = opened("accounts", {"id"});
        const std::string payload = payload_of({{"id", {{"integer", row}}}}, {{"state", {{"text", "x"}}}});
        for (int turn = 1; turn <= 4; ++turn) {
          const std::string planned = std::to_string(turn);
          const auto done =
              deliver(*mine, command(row + "-" + planned, 5, planned, payload).to_json(), payload, at_mark(5));
          ASSERT_TRUE(granted(done));
          EXPECT_EQ(done->decision.decision, "accepted");
        }
      });
    }
    for (std::thread& client : clients) client.join();
    EXPECT_EQ(procedures(), "2");
  }
  EXPECT_EQ(database_->ask("SELECT count(*) FROM accounts WHERE version=5"), std::to_string(3 * kClients));
}

// Read-only, serializable, without flushes: the change is made READ COMMITTED, and durable, whatever it was set to.
TEST_P(Watched, ChangesTheSameWhateverItsSessionWasSetTo) {
  changed_before(1);
  const std::string set_otherwise =
      " options='-c default_transaction_isolation=serializable -c default_transaction_read_only=on "
      "-c synchronous_commit=off -c lock_timeout=1'";
  auto own = support::open_row_receiver(Json{{"connection", support::shared_postgres().connection() + set_otherwise}},
                                        "accounts", {"id"});
  ASSERT_TRUE(granted(own));
  receiver_ = std::move(*own);
  database_->run(
      "CREATE OR REPLACE FUNCTION tell() RETURNS trigger AS $$ BEGIN NEW.note = convert_to(concat_ws(',', "
      "current_setting('transaction_isolation'), current_setting('synchronous_commit'), "
      "current_setting('lock_timeout')), 'UTF8'); RETURN NEW; END $$ LANGUAGE plpgsql");
  database_->run("CREATE TRIGGER tells BEFORE UPDATE ON accounts FOR EACH ROW EXECUTE FUNCTION tell()");
  for (int turn = 0; turn < 4; ++turn) {
    database_->run("ALTER TABLE accounts DISABLE TRIGGER tells");
    database_->run("UPDATE accounts SET note=NULL WHERE id=7");
    database_->run("ALTER TABLE accounts ENABLE TRIGGER tells");
    const std::string payload = state_set(std::to_string(turn));
    const Delivery done = delivered(command("op-" + payload, 5, version(), payload), payload, [&] {
      EXPECT_EQ(database_->ask("SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"),
                turn == 0 ? "1" : "0");
    });
    EXPECT_EQ(done.decision.decision, "accepted");
    EXPECT_EQ(kept_.size(), 1U) << "and not by being judged anew";
    EXPECT_EQ(database_->ask("SELECT convert_from(note,'UTF8') FROM accounts WHERE id=7"), "read committed,on,10s");
  }
}

INSTANTIATE_TEST_SUITE_P(Every, Watched,
                         testing::Values(support::every_row_database()[2], support::every_row_database()[3]),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace holdfast::receivers
