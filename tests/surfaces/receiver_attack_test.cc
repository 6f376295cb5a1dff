// Attacks on the way of a command: its envelope, the stream that it travels in, the worker that takes it. Whatever is
// sent, the effect is there once at most, and every answer is one of the catalogue.
#include <gtest/gtest.h>

#include <csignal>
#include <set>
#include <sstream>

#include "base/base64.h"
#include "base/digest.h"
#include "support/row_workbench.h"

namespace holdfast {
namespace {

using support::Answer;
using support::Lease;
using support::RowDatabase;
using support::RowWorkbench;
using support::Words;
using support::Workbench;
using support::operator+;

using Codes = std::set<std::string>;

// A value that the member did not have, by name; what a changed command may be answered with.
struct Change {
  std::string member;
  Json value;
  Codes refused_with;
};

std::vector<Change> changes_that_are_refused(std::uint64_t generation) {
  const Codes no_order = {"generation_incomparable"};
  const Codes no_command = {"request_malformed"};
  std::vector<Change> changes = {{"generation", std::to_string(generation + 1), {"stale_lease_generation"}},
                                 {"generation", std::to_string(generation - 1), {"stale_lease_generation"}},
                                 {"generation", "18446744073709551615", {"stale_lease_generation"}},
                                 {"control_epoch", "99", {"control_epoch_revoked"}},
                                 {"owner", "mallory", {"stale_lease_generation"}},
                                 {"owner", "", no_command},
                                 {"task_id", "other", {"stale_lease_generation"}},
                                 {"issuer", {{"workspace_id", "ws-0"}, {"authority", "local"}}, no_order},
                                 {"issuer", "local", no_command},
                                 {"issuer", {{"workspace_id", "ws-0"}}, no_command},
                                 {"payload_sha256", sha256_hex("other"), {"content_corrupted_in_transit"}},
                                 {"payload_sha256", "x", {"content_corrupted_in_transit"}},
                                 {"resource", "session://nowhere", {"not_found"}},
                                 {"resource", "no scope", {"scope_outside_workspace"}},
                                 {"resource", 7, no_command},
                                 {"operation_family", Json::array(), no_command},
                                 {"operation_id", nullptr, no_command},
                                 {"consequence_class", 1.5, no_command},
                                 {"parent_operation_id", Json::object(), no_command},
                                 {"a_member_that_is_none", "x", no_command}};
  for (const Json& none : {Json("0"), Json("-1"), Json("06"), Json(" 6"), Json(1.5), Json(nullptr), Json("six")}) {
    changes.push_back({"generation", none, no_order});
    changes.push_back({"control_epoch", none, no_order});
  }
  return changes;
}

std::string with(const std::string& envelope, const std::string& member, const Json& value) {
  Json changed = *parse_json(envelope);
  changed["command"][member] = value;
  return dump_ascii(changed) + "\n";
}

class AttackedRow : public testing::Test {
 protected:
  AttackedRow() : ground_("sqlite") {
    ground_.bench.serve();
    EXPECT_TRUE(ground_.add().ok());
    // So that there is a generation below its own.
    EXPECT_TRUE(ground_.bench.release(ground_.acquire("before")).ok());
    lease_ = ground_.acquire("ada");
    envelope_ = ground_.issue(lease_, "op-1", "1");
  }
  RowWorkbench ground_;
  Lease lease_;
  std::string envelope_;
};

TEST_F(AttackedRow, EveryMemberOfItsCommandThatIsChangedIsRefusedAndTheCommandStillWorks) {
  for (const Change& change : changes_that_are_refused(lease_.generation())) {
    const Answer answer = ground_.deliver(with(envelope_, change.member, change.value));
    EXPECT_TRUE(change.refused_with.contains(answer.code()))
        << change.member << " " << change.value << ": " << answer.text;
    ASSERT_EQ(ground_.rows.version(), "1") << change.member << " " << change.value;
  }
  for (const auto& [member, value] : parse_json(envelope_)->at("command").items()) {
    Json without = *parse_json(envelope_);
    without["command"].erase(member);
    const Answer answer = ground_.deliver(dump_ascii(without) + "\n");
    EXPECT_FALSE(answer.code().empty()) << member << ": " << answer.text;
    ASSERT_EQ(ground_.rows.version(), "1") << member;
  }
  EXPECT_EQ(ground_.deliver(with(envelope_, "precondition", "2")).code(), "record_version_changed");
  EXPECT_EQ(ground_.deliver(with(envelope_, "precondition", "one")).code(), "request_malformed");
  // What tells no operation apart is the same command: it has its effect once, under whichever words.
  EXPECT_EQ(ground_.deliver(with(envelope_, "consequence_class", "irreversible")).at("repeated"), false);
  EXPECT_EQ(ground_.deliver(envelope_).at("repeated"), true);
  EXPECT_EQ(ground_.deliver(with(envelope_, "parent_operation_id", "op-0")).at("repeated"), true);
  EXPECT_EQ(ground_.deliver(with(envelope_, "operation_family", "other")).code(), "operation_id_reused");
  EXPECT_EQ(ground_.deliver(with(envelope_, "precondition", "2")).code(), "operation_id_reused");
  EXPECT_EQ(ground_.deliver(with(envelope_, "operation_id", "op-2")).code(), "record_version_changed");
  EXPECT_EQ(ground_.rows.version(), "2");
  EXPECT_EQ(ground_.rows.applied(), "1");
  EXPECT_TRUE(ground_.is_open());
}

// Every decision of the evidence, of good commands and of changed ones, is what its inputs give.
TEST_F(AttackedRow, LeavesDecisionsThatCanBeComputedAgain) {
  for (const Change& change : changes_that_are_refused(lease_.generation())) {
    (void)ground_.deliver(with(envelope_, change.member, change.value));
  }
  EXPECT_TRUE(ground_.deliver(envelope_).ok());
  ground_.bench.put("a.txt", "old");
  const Lease file = ground_.bench.acquire("a.txt");
  const Answer issued = ground_.bench.run(
      Words{"issue", "a.txt"} + file.keys() + Words{"--from", "-", "--precondition", sha256_hex("old")}, "new");
  for (const Json& epoch : {Json("2"), Json("9")}) {
    EXPECT_EQ(ground_.deliver(with(issued.text, "control_epoch", epoch)).code(), "control_epoch_revoked");
  }
  EXPECT_TRUE(ground_.deliver(issued.text).ok());
  ASSERT_TRUE(ground_.bench.run({"evidence", "export", "--to", ground_.bench.at("package")}).ok());
  const Answer verified = ground_.bench.run({"evidence", "verify", ground_.bench.at("package")});
  EXPECT_TRUE(verified.ok()) << verified.text;
  EXPECT_EQ(verified.text.find("its inputs give"), std::string::npos) << verified.text;
}

TEST_F(AttackedRow, AnotherWorkspacesCommandIsOfAnotherIssuer) {
  RowWorkbench other("sqlite");
  other.bench.serve();
  ASSERT_TRUE(other.add().ok());
  ASSERT_TRUE(other.bench.release(other.acquire("before")).ok());
  const Lease lease = other.acquire("ada");
  const Answer answer = ground_.deliver(other.issue(lease, "op-1", "1"));
  EXPECT_EQ(answer.code(), "generation_incomparable") << answer.text;
  EXPECT_EQ(ground_.rows.version(), "1");
}

TEST_F(AttackedRow, LinesThatAreNoEnvelopeAreAnsweredOneByOneAndTheRestIsTaken) {
  const std::string doubled = "{\"command\":{},\"command\":{},\"payload_base64\":\"\"}";
  std::string twice = envelope_;
  twice.insert(twice.find("\"generation\""), "\"generation\":\"9\",");
  const std::vector<std::string> lines = {"garbage",
                                          "[]",
                                          "null",
                                          "{}",
                                          std::string("{\"command\":\"\0\"}", 15),
                                          "\xff\xfe",
                                          doubled,
                                          twice.substr(0, twice.find('\n')),
                                          "{\"command\":{}}",
                                          "{\"command\":[1],\"payload_base64\":7}",
                                          std::string(100, '[') + std::string(100, ']')};
  std::string stream;
  for (const std::string& line : lines) stream += line + "\n";
  stream += "\n   \n" + envelope_;  // blank lines are no commands
  stream += std::string(33U << 20U, 'x') + "\n" + envelope_.substr(0, envelope_.find('\n'));
  const Answer answer = ground_.deliver(stream);
  EXPECT_EQ(answer.status, 1);
  std::istringstream said(answer.text);
  std::vector<Json> answers;
  for (std::string line; std::getline(said, line);) answers.push_back(*parse_json(line));
  ASSERT_EQ(answers.size(), lines.size() + 3) << answer.text;
  for (std::size_t at = 0; at < lines.size(); ++at) {
    EXPECT_TRUE(answers[at].contains("error")) << lines[at] << ": " << answers[at];
    EXPECT_EQ(answers[at]["line"], at + 1);
  }
  EXPECT_EQ(answers[lines.size()].value("decision", ""), "accepted") << answers[lines.size()];
  EXPECT_EQ(text_member(answers[lines.size() + 1]["error"], "code"), "request_malformed");
  EXPECT_EQ(answers.back().value("decision", ""), "repeated") << "a last line needs no end: " << answers.back();
  EXPECT_EQ(ground_.rows.version(), "2");
}

// Its end, without a line feed, would be a command: it is the end of a line that is too long, and nothing else.
TEST_F(AttackedRow, TheEndOfALineThatIsTooLongIsNoCommand) {
  const Answer answer = ground_.deliver(std::string(33U << 20U, ' ') + envelope_.substr(0, envelope_.find('\n')));
  EXPECT_EQ(answer.code(), "request_malformed") << answer.text;
  EXPECT_EQ(ground_.rows.version(), "1");
}

TEST_F(AttackedRow, AStreamThatCannotBeReadIsNoEndOfIt) {
  const auto run = [&](const std::string& redirected) {
    support::Child shell = support::spawn({"sh", "-c", "exec \"$@\" " + redirected, "sh", HOLDFAST_PROGRAM,
                                           "--workspace", ground_.bench.root(), "--json", "receive"});
    return Workbench::answer_of(shell);
  };
  for (const char* redirected : {"<&-", "< /tmp"}) {
    const Answer answer = run(redirected);
    EXPECT_EQ(answer.code(), "content_unreadable") << redirected << answer.text;
    EXPECT_EQ(answer.status, 5) << redirected;
  }
  EXPECT_EQ(run("< /dev/null").status, 0) << "an empty one has come to its end";
}

TEST_F(AttackedRow, NamesWithSlashesAndControlCharactersMakeNoReceiverAndNoFile) {
  for (const std::string& name : {std::string("../up"), std::string("a/b"), std::string("a\nb"), std::string(".hidden"),
                                  std::string(65, 'n'), std::string("file"), std::string("a\x1b[2J")}) {
    EXPECT_EQ(ground_.bench.run(ground_.rows.receiver_add(name)).code(), "usage") << name;
  }
  for (const std::string& resource : {std::string("session://a\nb"), std::string("session://../x"),
                                      std::string("session://"), std::string("file://project:/a")}) {
    const Answer answer = ground_.bench.run({"receiver", "add", "other", "--kind", "command", "--resource", resource});
    EXPECT_FALSE(answer.code().empty()) << resource << answer.text;
  }
  EXPECT_EQ(ground_.bench.listing(), Words{});
}

class AttackedFile : public testing::Test {
 protected:
  AttackedFile() {
    bench_.put("a.txt", "old");
    bench_.put("b.txt", "other");
    bench_.serve();
    EXPECT_TRUE(bench_.release(bench_.acquire("a.txt", "before")).ok());
    lease_ = bench_.acquire("a.txt", "ada");
    const Words from = {"--from", "-", "--precondition", sha256_hex("old"), "--operation-id", "op-1"};
    envelope_ = bench_.run(Words{"issue", "a.txt"} + lease_.keys() + from, "new").text;
  }
  Answer deliver(const std::string& line) const { return bench_.run({"receive"}, line); }
  Workbench bench_;
  Lease lease_;
  std::string envelope_;
};

TEST_F(AttackedFile, EveryMemberOfItsCommandThatIsChangedIsRefusedAndTheCommandStillWorks) {
  auto changes = changes_that_are_refused(lease_.generation());
  changes.push_back({"resource", "file://project:/b.txt", {}});
  changes.push_back({"resource", "file://project:/../a.txt", {}});
  changes.push_back({"resource", "file://project:/A.TXT", {}});
  changes.push_back({"precondition", sha256_hex("x"), {}});
  changes.push_back({"precondition", "absent", {}});
  changes.push_back({"operation_family", "act", {"request_malformed"}});
  for (const Change& change : changes) {
    const Answer answer = deliver(with(envelope_, change.member, change.value));
    const bool is_expected =
        change.refused_with.empty() ? !answer.code().empty() : change.refused_with.contains(answer.code());
    EXPECT_TRUE(is_expected) << change.member << " " << change.value << ": " << answer.text;
    ASSERT_EQ(bench_.get("a.txt"), "old") << change.member << " " << change.value;
    ASSERT_EQ(bench_.get("b.txt"), "other") << change.member << " " << change.value;
  }
  EXPECT_TRUE(deliver(envelope_).ok());
  EXPECT_EQ(bench_.get("a.txt"), "new");
  EXPECT_EQ(deliver(envelope_).at("repeated"), true);
  EXPECT_EQ(deliver(with(envelope_, "precondition", sha256_hex("new"))).code(), "operation_id_reused");
  EXPECT_EQ(bench_.listing(), (Words{"a.txt", "b.txt"}));
  EXPECT_TRUE(bench_.evidence_verifies());
}

class AttackedWorker : public testing::Test {
 protected:
  AttackedWorker() {
    bench_.serve();
    EXPECT_TRUE(bench_.run({"receiver", "add", "deploy", "--kind", "command", "--resource", "session://deploy"}).ok());
    lease_ = bench_.acquire("session://deploy", "ada");
    const Words from = {"--from", "-", "--operation-id", "job-1"};
    envelope_ = bench_.run(Words{"issue", "session://deploy"} + lease_.keys() + from, "go").text;
  }
  Workbench bench_;
  Lease lease_;
  std::string envelope_;
};

TEST_F(AttackedWorker, AProgramThatIsMissingIsNotRunAndMayRunLater) {
  const Answer missing = bench_.run({"receive", "--", "/nowhere/program"}, envelope_);
  EXPECT_EQ(missing.code(), "command_not_started") << missing.text;
  EXPECT_EQ(bench_.run({"receive"}, envelope_).code(), "usage") << "nobody would run what it accepts";
  const Answer later = bench_.run({"receive", "--", "sh", "-c", "cat >> ran"}, envelope_);
  EXPECT_TRUE(later.ok()) << later.text;
  EXPECT_EQ(bench_.get("ran"), "go");
}

TEST_F(AttackedWorker, AProgramThatIsKilledHasRunAndIsNotRunAgain) {
  const Words killed = {"receive", "--", "sh", "-c", "cat >> ran; kill -9 $$"};
  const Answer first = bench_.run(killed, envelope_);
  EXPECT_EQ(first.at("outcome").at("exit_status"), 137) << first.text;
  EXPECT_EQ(first.status, 1);
  EXPECT_EQ(bench_.run(killed, envelope_).at("repeated"), true);
  EXPECT_EQ(bench_.get("ran"), "go");
}

TEST_F(AttackedWorker, ThatIsToldToEndWhileItsProgramRunsLeavesItsOutcomeUnknown) {
  const auto worker =
      bench_.start({"receive", "--", "sh", "-c", "echo ran >> ran; while [ ! -e go ]; do sleep 0.02; done"});
  worker->write(envelope_);
  ASSERT_TRUE(support::eventually([&] { return bench_.get("ran") == "ran\n"; }));
  worker->terminate();
  bench_.put("go", "");
  const Answer ended = Workbench::answer_of(*worker);
  EXPECT_NE(ended.status, 0);
  const Answer again = bench_.run({"receive", "--", "sh", "-c", "echo ran >> ran"}, envelope_);
  EXPECT_EQ(bench_.get("ran"), "ran\n") << "it is not run a second time";
  EXPECT_TRUE(again.code() == "receiver_outcome_unknown" || again.document.value("repeated", false)) << again.text;
}

TEST_F(AttackedWorker, WhoseReceiversMemoryIsDeletedIsClosedUntilAPersonDecides) {
  ASSERT_TRUE(bench_.run({"receive", "--", "sh", "-c", "echo ran >> ran"}, envelope_).ok());
  ASSERT_EQ(std::remove(bench_.at(".squad/receivers/deploy.sqlite").c_str()), 0);
  const Words work = {"receive", "--", "sh", "-c", "echo ran >> ran"};
  EXPECT_EQ(bench_.run(work, envelope_).code(), "receiver_unreachable") << "it has another file open";
  EXPECT_EQ(bench_.run(work, envelope_).code(), "receiver_high_water_missing");
  EXPECT_EQ(bench_.get("ran"), "ran\n");
  EXPECT_TRUE(bench_.run({"receiver", "reseed", "deploy", "--reason", "looked at"}).ok());
}

}  // namespace
}  // namespace holdfast
