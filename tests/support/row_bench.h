// A workbench with a database, a receiver of its rows (session://sqlite.records/accounts) and one that runs programs
// (session://deploy), and words for what tests of acts, commands and handoffs do again and again.
//
//   RowBench bench;                                        // serves; row 7 is ("new", version 1)
//   const Lease lease = bench.acquire(kRows);
//   bench.prepare_row(lease, "op-1", "paid", "1");  bench.approve("op-1");
//   EXPECT_TRUE(bench.commit("op-1", lease).ok());
//   EXPECT_EQ(bench.row(), "paid 2");
#pragma once
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <string>

#include "base/digest.h"
#include "base/json.h"
#include "support/workbench.h"

namespace holdfast::support {

constexpr const char* kRows = "session://sqlite.records/accounts";
constexpr const char* kDeploy = "session://deploy";

class RowBench : public Workbench {
 public:
  explicit RowBench(bool serves_now = true) {
    sql("CREATE TABLE accounts(id INTEGER PRIMARY KEY, state TEXT, version INTEGER NOT NULL);"
        "INSERT INTO accounts VALUES(7,'new',1)");
    if (serves_now) serve();
    EXPECT_TRUE(run({"receiver", "add", "accounts", "--kind", "sqlite", "--database", at("app.db"), "--table",
                     "accounts", "--key", "id", "--version-column", "version"})
                    .ok());
    EXPECT_TRUE(run({"receiver", "add", "deploy", "--kind", "command", "--resource", kDeploy}).ok());
  }

  // The first value of the last row, as text; "" where there is none.
  std::string sql(const std::string& text) const {
    sqlite3* database = nullptr;
    EXPECT_EQ(sqlite3_open(at("app.db").c_str(), &database), SQLITE_OK);
    sqlite3_busy_timeout(database, 30'000);
    std::string value;
    const auto take = [](void* into, int count, char** values, char**) {
      if (count > 0 && values[0] != nullptr) *static_cast<std::string*>(into) = values[0];
      return 0;
    };
    EXPECT_EQ(sqlite3_exec(database, text.c_str(), take, &value, nullptr), SQLITE_OK) << sqlite3_errmsg(database);
    sqlite3_close(database);
    return value;
  }
  std::string row() const { return sql("SELECT state||' '||version FROM accounts WHERE id=7"); }

  static Words change(const std::string& state, const std::string& version) {
    return {"--key", "id=integer:7", "--set", "state=text:" + state, "--precondition", version};
  }
  // Every act is prepared under its id.
  Answer prepare_row(const Lease& lease, const std::string& id, const std::string& state, const std::string& version,
                     const Words& more = {}) const {
    return run(Words{"act", "prepare", lease.scope} + lease.keys() + change(state, version) +
               Words{"--operation-id", id} + more);
  }
  Answer prepare_file(const Lease& lease, const std::string& id, const std::string& bytes,
                      const Words& more = {}) const {
    return run(Words{"act", "prepare", lease.scope} + lease.keys() + Words{"--from", "-", "--operation-id", id} + more,
               bytes);
  }
  Answer approve(const std::string& id, const Words& more = {}) const {
    return run(Words{"act", "approve", id, "--by", "ada"} + more);
  }
  Answer commit(const std::string& id, const Lease& lease, const Words& more = {},
                const Environment& environment = {}) const {
    return run(Words{"act", "commit", id} + lease.keys() + more, "", environment);
  }
  Json act(const std::string& id) const {
    const Answer shown = run({"act", "show", id});
    EXPECT_TRUE(shown.ok()) << shown.text;
    return shown.ok() ? shown.at("act") : Json::object();
  }
  std::string act_path(const std::string& id) const { return ".squad/acts/" + sha256_hex(id) + ".json"; }
  // The verb with this document as the act that its caller means.
  Answer with_act(const Words& words, const Json& shown, int indent = -1) const {
    put("shown.json", shown.dump(indent));
    return run(words + Words{"--act", at("shown.json")});
  }

  // One line for a queue.
  std::string issue(const Lease& lease, const Words& more, const std::string& input = "") const {
    const Answer issued = run(Words{"issue", lease.scope} + lease.keys() + more, input);
    EXPECT_TRUE(issued.ok()) << issued.text;
    return issued.ok() ? issued.document.dump() + "\n" : "";
  }
  // What a worker answered, line for line.
  struct Received {
    int status = -1;
    std::vector<Json> lines;
    std::string code(std::size_t line = 0) const {
      if (line >= lines.size()) return "no line";
      return lines[line].contains("error") ? text_member(lines[line]["error"], "code") : "";
    }
  };
  Received receive(const std::string& queue, const Words& program = {}) const {
    const Answer answer =
        run(Words{"receive"} + (program.empty() ? Words() : Words{"--"} + program), queue.empty() ? "\n" : queue);
    return read(answer);
  }
  static Received read(const Answer& answer) {
    Received received{answer.status, {}};
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = answer.text.find('\n', begin)) != std::string::npos; begin = end + 1) {
      const auto line = parse_json(answer.text.substr(begin, end - begin));
      EXPECT_TRUE(line.has_value()) << answer.text;
      if (line) received.lines.push_back(*line);
    }
    return received;
  }

  std::vector<Json> events(const std::string& kind) const {
    std::vector<Json> found;
    for (const Json& event : run({"evidence", "log"}).document.value("events", Json::array())) {
      if (text_member(event, "kind") == kind) found.push_back(event);
    }
    return found;
  }
};

// What a refusal says beside its code.
inline Json details_of(const Answer& answer) {
  return answer.document.is_object() && answer.document.contains("error") ? answer.document["error"]["details"]
                                                                          : Json();
}

}  // namespace holdfast::support
