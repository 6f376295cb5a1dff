// `issue` and `receive`: commands that travel by themselves, and the worker at the other end (CONTRACT section 5;
// second seed, T3; field report B62).
#include <gtest/gtest.h>

#include <filesystem>

#include "base/base64.h"
#include "evidence/decision.h"
#include "support/row_bench.h"
#include "support/temporary_folder.h"

namespace holdfast {
namespace {

using support::Answer;
using support::Child;
using support::eventually;
using support::kDeploy;
using support::kRows;
using support::Lease;
using support::RowBench;
using support::Words;
using support::operator+;

class Receive : public testing::Test {
 protected:
  std::string job(const Lease& lease, const std::string& id, const std::string& payload = "p") {
    return bench_.issue(lease, {"--from", "-", "--operation-id", id}, payload);
  }
  support::SpawnOptions in_root() const {
    support::SpawnOptions options;
    options.folder = bench_.root();
    return options;
  }
  RowBench bench_;
};

TEST_F(Receive, TakesWhatWasIssuedToItsReceiverAndAnswersLineForLine) {
  const Lease rows = bench_.acquire(kRows);
  const Lease file = bench_.acquire("a.txt");
  const std::string queue = bench_.issue(rows, RowBench::change("one", "1") + Words{"--operation-id", "op-1"}) +
                            bench_.issue(file, {"--from", "-", "--operation-id", "op-2"}, "by queue") +
                            bench_.issue(rows, RowBench::change("two", "2"));
  const auto received = bench_.receive(queue);
  EXPECT_EQ(received.status, 0);
  ASSERT_EQ(received.lines.size(), 3U);
  for (std::size_t line = 0; line < 3; ++line) {
    EXPECT_EQ(received.lines[line]["line"], line + 1);
    EXPECT_EQ(received.lines[line]["decision"], "accepted");
    EXPECT_FALSE(text_member(received.lines[line], "evidence").empty());
  }
  EXPECT_EQ(received.lines[0]["operation_id"], "op-1");
  EXPECT_EQ(received.lines[0]["observed"]["as_written"], true);
  EXPECT_EQ(received.lines[1]["receiver"], "file");
  EXPECT_EQ(bench_.row(), "two 3");
  EXPECT_EQ(bench_.get("a.txt"), "by queue");
}

TEST_F(Receive, AnswersARepeatedCommandWithItsFirstOutcomeAndDoesNothingTwice) {
  const Lease rows = bench_.acquire(kRows);
  const Lease file = bench_.acquire("a.txt");
  for (const std::string& line :
       {bench_.issue(rows, RowBench::change("one", "1")), bench_.issue(file, {"--from", "-"}, "x")}) {
    const auto first = bench_.receive(line);
    const auto again = bench_.receive(line + line);
    EXPECT_EQ(again.status, 0);
    for (const Json& repeated : again.lines) {
      EXPECT_EQ(repeated["decision"], "repeated");
      EXPECT_EQ(repeated["repeated"], true);
      EXPECT_EQ(repeated["operation_id"], first.lines.at(0)["operation_id"]);
    }
  }
  EXPECT_EQ(bench_.row(), "one 2");
  EXPECT_EQ(bench_.events("command_accepted").size(), 2U);
}

TEST_F(Receive, RefusesWhatIsLateByItsGenerationAtEveryReceiver) {
  std::string queue;
  for (const char* scope : {kRows, kDeploy, "a.txt"}) {
    const Lease old = bench_.acquire(scope);
    queue += bench_.issue(old, scope == std::string(kRows) ? RowBench::change("late", "1") : Words{"--from", "-"},
                          scope == std::string(kRows) ? "" : "late");
    bench_.release(old);
    bench_.acquire(scope, "bob");
  }
  const auto late = bench_.receive(queue, {"touch", "ran"});
  EXPECT_EQ(late.status, 1);
  ASSERT_EQ(late.lines.size(), 3U);
  for (std::size_t line = 0; line < 3; ++line) {
    EXPECT_EQ(late.code(line), "stale_lease_generation") << late.lines[line];
    EXPECT_EQ(late.lines[line]["error"]["effect"], "none");
    EXPECT_FALSE(text_member(late.lines[line]["error"], "evidence").empty());
  }
  EXPECT_EQ(bench_.row(), "new 1");
  EXPECT_FALSE(std::filesystem::exists(bench_.at("ran")));
  EXPECT_FALSE(std::filesystem::exists(bench_.at("a.txt")));
}

TEST_F(Receive, RunsAProgramOnceWithTheWholeCommandInItsEnvironmentAndThePayloadOnItsInput) {
  const Lease lease = bench_.acquire(kDeploy);
  const std::string payload = std::string("bytes\0\xff\n", 8) + std::string(300'000, 'x');
  const std::string line = job(lease, "job-1", payload);
  const Words program = {"sh", "-c",
                         "cat > payload; printf '%s' \"$HOLDFAST_COMMAND\" > command; "
                         "echo \"$HOLDFAST_OPERATION_ID $HOLDFAST_GENERATION $HOLDFAST_SCOPE\" >> ran"};
  const auto received = bench_.receive(line + line, program);
  EXPECT_EQ(received.status, 0);
  ASSERT_EQ(received.lines.size(), 2U);
  EXPECT_EQ(received.lines[0]["outcome"]["exit_status"], 0);
  EXPECT_EQ(received.lines[0]["current"], true);
  EXPECT_EQ(received.lines[1]["decision"], "repeated");
  EXPECT_EQ(received.lines[1]["outcome"], received.lines[0]["outcome"]);
  EXPECT_TRUE(bench_.get("payload") == payload);
  EXPECT_EQ(*parse_json(bench_.get("command")), (*parse_json(line))["command"]);
  EXPECT_EQ(bench_.get("ran"), "job-1 " + text_member(lease.record, "generation") + " " + kDeploy + "\n");
  EXPECT_EQ(bench_.events("command_finished").size(), 1U);
}

TEST_F(Receive, KeepsWhatItsProgramPrintsOutOfItsAnswers) {
  const Lease lease = bench_.acquire(kDeploy);
  const auto received = bench_.receive(job(lease, "job-1"), {"sh", "-c", "echo '{\"decision\":\"forged\"}'"});
  ASSERT_EQ(received.lines.size(), 1U);
  EXPECT_EQ(received.lines[0]["decision"], "accepted");
}

TEST_F(Receive, TellsAProgramsFailureByItsStatusAndNeverRunsItAgain) {
  const Lease lease = bench_.acquire(kDeploy);
  const std::string line = job(lease, "job-1");
  const Words program = {"sh", "-c", "echo x >> ran; exit 3"};
  const auto received = bench_.receive(line, program);
  EXPECT_EQ(received.status, 1);
  EXPECT_EQ(received.lines.at(0)["outcome"]["exit_status"], 3);
  EXPECT_EQ(bench_.receive(line, program).lines.at(0)["outcome"]["exit_status"], 3);
  EXPECT_EQ(bench_.get("ran"), "x\n");
}

TEST_F(Receive, AProgramThatCannotBeStartedLeavesItsCommandFree) {
  const Lease lease = bench_.acquire(kDeploy);
  const std::string line = job(lease, "job-1");
  const auto none = bench_.receive(line, {"no-such-program-anywhere"});
  EXPECT_NE(none.status, 0);
  EXPECT_EQ(none.code(), "command_not_started");
  EXPECT_EQ(bench_.receive(line, {"touch", "ran"}).status, 0);
  EXPECT_TRUE(std::filesystem::exists(bench_.at("ran")));
}

TEST_F(Receive, WithoutAProgramLeavesACommandForOneWhoHasIt) {
  const Lease lease = bench_.acquire(kDeploy);
  const std::string line = job(lease, "job-1");
  EXPECT_EQ(bench_.receive(line).code(), "usage");
  EXPECT_EQ(bench_.receive(line, {"true"}).status, 0);
}

TEST_F(Receive, AProgramWhoseTenancyEndedMeanwhileIsSaid) {
  const Lease lease = bench_.acquire(kDeploy);
  const auto worker =
      bench_.start({"receive", "--", "sh", "-c", "touch began; while [ ! -e go ]; do sleep 0.02; done"});
  worker->write(job(lease, "job-1"));
  worker->close_input();
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(bench_.at("began")); }));
  bench_.release(lease);
  bench_.put("go", "");
  const auto received = RowBench::read(support::Workbench::answer_of(*worker));
  EXPECT_EQ(received.lines.at(0)["current"], false);
  EXPECT_EQ(received.lines.at(0)["outcome"]["tenancy_was_current"], false);
}

TEST_F(Receive, AnswersEachMalformedLineAndGoesOn) {
  const Lease rows = bench_.acquire(kRows);
  const std::string good = bench_.issue(rows, RowBench::change("good", "1"));
  const Json whole = *parse_json(good);
  Words bad = {"{", "[]", "null", "1", "{}", R"({"command":1})", R"({"command":{}})", "\xff\xfe", "{\"a\":1,\"a\":2}"};
  std::vector<std::string> codes(7, "request_malformed");
  codes[6] = "generation_incomparable";
  codes.insert(codes.end(), 2, "request_malformed");
  const auto with = [&](const char* member, const Json& value, const char* code) {
    Json changed = whole;
    changed["command"][member] = value;
    bad.push_back(changed.dump());
    codes.emplace_back(code);
  };
  with("generation", nullptr, "generation_incomparable");
  with("generation", "0", "generation_incomparable");
  with("generation", -1, "generation_incomparable");
  with("issuer", {{"workspace_id", "ws-other"}, {"authority", "local"}}, "generation_incomparable");
  with("resource", "session://nowhere", "not_found");
  with("owner", "", "request_malformed");
  with("more", "x", "request_malformed");
  with("generation", "99", "stale_lease_generation");
  with("owner", "mallory", "stale_lease_generation");
  with("task_id", "other", "stale_lease_generation");
  with("payload_sha256", sha256_hex("other"), "content_corrupted_in_transit");
  Json other_payload = whole;
  other_payload["payload_base64"] = base64_encode("{}");
  bad.push_back(other_payload.dump());
  codes.emplace_back("content_corrupted_in_transit");
  other_payload["payload_base64"] = "not base64!";
  bad.push_back(other_payload.dump());
  codes.emplace_back("usage");
  std::string queue;
  for (const std::string& line : bad) queue += line + "\n";
  const auto received = bench_.receive(queue + "   \n" + good);
  EXPECT_EQ(received.status, 1);
  ASSERT_EQ(received.lines.size(), bad.size() + 1) << "a blank line is none, every other is answered";
  for (std::size_t line = 0; line < bad.size(); ++line) {
    EXPECT_EQ(received.code(line), codes[line]) << bad[line] << received.lines[line];
  }
  EXPECT_EQ(received.lines.back()["decision"], "accepted");
  EXPECT_EQ(bench_.row(), "good 2");
}

TEST_F(Receive, ALineThatIsTooLongEndsNothingAndALastLineNeedsNoEnd) {
  const Lease rows = bench_.acquire(kRows);
  std::string good = bench_.issue(rows, RowBench::change("good", "1"));
  good.pop_back();
  bench_.put("queue", std::string((32U << 20U) + 100'000, 'x') + "\n" + good);
  Child child = support::spawn({"sh", "-c", std::string("exec ") + HOLDFAST_PROGRAM + " --workspace . receive < queue"},
                               in_root());
  const auto received = RowBench::read(support::Workbench::answer_of(child));
  ASSERT_EQ(received.lines.size(), 2U);
  EXPECT_EQ(received.code(0), "request_malformed");
  EXPECT_EQ(received.lines[1]["decision"], "accepted");
}

TEST_F(Receive, WhoseAnswersNobodyCanReadStopsAsTheMachineFailed) {
  bench_.put("queue", "{\n{\n");
  Child child = support::spawn(
      {"sh", "-c", std::string("exec ") + HOLDFAST_PROGRAM + " --workspace . receive < queue > /dev/full 2> /dev/null"},
      in_root());
  EXPECT_EQ(child.wait(), 5);
}

TEST_F(Receive, LeavesNothingOfItsPayloadsBehind) {
  std::filesystem::create_directory(bench_.at("tmp"));
  const Lease lease = bench_.acquire(kDeploy);
  const Answer answer = bench_.run({"receive", "--", "true"}, job(lease, "job-1"), {{"TMPDIR", bench_.at("tmp")}});
  EXPECT_EQ(answer.status, 0);
  EXPECT_TRUE(std::filesystem::is_empty(bench_.at("tmp")));
}

// Every decision stands in the evidence with what it was made from, and follows from that alone.
TEST_F(Receive, LeavesDecisionsThatFollowFromTheirRecordedInputs) {
  const Lease rows = bench_.acquire(kRows);
  const Lease file = bench_.acquire("a.txt");
  const Lease deploy = bench_.acquire(kDeploy);
  const auto row = [&](const char* state, const char* version, const char* id) {
    return bench_.issue(rows, RowBench::change(state, version) + Words{"--operation-id", id});
  };
  const std::string good = row("good", "1", "op-1");
  const std::string write = bench_.issue(file, {"--from", "-", "--operation-id", "op-f"}, "x");
  Json foreign = *parse_json(good);
  foreign["command"]["issuer"]["workspace_id"] = "ws-other";
  bench_.receive(good + good + row("reused", "2", "op-1") + row("old", "1", "op-2") + foreign.dump() + "\n" + write +
                 write);
  Json nobody =
      *parse_json(bench_.issue(rows, {"--key", "id=integer:8", "--set", "state=text:x", "--precondition", "1"}));
  bench_.receive(nobody.dump() + "\n" + job(deploy, "job-1"), {"true"});
  const std::string late = row("late", "2", "op-late");
  const std::string late_write = bench_.issue(file, {"--from", "-"}, "late");
  bench_.release(rows);
  bench_.release(file);
  bench_.receive(late + late_write + good);
  std::map<std::string, int> decisions;
  using Verdict = evidence::Recomputed::Verdict;
  for (const char* kind : {"command_accepted", "command_repeated", "command_refused"}) {
    for (const Json& event : bench_.events(kind)) {
      ++decisions[text_member(event["facts"], "decision")];
      EXPECT_EQ(evidence::recompute(event["facts"]).verdict, Verdict::agrees) << event;
      Json other = event["facts"];
      other["decision"] = text_member(other, "decision") == "accepted" ? "repeated" : "accepted";
      EXPECT_EQ(evidence::recompute(other).verdict, Verdict::differs) << event;
    }
  }
  EXPECT_EQ(decisions, (std::map<std::string, int>{{"accepted", 3},
                                                   {"generation_incomparable", 1},
                                                   {"operation_id_reused", 1},
                                                   {"record_missing", 1},
                                                   {"record_version_changed", 1},
                                                   {"repeated", 3},
                                                   {"stale_lease_generation", 2}}));
  const support::TemporaryFolder elsewhere;
  ASSERT_TRUE(bench_.run({"evidence", "export", "--to", elsewhere.at("package")}).ok());
  const Answer verified = bench_.run({"evidence", "verify", elsewhere.at("package")});
  ASSERT_TRUE(verified.ok()) << verified.text;
  EXPECT_EQ(verified.at("verified"), true);
  EXPECT_EQ(bench_.row(), "good 2");
}

class Issue : public Receive {};

TEST_F(Issue, GivesACommandOfTheCurrentTenancyOnlyAndSaysThatItIsOnItsWay) {
  const Lease lease = bench_.acquire(kRows);
  const Json envelope = *parse_json(bench_.issue(lease, RowBench::change("paid", "1")));
  const Json& command = envelope["command"];
  EXPECT_EQ(command["generation"], lease.record["generation"]);
  EXPECT_EQ(command["owner"], "alice");
  EXPECT_EQ(command["precondition"], "1");
  EXPECT_EQ(command["payload_sha256"], sha256_hex(*base64_decode(text_member(envelope, "payload_base64"))));
  const Json event = bench_.events("command_issued").at(0);
  EXPECT_EQ(event["facts"]["travels"], true);
  EXPECT_EQ(event["facts"]["command"], command);
  EXPECT_EQ(event["id"], envelope["evidence"]);
  bench_.release(lease);
  const Answer stale = bench_.run(Words{"issue", kRows} + lease.keys() + RowBench::change("paid", "1"));
  EXPECT_EQ(stale.code(), "stale_lease_generation");
  EXPECT_EQ(bench_.events("command_issued").size(), 1U);
}

TEST_F(Issue, PrintsOneLineForAQueueToPeopleToo) {
  const Lease lease = bench_.acquire(kRows);
  Child child = support::spawn(Words{HOLDFAST_PROGRAM, "--workspace", bench_.root(), "issue", kRows} + lease.keys() +
                               RowBench::change("paid", "1"));
  child.close_input();
  const std::string text = child.read_all();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  const auto envelope = parse_json(text);
  ASSERT_TRUE(envelope);
  EXPECT_EQ(envelope->size(), 2U);
  EXPECT_EQ(bench_.receive(text).code(), "");
  EXPECT_EQ(bench_.row(), "paid 2");
}

TEST_F(Issue, IsRefusedWhereItsWordsAreNone) {
  const Lease lease = bench_.acquire(kRows);
  const auto issue = [&](const Words& more) { return bench_.run(Words{"issue", kRows} + lease.keys() + more); };
  for (const Words& wrong : {Words{},
                             {"--from", "-", "--set", "a=text:x"},
                             {"--key", "id"},
                             {"--key", "=integer:7"},
                             {"--key", "id=7"},
                             {"--key", "id=number:7"},
                             {"--key", "id=integer:7", "--key", "id=integer:8"},
                             {"--set", "state=real:x"},
                             {"--set", "state=null:x"},
                             {"--key", "id=integer:7", "--set", "s=\xff"}}) {
    const Answer answer = issue(wrong);
    EXPECT_EQ(answer.code(), "usage") << testing::PrintToString(wrong) << answer.text;
    EXPECT_EQ(answer.status, 2);
  }
  EXPECT_EQ(bench_.run({"issue", kRows, "--key", "id=integer:7"}).status, 2) << "without keys";
  EXPECT_TRUE(bench_.events("command_issued").empty());
  EXPECT_TRUE(issue({"--key", "id=integer:7", "--set", "a=real:1.5", "--set", "b=null", "--set", "c=blob:AAE=", "--set",
                     "d=text:x:y=z"})
                  .ok());
}

// B62: the receivers come with the program. A sample without a line of its own about generations is fenced: the worker
// that fell asleep with its commands changes nothing once somebody else holds the resource.
TEST(FieldReportB62, ASampleWithNoFencingCodeOfItsOwnIsFenced) {
  RowBench bench;
  bench.put("sample.sh", R"(set -e
holdfast() { ")" HOLDFAST_PROGRAM R"(" --workspace . "$@"; }
holdfast --json acquire session://sqlite.records/accounts --owner "$1" --task orders > "$1.lease"
holdfast issue session://sqlite.records/accounts --lease "$1.lease" --key id=integer:7 --set "state=text:$1" \
  --precondition "$2" > "$1.queue"
holdfast --json act prepare session://sqlite.records/accounts --lease "$1.lease" --key id=integer:7 \
  --set "state=text:$1-act" --precondition "$3" --operation-id "$1-act" > /dev/null
holdfast act approve "$1-act" > /dev/null
echo ready; read -r go
status=0
holdfast receive < "$1.queue" >> "$1.answers" || status=$?
holdfast --json act commit "$1-act" --lease "$1.lease" >> "$1.answers" || status=$?
exit $status
)");
  const auto worker = [&](const char* name, const char* version, const char* next) {
    return support::spawn({"sh", "sample.sh", name, version, next},
                          {.folder = bench.root(), .environment = {}, .stderr_to_stdout = true});
  };
  Child slow = worker("slow", "1", "2");
  ASSERT_EQ(slow.read_line(), "ready");
  slow.stop();
  const Json lease = (*parse_json(bench.get("slow.lease")))["leases"][0];
  ASSERT_TRUE(bench.release(Lease{kRows, lease}).ok());
  Child fast = worker("fast", "1", "2");
  ASSERT_EQ(fast.read_line(), "ready");
  fast.write("go\n");
  EXPECT_EQ(fast.wait(), 0) << bench.get("fast.answers");
  EXPECT_EQ(bench.row(), "fast-act 3");
  slow.cont();
  slow.write("go\n");
  EXPECT_EQ(slow.wait(), 1);
  EXPECT_EQ(bench.row(), "fast-act 3");
  const std::string answers = bench.get("slow.answers");
  EXPECT_NE(answers.find("stale_lease_generation"), answers.rfind("stale_lease_generation")) << answers;
}

}  // namespace
}  // namespace holdfast
