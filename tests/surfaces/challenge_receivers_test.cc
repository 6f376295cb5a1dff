// `holdfast challenge` t1 to t4 and all, on every receiver that can be had.
#include <gtest/gtest.h>
#include <libpq-fe.h>
#include <sqlite3.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "base/digest.h"
#include "base/json.h"
#include "support/child.h"
#include "support/private_postgres.h"
#include "support/temporary_folder.h"

namespace holdfast {
namespace {

namespace fs = std::filesystem;
using support::Child;
using support::TemporaryFolder;
using Words = std::vector<std::string>;

struct Ran {
  int status = 0;
  std::string out;
  Json document() const { return parse_json(out).value_or(Json::object()); }
};

class ChallengeOnReceivers : public testing::Test {
 protected:
  Ran run(Words words, const std::string& path = "") {
    words.insert(words.begin(), HOLDFAST_PROGRAM);
    support::SpawnOptions options;
    options.folder = folder_.path();
    options.environment = {{"TMPDIR", temporary_.path()}};
    if (!path.empty()) options.environment["PATH"] = path;
    Child child = support::spawn(words, options);
    child.close_input();
    Ran ran;
    ran.out = child.read_all();
    ran.status = child.wait();
    return ran;
  }

  static Json step(const Json& document, const std::string& title) {
    for (const Json& one : document.value("steps", Json::array())) {
      if (text_member(one, "step") == title) return one;
    }
    ADD_FAILURE() << "no step " << title << " in " << document.dump(1);
    return Json::object();
  }

  // The lines of a step that say how it went with one receiver.
  static std::vector<std::string> lines_on(const Json& step, const std::string& receiver) {
    std::vector<std::string> lines;
    for (const Json& line : step.value("shown", Json::array())) {
      if (line.get<std::string>().find("-> " + receiver + " ") != std::string::npos) lines.push_back(line);
    }
    return lines;
  }

  static bool stays_unknown(const Json& document, const std::string& what) {
    for (const Json& text : document.value("unknown", Json::array())) {
      if (text.get<std::string>().find(what) != std::string::npos) return true;
    }
    return false;
  }

  Json passes(const Words& words, const std::string& path = "") {
    Words all = {"--json", "challenge"};
    all.insert(all.end(), words.begin(), words.end());
    const Ran ran = run(all, path);
    const Json document = ran.document();
    EXPECT_EQ(ran.status, 0) << ran.out;
    EXPECT_EQ(document.value("passed", false), true);
    EXPECT_EQ(text_member(document, "challenge"), words.front());
    return document;
  }

  // Verifies elsewhere, without the workspace and its program's folder.
  Json verified(const Json& document) {
    const std::string moved = elsewhere_.at("package-" + std::to_string(++packages_));
    fs::copy(text_member(document, "package"), moved, fs::copy_options::recursive);
    const Ran ran = run({"--json", "evidence", "verify", moved});
    EXPECT_EQ(ran.status, 0) << ran.out;
    package_ = moved;
    return ran.document();
  }

  TemporaryFolder folder_;
  TemporaryFolder temporary_;
  TemporaryFolder elsewhere_;
  std::string package_;
  int packages_ = 0;
};

void expect_stale(const std::vector<std::string>& lines) {
  ASSERT_FALSE(lines.empty());
  for (const std::string& line : lines) {
    EXPECT_NE(line.find("unchanged, stale_lease_generation: expected "), std::string::npos) << line;
  }
}

TEST_F(ChallengeOnReceivers, T1RefusesWhatAPausedWorkerHeldOnEveryReceiver) {
  const Json document = passes({"t1"});
  const Json late = step(document, "A delivers the commands that it held");
  for (const char* receiver : {"file", "sqlite", "command"}) expect_stale(lines_on(late, receiver));
  EXPECT_EQ(late["facts"]["before"], late["facts"]["after"]);
  EXPECT_TRUE(stays_unknown(document, "PostgreSQL")) << "what was not shown is said";
  const Json found = verified(document);
  EXPECT_GE(found["decisions"]["in_chain"], 5) << "B's two commands and A's three are in the chain, with their inputs";
}

TEST_F(ChallengeOnReceivers, T2LetsOnlyTheHighestGenerationThroughWhereTwoAuthoritiesNameTwoOwners) {
  const Json document = passes({"t2"});
  EXPECT_EQ(text_member(step(document, "each side names another owner"), "outcome"), "two owners");
  for (const char* title : {"A acts, with its authority's consent", "A acts again, on what B left"}) {
    for (const char* receiver : {"sqlite", "command"}) expect_stale(lines_on(step(document, title), receiver));
  }
  // A's authority knows nothing of B: the number that it is told is the receiver's.
  const Json answers = step(document, "A acts, with its authority's consent")["facts"]["answers"];
  EXPECT_EQ(answers["A-sqlite-1"]["error"]["details"]["current"],
            answers["A-sqlite-1"]["error"]["details"]["receiver_mark"]);
  expect_stale(lines_on(step(document, "A's commands arrive on B's side"), "file"));
  const Json found = verified(document);
  EXPECT_GE(found["parts"]["side-of-a"]["decisions"]["in_chain"], 4);
  EXPECT_TRUE(stays_unknown(document, "partition of networks"));
}

TEST_F(ChallengeOnReceivers, T3RefusesDelayedItemsAndAnswersAppliedOnesWithTheirFirstOutcome) {
  const Json document = passes({"t3"});
  EXPECT_EQ(text_member(step(document, "a queue"), "outcome"), "Redis");
  const Json late = step(document, "the delayed items are delivered");
  for (const char* receiver : {"file", "sqlite", "command"}) expect_stale(lines_on(late, receiver));
  for (const auto& [id, answer] : late["facts"]["answers"].items()) {
    EXPECT_TRUE(text_member(answer["error"], "evidence").starts_with("ev-")) << id;
  }
  const Json again = step(document, "B's items are delivered a second time");
  EXPECT_EQ(again["facts"]["before"], again["facts"]["after"]);
  EXPECT_EQ(text_member(step(document, "the handoffs are closed"), "outcome"), "closed");
  verified(document);
}

TEST_F(ChallengeOnReceivers, T3TakesAFileForAQueueWhereThereIsNoRedisAndSaysSo) {
  const Json document = passes({"t3"}, elsewhere_.path());
  EXPECT_EQ(text_member(step(document, "a queue"), "outcome"), "a file");
  EXPECT_TRUE(stays_unknown(document, "redis-server is not installed"));
}

TEST_F(ChallengeOnReceivers, T4KeepsReceiversThatLostTheirMarkClosedUntilTheyAreReseeded) {
  const Json document = passes({"t4"});
  for (const char* receiver : {"sqlite", "command"}) {
    const auto closed = lines_on(step(document, "they are closed, for B and for A"), receiver);
    ASSERT_EQ(closed.size(), 2U);
    for (const std::string& line : closed) {
      EXPECT_NE(line.find("unchanged, receiver_high_water_missing"), std::string::npos) << line;
    }
    expect_stale(lines_on(step(document, "A's late commands are stale"), receiver));
    const auto taken = lines_on(step(document, "B's commands are taken again"), receiver);
    ASSERT_EQ(taken.size(), 1U);
    EXPECT_NE(taken.front().find("accepted"), std::string::npos);
  }
  EXPECT_EQ(step(document, "the workspace's own store is gone")["facts"]["refused"]["error"]["code"],
            "generation_store_missing");
  EXPECT_EQ(step(document, "... and is an old one")["facts"]["refused"]["error"]["code"],
            "generation_checkpoint_mismatch");
  verified(document);
}

TEST_F(ChallengeOnReceivers, AllPlaysEachIntoOnePackageOfParts) {
  const Json document = passes({"all"});
  std::map<std::string, int> steps;
  for (const Json& one : document["steps"]) ++steps[text_member(one, "challenge")];
  const Json found = verified(document);
  for (const char* name : {"stale-writer", "t1", "t2", "t3", "t4"}) {
    EXPECT_GT(steps[name], 5) << name;
    EXPECT_EQ(found["parts"][name]["verified"], true) << name;
    EXPECT_EQ(document["challenges"][name]["passed"], true) << name;
  }
}

TEST_F(ChallengeOnReceivers, MakePackagesThatDoNotVerifyOnceAnyFileOfAnyPartIsChanged) {
  const Json document = passes({"t2"});
  verified(document);
  int changed = 0;
  for (const auto& entry : fs::recursive_directory_iterator(package_)) {
    if (!entry.is_regular_file()) continue;
    const std::string name = fs::relative(entry.path(), elsewhere_.path()).string();
    const std::string whole = elsewhere_.read(name);
    std::string other = whole;
    other[other.size() / 2] = static_cast<char>(other[other.size() / 2] ^ 1);
    elsewhere_.write(name, other);
    EXPECT_NE(run({"--json", "evidence", "verify", package_}).status, 0) << name;
    elsewhere_.write(name, whole);
    ++changed;
  }
  EXPECT_GE(changed, 8) << "manifest, digest, chain, steps and decisions, and the part's own";
  EXPECT_EQ(run({"--json", "evidence", "verify", package_}).status, 0);
}

// Whoever computes the digests anew still has to make a decision that follows from what is recorded beside it.
TEST_F(ChallengeOnReceivers, MakePackagesWhoseDecisionsHaveToFollowFromTheirInputs) {
  verified(passes({"t3"}));
  const auto inside = [&](const std::string& name) { return fs::relative(package_ + "/" + name, elsewhere_.path()); };
  std::string decisions = elsewhere_.read(inside("decisions.json"));
  const std::string stale = "\"decision\": \"stale_lease_generation\"";
  ASSERT_NE(decisions.find(stale), std::string::npos);
  decisions.replace(decisions.find(stale), stale.size(), "\"decision\": \"accepted\"");
  elsewhere_.write(inside("decisions.json"), decisions);
  Json manifest = *parse_json(elsewhere_.read(inside("manifest.json")));
  manifest["files"]["decisions.json"] = sha256_hex(decisions);
  const std::string text = manifest.dump(2);
  elsewhere_.write(inside("manifest.json"), text);
  elsewhere_.write(inside("manifest.sha256"), sha256_hex(text) + "  manifest.json\n");
  const Json found = run({"--json", "evidence", "verify", package_}).document();
  EXPECT_EQ(found["error"]["details"]["first_break"]["file"], "decisions.json") << found;
}

// Somebody writes past the receiver while the old worker's command is refused: the row did change, and the challenge
// has to say so, whatever the receiver answered.
TEST_F(ChallengeOnReceivers, FailWhereAReceiversRowChangesThoughItsCommandWasRefused) {
  std::atomic<bool> ended{false};
  std::thread saboteur([&] {
    for (int number = 100; !ended.load(); ++number) {
      for (const auto& entry : fs::directory_iterator(temporary_.path())) {
        const std::string path = entry.path().string() + "/rows.sqlite";
        sqlite3* database = nullptr;
        if (sqlite3_open_v2(path.c_str(), &database, SQLITE_OPEN_READWRITE, nullptr) == SQLITE_OK) {
          sqlite3_busy_timeout(database, 1000);
          const std::string sql = "INSERT INTO accounts VALUES(" + std::to_string(number) + ",'foreign',1)";
          sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr);
        }
        sqlite3_close(database);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  const Ran ran = run({"--json", "challenge", "t1"});
  ended = true;
  saboteur.join();
  const Json document = ran.document();
  EXPECT_EQ(ran.status, 1) << ran.out;
  EXPECT_EQ(document.value("passed", true), false);
  const auto lines = lines_on(step(document, "A delivers the commands that it held"), "sqlite");
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines.front().find("CHANGED"), std::string::npos) << lines.front();
  EXPECT_EQ(run({"evidence", "verify", text_member(document, "package")}).status, 0) << "what failed is evidence, too";
}

// A queue that loses its items shows nothing about late ones.
TEST_F(ChallengeOnReceivers, FailWhereTheDelayedItemsNeverArrive) {
  elsewhere_.write("redis-cli",
                   "#!/bin/sh\nPATH=${PATH#*:}\ncase \"$*\" in *XAUTOCLAIM*) exit 0;; esac\nexec redis-cli \"$@\"\n");
  fs::permissions(elsewhere_.at("redis-cli"), fs::perms::owner_all);
  const Ran ran = run({"--json", "challenge", "t3"}, elsewhere_.path() + ":/usr/bin:/bin");
  EXPECT_EQ(ran.status, 1) << ran.out;
  EXPECT_EQ(step(ran.document(), "the delayed items are delivered").value("passed", true), false);
}

class ChallengeOnPostgres : public ChallengeOnReceivers {
 protected:
  std::string schemas() {
    PGconn* opened = PQconnectdb(server_.connection().c_str());
    PGresult* found = PQexec(opened, "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'holdfast%'");
    std::string count = PQresultStatus(found) == PGRES_TUPLES_OK ? PQgetvalue(found, 0, 0) : "?";
    PQclear(found);
    PQfinish(opened);
    return count;
  }
  support::PrivatePostgres server_;
};

TEST_F(ChallengeOnPostgres, ShowsARowThereTooInASchemaOfItsOwnThatIsGoneAfterwards) {
  ASSERT_TRUE(server_.is_ready()) << server_.why_not();
  const auto on_postgres = [&](const char* name, const char* title) {
    const Json document = passes({name, "--postgres", server_.connection()});
    EXPECT_FALSE(stays_unknown(document, "PostgreSQL")) << name;
    expect_stale(lines_on(step(document, title), "postgres"));
    verified(document);
    EXPECT_EQ(schemas(), "0") << name;
    return document;
  };
  on_postgres("t1", "A delivers the commands that it held");
  on_postgres("t2", "A acts, with its authority's consent");
  on_postgres("t3", "the delayed items are delivered");
  const Json lost = on_postgres("t4", "A's late commands are stale");
  EXPECT_EQ(lines_on(step(lost, "they are closed, for B and for A"), "postgres").size(), 2U);
}

TEST_F(ChallengeOnPostgres, RefusesAConnectionWithAPasswordBeforeAnythingIsWritten) {
  const Ran ran = run({"--json", "challenge", "t1", "--postgres", "postgres://me:secret@localhost/x"});
  EXPECT_EQ(ran.status, 2) << ran.out;
  EXPECT_EQ(ran.out.find("secret"), std::string::npos);
  EXPECT_TRUE(fs::is_empty(temporary_.path()));
}

}  // namespace
}  // namespace holdfast
