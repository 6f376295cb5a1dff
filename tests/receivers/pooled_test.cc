// B122: through a proxy that pools transactions, what belongs to a session belongs to whoever comes next. The fence is
// a row in the transaction of the effect, and nothing of a delivery outlives it.
#include <gtest/gtest.h>
#include <libpq-fe.h>

#include <atomic>
#include <thread>
#include <vector>

#include "support/row_receiver.h"

namespace holdfast::receivers {
namespace {

using support::granted;
using support::kAccounts;

class Pooled : public support::RowReceiverTest {
 protected:
  // What a stranger sees who is given a connection that a receiver used, one value.
  std::string as_a_stranger(const std::string& sql) {
    PGconn* connection = PQconnectdb(support::shared_postgres().pooled().c_str());
    PGresult* result = PQexec(connection, sql.c_str());
    EXPECT_EQ(PQresultStatus(result), PGRES_TUPLES_OK) << PQerrorMessage(connection);
    const std::string value = PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : "";
    PQclear(result);
    PQfinish(connection);
    return value;
  }
};

TEST_P(Pooled, OfSeveralClientsOfTwoConnectionsAStaleOneIsRefusedAmongThoseWhoGoOn) {
  constexpr int kClients = 6;
  constexpr int kRounds = 15;
  ASSERT_TRUE(granted(raise_mark(*receiver_, kAccounts, Generation{6}, Generation{5})));
  for (int row = 100; row < 100 + kClients; ++row) {
    database_->run("INSERT INTO accounts VALUES(" + std::to_string(row) + ",1,'new')");
  }
  std::atomic<int> accepted = 0;
  std::atomic<int> stale = 0;
  std::atomic<int> other = 0;
  std::vector<std::thread> clients;
  for (int client = 0; client < kClients; ++client) {
    clients.emplace_back([&, client] {
      const auto mine = opened("accounts", {"id"});
      const bool is_old = client % 3 == 0;
      const std::string payload = payload_of({{"id", {{"integer", std::to_string(100 + client)}}}},
                                             {{"state", {{"text", is_old ? "old" : "new"}}}});
      for (int round = 1; round <= kRounds; ++round) {
        const std::string id = std::to_string(client) + "-" + std::to_string(round);
        const Command one = command(id, is_old ? 5 : 6, std::to_string(is_old ? 1 : round), payload);
        Current current = at_mark(6);
        if (is_old) current.workspace_mark.reset();
        const auto delivery = deliver(*mine, one.to_json(), payload, current);
        const std::string decision(delivery.ok() ? delivery->decision.decision : "unreachable");
        ++(decision == (is_old ? "stale_lease_generation" : "accepted") ? (is_old ? stale : accepted) : other);
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(other, 0);
  EXPECT_EQ(stale, 2 * kRounds);
  EXPECT_EQ(accepted, 4 * kRounds);
  EXPECT_EQ(database_->ask("SELECT count(*) FROM accounts WHERE state='old'"), "0");
  EXPECT_EQ(operations(), std::to_string(4 * kRounds));
}

TEST_P(Pooled, LeavesNothingInTheSessionsThatItUsed) {
  const std::string settings =
      "SELECT current_setting('synchronous_commit')||','||current_setting('lock_timeout')||','||"
      "current_setting('default_transaction_isolation')";
  const std::string before = as_a_stranger(settings);
  for (int round = 1; round <= 4; ++round) {
    const std::string id = std::to_string(round);
    EXPECT_EQ(decided(command("op-" + id, 5, id, paid()).to_json(), paid(), at_mark(5)), "accepted");
    EXPECT_EQ(decided(command("old-" + id, 4, id, paid()).to_json(), paid(), at_mark(5)), "stale_lease_generation");
    EXPECT_EQ(decided(command("no-" + id, 5, "99", paid()).to_json(), paid(), at_mark(5)), "record_version_changed");
    EXPECT_EQ(as_a_stranger(settings), before);
    EXPECT_EQ(as_a_stranger("SELECT count(*) FROM pg_prepared_statements"), "0");
  }
  EXPECT_EQ(database_->ask("SELECT count(*) FROM pg_locks WHERE locktype='advisory'"), "0");
  EXPECT_EQ(database_->ask("SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"), "0");
}

// What a server, a user or a neighbour of the pool set a session to is no part of the fence.
TEST_P(Pooled, JudgesTheSameWhateverItsSessionWasSetTo) {
  const std::string set_otherwise =
      " options='-c default_transaction_isolation=serializable -c default_transaction_read_only=on "
      "-c synchronous_commit=off -c lock_timeout=1'";
  const auto own = support::open_row_receiver(
      Json{{"connection", support::shared_postgres().connection() + set_otherwise}}, "accounts", {"id"});
  ASSERT_TRUE(granted(own));
  database_->run(
      "CREATE OR REPLACE FUNCTION tell() RETURNS trigger AS $$ BEGIN NEW.note = convert_to(concat_ws(',', "
      "current_setting('transaction_isolation'), current_setting('synchronous_commit'), "
      "current_setting('lock_timeout')), 'UTF8'); RETURN NEW; END $$ LANGUAGE plpgsql");
  database_->run("CREATE TRIGGER tells BEFORE UPDATE ON accounts FOR EACH ROW EXECUTE FUNCTION tell()");
  const auto delivery = deliver(**own, command("op-1", 5, "1", paid()).to_json(), paid(), at_mark(5));
  ASSERT_TRUE(granted(delivery));
  EXPECT_EQ(delivery->decision.decision, "accepted");
  EXPECT_EQ(database_->ask("SELECT convert_from(note,'UTF8') FROM accounts WHERE id=7"), "read committed,on,10s");
}

INSTANTIATE_TEST_SUITE_P(Every, Pooled, testing::Values(support::every_row_database().back()),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace holdfast::receivers
