// A command to a row through the whole program (socket, transition, the receiver's process, the state before in the
// vault, the event), beside the bare durable UPDATE of another row of the same database, by turns.
#include <benchmark/benchmark.h>
#include <sqlite3.h>

#include "base/base64.h"
#include "base/digest.h"
#include "base/json.h"
#include "ground.h"
#include "pairs.h"

namespace holdfast {
namespace {

using bench::ask;
using bench::Ground;
using bench::Pairs;

constexpr const char* kSession = "session://sqlite.records/accounts";

sqlite3* database() {
  static sqlite3* opened = [] {
    sqlite3* made = nullptr;
    sqlite3_open(Ground::get().folder().at("app.db").c_str(), &made);
    sqlite3_busy_timeout(made, 10'000);
    sqlite3_exec(made,
                 "PRAGMA synchronous=FULL;"
                 "CREATE TABLE accounts(id INTEGER PRIMARY KEY, version INTEGER NOT NULL, state TEXT);"
                 "INSERT INTO accounts VALUES(1,1,'new'),(2,1,'new')",
                 nullptr, nullptr, nullptr);
    return made;
  }();
  return opened;
}

Json command_of(const Json& record, std::int64_t version, const std::string& payload, const std::string& operation_id) {
  const Json contract = record["contract"];
  return Json{{"operation_id", operation_id},
              {"resource", kSession},
              {"operation_family", "act"},
              {"consequence_class", contract["consequence_class"]},
              {"owner", record["owner"]},
              {"task_id", record["task_id"]},
              {"generation", record["generation"]},
              {"control_epoch", record["control_epoch"]},
              {"issuer", contract["issuer"]},
              {"precondition", std::to_string(version)},
              {"payload_sha256", sha256_hex(payload)}};
}

void delivered_row(benchmark::State& state) {
  sqlite3* const bare = database();
  const auto connection = Ground::get().connect();
  ask(*connection, "receiver_add",
      Json{{"name", "accounts"},
           {"kind", "sqlite"},
           {"config",
            {{"database", Ground::get().folder().at("app.db")},
             {"table", "accounts"},
             {"key_columns", {"id"}},
             {"version_column", "version"}}}});
  const Json lease =
      ask(*connection, "acquire", Json{{"scopes", {kSession}}, {"owner", "ada"}, {"task", "bench"}})["leases"][0];
  Pairs pairs;
  std::int64_t version = 1;
  for (auto _ : state) {
    const std::string payload = dump_canonical(
        Json{{"key", {{"id", {{"integer", "2"}}}}}, {"set", {{"state", {{"text", std::to_string(version)}}}}}});
    const std::string id = "op-" + std::to_string(version);
    pairs.add(
        state,
        [bare] {
          if (sqlite3_exec(bare, "UPDATE accounts SET state='paid', version=version+1 WHERE id=1", nullptr, nullptr,
                           nullptr) != SQLITE_OK) {
            std::abort();
          }
        },
        [&] {
          ask(*connection, "deliver",
              Json{{"command", command_of(lease, version, payload, id)}, {"payload_base64", base64_encode(payload)}});
        });
    ++version;
  }
  pairs.report(state);
}
BENCHMARK(delivered_row)->UseManualTime()->Iterations(300)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace holdfast

BENCHMARK_MAIN();
