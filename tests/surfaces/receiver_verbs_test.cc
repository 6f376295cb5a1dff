// `receiver add`, `list`, `reseed` and `settle`: what a person decides about receivers (CONTRACT sections 5 and 8).
#include <gtest/gtest.h>

#include <filesystem>

#include "support/row_bench.h"

namespace holdfast {
namespace {

using support::Answer;
using support::eventually;
using support::kDeploy;
using support::kRows;
using support::Lease;
using support::RowBench;
using support::Words;
using support::operator+;

class ReceiverVerb : public testing::Test {
 protected:
  Answer add(const std::string& name, const Words& more) { return bench_.run(Words{"receiver", "add", name} + more); }
  Words rows(const std::string& database = "app.db") const {
    return {"--kind",   "sqlite", "--database", bench_.at(database), "--table",
            "accounts", "--key",  "id",         "--version-column",  "version"};
  }
  Json line_of(const std::string& name) {
    const Answer answer = bench_.run({"receiver", "list"});
    for (const Json& line : answer.document.value("receivers", Json::array())) {
      if (line["name"] == name) return line;
    }
    return Json::object();
  }
  RowBench bench_;
};

TEST_F(ReceiverVerb, AddsOneThatWorksAndListsItsMarksBesideTheBuiltIn) {
  EXPECT_EQ(line_of("file")["built_in"], true);
  EXPECT_EQ(line_of("accounts")["reachable"], true);
  EXPECT_TRUE(line_of("accounts")["receiver_mark"].is_null());
  const Lease lease = bench_.acquire(kRows);
  EXPECT_EQ(line_of("accounts")["receiver_mark"], lease.record["generation"]);
  EXPECT_EQ(line_of("accounts")["marks"][kRows], lease.record["generation"]);
  // Inside the workspace its database is kept so that the workspace can move.
  EXPECT_EQ(line_of("accounts")["config"]["database"], "project:/app.db");
  EXPECT_EQ(bench_.events("receiver_added").size(), 2U);
}

TEST_F(ReceiverVerb, RefusesWhatCannotWorkAndRegistersNothing) {
  const auto refuse = [&](const std::string& name, const Words& words, const std::string& code) {
    const Answer answer = add(name, words);
    EXPECT_EQ(answer.code(), code) << name << testing::PrintToString(words) << answer.text;
    EXPECT_TRUE(line_of(name).empty() || name == "file" || name == "accounts") << name;
  };
  refuse("accounts", rows(), "target_exists");
  refuse("again", rows() + Words{"--resource", kRows}, "target_exists");
  for (const char* name : {"file", ".hidden", "a/b", "a b", "..", "\xc3\xa4"}) refuse(name, rows(), "usage");
  refuse(std::string(65, 'a'), rows(), "usage");
  refuse("absent", rows("absent.db"), "receiver_unreachable");
  EXPECT_FALSE(std::filesystem::exists(bench_.at("absent.db")));
  refuse("r", rows() + Words{"--resource", "file://project:/a.txt"}, "usage");
  refuse("r", rows() + Words{"--resource", "mail://x"}, "scope_namespace_unknown");
  refuse("r", {"--kind", "sqlite", "--database", "app.db"}, "usage");
  refuse("r", {"--kind", "http"}, "usage");
  refuse("r", {}, "usage");
  for (const char* column : {"none", ""}) {
    Words words = rows();
    words[7] = column;
    const Answer answer = add("r", words);
    EXPECT_FALSE(answer.ok()) << column;
  }
  Words words = rows();
  words[5] = "no_such_table";
  refuse("r", words, "receiver_unreachable");
}

TEST_F(ReceiverVerb, KeepsNoPassword) {
  for (const char* connection : {"postgresql://ada:secret@db/shop", "postgres://ada:secret@db", "password=secret",
                                 "host=db user=ada password = 'secret'", "postgresql://db/shop?password=secret",
                                 "postgresql://db/shop?p%61ss%77ord=secret", "postgresql://ada:s@cret@db/shop"}) {
    const Answer answer = add(
        "pg", {"--kind", "postgres", "--database", connection, "--table", "t", "--key", "id", "--version-column", "v"});
    EXPECT_EQ(answer.code(), "usage") << connection << answer.text;
    EXPECT_EQ(answer.text.find("secret"), std::string::npos) << connection;
  }
  EXPECT_EQ(bench_.log().find("secret"), std::string::npos);
  // A name in the user part, or a port, is no password: this one is only not there.
  EXPECT_EQ(add("pg", {"--kind", "postgres", "--database", "postgresql://ada@127.0.0.1:1/shop", "--table", "t", "--key",
                       "id", "--version-column", "v"})
                .code(),
            "receiver_unreachable");
}

TEST_F(ReceiverVerb, ReseedsOneThatLostItsMarkAndNothingElseOpensIt) {
  const Lease lease = bench_.acquire(kRows);
  bench_.sql("DELETE FROM holdfast_marks");
  const std::string line = bench_.issue(lease, RowBench::change("lost", "1"));
  EXPECT_EQ(bench_.receive(line).code(), "receiver_high_water_missing");
  EXPECT_EQ(line_of("accounts")["state"], "closed");
  EXPECT_EQ(line_of("accounts")["reason"], "receiver_high_water_missing");
  const Lease fresh = bench_.acquire(kRows, "alice", {"--fresh"});
  EXPECT_EQ(bench_.receive(bench_.issue(fresh, RowBench::change("lost", "1"))).code(), "receiver_high_water_missing");
  EXPECT_EQ(bench_.row(), "new 1");
  EXPECT_EQ(bench_.run({"receiver", "reseed", "accounts"}).code(), "usage") << "a reason is needed";
  EXPECT_EQ(bench_.run({"receiver", "reseed", "nobody", "--reason", "r"}).code(), "not_found");
  const Answer reseeded = bench_.run({"receiver", "reseed", "accounts", "--reason", "restored, looked at"});
  ASSERT_TRUE(reseeded.ok()) << reseeded.text;
  EXPECT_EQ(reseeded.at("mark"), fresh.record["generation"]);
  EXPECT_EQ(bench_.receive(line).code(), "stale_lease_generation") << "what is older stays fenced";
  EXPECT_EQ(bench_.receive(bench_.issue(fresh, RowBench::change("found", "1"))).code(), "");
  EXPECT_EQ(bench_.row(), "found 2");
}

TEST_F(ReceiverVerb, SettlesAProgramThatNeverCameBackAsRunOrNot) {
  for (const bool ran : {true, false}) {
    const std::string id = ran ? "job-ran" : "job-not";
    const Lease lease = bench_.acquire(kDeploy);
    const std::string line = bench_.issue(lease, {"--from", "-", "--operation-id", id}, "p");
    const auto worker =
        bench_.start({"receive", "--", "sh", "-c", "touch " + id + "; while [ -e " + id + " ]; do sleep 0.02; done"});
    worker->write(line);
    ASSERT_TRUE(eventually([&] { return std::filesystem::exists(bench_.at(id)); }));
    worker->kill();
    worker->wait();
    EXPECT_EQ(bench_.receive(line, {"touch", "again"}).code(), "receiver_outcome_unknown");
    EXPECT_FALSE(std::filesystem::exists(bench_.at("again")));
    const Words settle = {"receiver", "settle", "deploy", "--operation", id, "--reason", "looked at"};
    EXPECT_EQ(bench_.run(settle).code(), "usage") << "ran or not has to be said";
    EXPECT_EQ(bench_.run(settle + Words{"--ran", "--not-run"}).code(), "usage");
    ASSERT_TRUE(bench_.run(settle + Words{ran ? "--ran" : "--not-run"}).ok());
    const auto after = bench_.receive(line, {"touch", "again"});
    EXPECT_EQ(after.lines.at(0)["decision"], ran ? "repeated" : "accepted");
    EXPECT_EQ(std::filesystem::exists(bench_.at("again")), !ran);
    EXPECT_EQ(bench_.events("command_settled").size(), ran ? 1U : 2U);
  }
  EXPECT_EQ(bench_.run({"receiver", "settle", "accounts", "--operation", "x", "--ran", "--reason", "r"}).code(),
            "usage")
      << "a receiver of rows knows every outcome";
}

TEST_F(ReceiverVerb, RegistersNothingForWhoMayNotChangeTheWorkspace) {
  const Answer direct = bench_.run({"--direct", "receiver", "reseed", "accounts", "--reason", "r"});
  EXPECT_EQ(direct.code(), "direct_refused_server_lives");
}

TEST(ReceiverVerbs, WorkWithoutAServerAndHoldAcrossOne) {
  RowBench bench(false);
  const Lease lease = bench.acquire(kRows);
  const std::string queue =
      bench.issue(lease, RowBench::change("direct", "1")) + bench.issue(lease, RowBench::change("served", "2"));
  const std::size_t end = queue.find('\n') + 1;
  EXPECT_EQ(bench.receive(queue.substr(0, end)).code(), "");
  EXPECT_EQ(bench.row(), "direct 2");
  bench.serve();
  EXPECT_EQ(bench.receive(queue.substr(end)).code(), "");
  EXPECT_EQ(bench.row(), "served 3");
}

}  // namespace
}  // namespace holdfast
