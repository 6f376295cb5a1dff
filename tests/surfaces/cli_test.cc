// The program as its users see it: words in, bytes and an exit status out.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>

#include "base/base64.h"
#include "base/digest.h"
#include "base/json.h"
#include "support/child.h"
#include "support/temporary_folder.h"

namespace holdfast {
namespace {

using support::Child;
using support::eventually;
using support::spawn;
using support::TemporaryFolder;
using Words = std::vector<std::string>;

struct Ran {
  int status = 0;
  std::string out;
  std::string err;

  // The one document on standard output.
  Json document() const {
    EXPECT_TRUE(std::ranges::all_of(out, [](char byte) { return static_cast<unsigned char>(byte) < 0x80; }));
    EXPECT_EQ(std::ranges::count(out, '\n'), 1) << out;
    const auto found = parse_json(out);
    EXPECT_TRUE(found) << out << err;
    return found.value_or(Json::object());
  }
  std::string code() const { return document().value("error", Json::object()).value("code", "none"); }
};

class Program : public testing::Test {
 protected:
  Ran run(Words words, const std::string& input = "", support::SpawnOptions options = {}) {
    words.insert(words.begin(), {"sh", "-c", "exec \"$@\" 2>\"$0\"", elsewhere_.at("stderr"), HOLDFAST_PROGRAM});
    if (options.folder.empty()) options.folder = folder_.path();
    Child child = spawn(words, options);
    if (!input.empty()) child.write(input);
    child.close_input();
    Ran ran;
    ran.out = child.read_all();
    ran.status = child.wait();
    ran.err = elsewhere_.read("stderr");
    return ran;
  }
  Ran json(Words words, const std::string& input = "") {
    words.insert(words.begin(), "--json");
    return run(std::move(words), input);
  }
  Json ok(const Words& words, const std::string& input = "") {
    const Ran ran = json(words, input);
    EXPECT_EQ(ran.status, 0) << testing::PrintToString(words) << ran.out << ran.err;
    return ran.document();
  }
  void init() { ok({"init"}); }
  // The lease, and its document in lease.json outside the workspace.
  Json acquire(const std::string& scope) {
    const Json document = ok({"acquire", scope, "--owner", "alice", "--task", "t-1"});
    elsewhere_.write("lease.json", document.dump());
    return document["leases"][0];
  }
  std::string lease_file() const { return elsewhere_.at("lease.json"); }

  Child serve() {
    support::SpawnOptions options;
    options.folder = folder_.path();
    Child server = spawn({HOLDFAST_PROGRAM, "serve"}, options);
    const auto ready = parse_json(server.read_line());
    EXPECT_TRUE(ready && ready->value("ready", false) && ready->value("pid", 0) == server.pid());
    return server;
  }

  TemporaryFolder folder_;
  TemporaryFolder elsewhere_;
};

TEST_F(Program, AnswersAUsageErrorWithOneDocumentAndStatusTwo) {
  init();
  for (const Words& words : {Words{},
                             {"no-such-verb"},
                             {"acquire"},
                             {"acquire", "a", "--owner", "o"},
                             {"release", "a"},
                             {"epoch"},
                             {"epoch", "no-such"},
                             {"epoch", "advance"},
                             {"generations", "repair"},
                             {"heartbeat", "a", "--owner", "o"},
                             {"write", "a", "--from", "-"}}) {
    const Ran ran = json(words);
    EXPECT_EQ(ran.status, 2) << testing::PrintToString(words);
    EXPECT_EQ(ran.code(), "usage");
    EXPECT_FALSE(ran.err.empty());
  }
}

TEST_F(Program, KeepsStandardOutputEmptyOnARefusalWithoutJson) {
  const Ran usage = run({"acquire"});
  EXPECT_EQ(usage.status, 2);
  EXPECT_EQ(usage.out, "");
  EXPECT_NE(usage.err.find("usage: holdfast acquire"), std::string::npos) << usage.err;
  const Ran nowhere = run({"leases"});
  EXPECT_EQ(nowhere.status, 1);
  EXPECT_EQ(nowhere.out, "");
  EXPECT_NE(nowhere.err.find("holdfast init"), std::string::npos);
}

TEST_F(Program, NeedsAWorkspaceAndMakesNoneUnasked) {
  EXPECT_EQ(json({"leases"}).code(), "workspace_not_found");
  EXPECT_EQ(json({"acquire", "a", "--owner", "o", "--task", "t"}).code(), "workspace_not_found");
  EXPECT_FALSE(folder_.exists(".squad"));
  init();
  folder_.make_folder("deep");
  EXPECT_EQ(json({"--workspace", folder_.at("deep"), "leases"}).code(), "workspace_not_found");
  EXPECT_FALSE(folder_.exists("deep/.squad"));
}

TEST_F(Program, HelpIsNoErrorAndShowsExamples) {
  const Ran general = run({"--help"});
  EXPECT_EQ(general.status, 0);
  EXPECT_EQ(general.err, "");
  const Ran acquire = run({"acquire", "--help"});
  EXPECT_EQ(acquire.status, 0);
  EXPECT_NE(acquire.out.find("examples"), std::string::npos);
}

TEST_F(Program, RefusesWhatALaterReleaseBrings) {
  const Ran ran = json({"guardd", "x"});
  EXPECT_EQ(ran.status, 1);
  EXPECT_EQ(ran.code(), "unsupported_here");
  // What this one brought is known, and its unknown words are faults of use.
  for (const char* group : {"act", "result", "handoff", "receiver"}) {
    for (const Words& words : {Words{group}, {group, "no-such-verb"}}) {
      EXPECT_EQ(json(words).status, 2) << group;
      EXPECT_EQ(json(words).code(), "usage") << group;
    }
  }
}

TEST_F(Program, TakesScopesThatAreNotUtf8ToTheirRefusal) {
  init();
  EXPECT_EQ(json({"scope", "bad-\xff"}).code(), "scope_not_utf8");
  EXPECT_EQ(json({"acquire", "ok", "cut-\xe2\x82", "--owner", "o", "--task", "t"}).code(), "scope_not_utf8");
  EXPECT_EQ(ok({"leases"})["leases"], Json::array());
}

TEST_F(Program, CarriesAWholeLifeOfALeaseByItsFile) {
  init();
  const Json lease = acquire("a.txt");
  EXPECT_EQ(lease["os_lock"]["enforced"], false);
  ok({"heartbeat", "a.txt", "--lease", lease_file()});
  EXPECT_EQ(ok({"release", "a.txt", "--lease", lease_file()})["was_held"], true);
  const Ran late = json({"heartbeat", "a.txt", "--lease", lease_file()});
  EXPECT_EQ(late.status, 1);
  EXPECT_EQ(late.code(), "stale_lease_generation");
}

TEST_F(Program, PrintsForPeopleWithinEightyColumns) {
  init();
  const Ran acquired =
      run({"acquire", "a-rather-long-name-of-a-file-in-the-workspace.txt", "--owner", "alice", "--task", "t-1"});
  EXPECT_EQ(acquired.status, 0) << acquired.err;
  EXPECT_NE(acquired.out.find("--generation"), std::string::npos);
  for (const Words& words : {Words{"leases"},
                             {"status"},
                             {"evidence", "log"},
                             {"generations", "show"},
                             {"epoch", "show"},
                             {"reconcile", "list"},
                             {"quarantine", "list"},
                             {"receiver", "list"},
                             {"recover"}}) {
    const Ran ran = run(words);
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_FALSE(ran.out.empty());
    EXPECT_EQ(ran.out.find('\x1b'), std::string::npos);
    std::istringstream lines(ran.out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
  }
}

TEST_F(Program, ReadsTheBytesAsTheyAre) {
  init();
  std::string bytes;
  for (int value = 0; value < 200'000; ++value) bytes += static_cast<char>(value * 7);
  folder_.write("b.bin", bytes);
  EXPECT_EQ(run({"read", "b.bin"}).out, bytes);
  const Json document = ok({"read", "b.bin"});
  EXPECT_EQ(document["content_base64"], base64_encode(bytes));
  EXPECT_EQ(document["sha256"], sha256_hex(bytes));
  EXPECT_EQ(json({"read", "absent"}).code(), "file_absent");
}

TEST_F(Program, SaysSoWhereStandardOutputFails) {
  init();
  folder_.write("b.bin", std::string(100'000, 'x'));
  support::SpawnOptions options;
  options.folder = folder_.path();
  for (const std::string verb : {"read b.bin", "leases", "--json leases"}) {
    for (const std::string way : {" >/dev/full 2>/dev/null", " >&- 2>/dev/null"}) {
      Child child = spawn({"sh", "-c", "exec " HOLDFAST_PROGRAM " " + verb + way}, options);
      EXPECT_EQ(child.wait(), 5) << verb << way;
    }
  }
}

TEST_F(Program, ExportsEvidenceThatIsVerifiedWithoutTheWorkspace) {
  init();
  acquire("a.txt");
  EXPECT_EQ(ok({"evidence", "export", "--to", elsewhere_.at("package")})["chain"]["verified"], true);
  EXPECT_NE(json({"evidence", "export", "--to", elsewhere_.at("package")}).status, 0);
  const Words verify = {"evidence", "verify", elsewhere_.at("package")};
  EXPECT_EQ(ok(verify)["verified"], true);
  std::string log = elsewhere_.read("package/log-000001.jsonl");
  log[log.find("alice")] = 'A';
  elsewhere_.write("package/log-000001.jsonl", log);
  EXPECT_EQ(json(verify).code(), "evidence_chain_broken");
}

TEST_F(Program, RefusesASourceThatCannotBeRead) {
  init();
  acquire("a.txt");
  for (const std::string& source : {elsewhere_.at("absent"), elsewhere_.path()}) {
    const Ran ran = json({"write", "a.txt", "--lease", lease_file(), "--from", source});
    EXPECT_EQ(ran.status, 5);
    EXPECT_EQ(ran.code(), "content_unreadable");
  }
  EXPECT_EQ(json({"write", "a.txt", "--lease", lease_file(), "--from", "-"}, "x").code(), "server_handle_required");
}

TEST_F(Program, WaitsNoLongerThanTheTransitionLimit) {
  init();
  acquire("a.txt");
  const os::Handle mutex(::open(folder_.at(".squad/.lease-transition.mutex").c_str(), O_RDWR | O_CLOEXEC));
  struct flock lock {};
  lock.l_type = F_WRLCK;
  ASSERT_EQ(::fcntl(mutex.fd(), F_OFD_SETLK, &lock), 0);
  support::SpawnOptions options;
  options.environment["HOLDFAST_TRANSITION_TIMEOUT_MS"] = "200";
  const Ran ran = run({"--json", "acquire", "b", "--owner", "o", "--task", "t"}, "", options);
  EXPECT_EQ(ran.status, 3);
  EXPECT_EQ(ran.code(), "lease_transition_busy");
}

TEST_F(Program, GoesThroughTheServerThatLivesAndNeverPastIt) {
  init();
  folder_.write("a.txt", "old");
  Child server = serve();
  const Json lease = acquire("a.txt");
  EXPECT_EQ(lease["holder"]["pid"], server.pid());
  for (const Words& words : {Words{"acquire", "b", "--owner", "o", "--task", "t"},
                             {"heartbeat", "a.txt", "--lease", lease_file()},
                             {"epoch", "advance", "--reason", "r"}}) {
    Words direct = words;
    direct.insert(direct.begin(), "--direct");
    EXPECT_EQ(json(direct).code(), "direct_refused_server_lives");
  }
  EXPECT_EQ(ok({"--direct", "leases"})["leases"].size(), 1U);
  const Ran second = json({"serve"});
  EXPECT_EQ(second.status, 1);
  EXPECT_EQ(second.code(), "server_already_serves");
  EXPECT_NE(second.out.find(std::to_string(server.pid())), std::string::npos);
  EXPECT_EQ(ok({"stop"})["stopping"], true);
  EXPECT_EQ(server.wait(), 0);
  EXPECT_EQ(json({"stop"}).code(), "server_absent");
}

TEST_F(Program, WritesFromAFileAndFromStandardInputByteForByte) {
  init();
  folder_.write("a.txt", "old");
  Child server = serve();
  acquire("a.txt");
  const std::string bytes = std::string("\xff\0\r\n", 4) + std::string(3'000'000, '\x80');
  const Json piped = ok({"write", "a.txt", "--lease", lease_file(), "--from", "-"}, bytes);
  EXPECT_EQ(piped["planned_sha256"], sha256_hex(bytes));
  EXPECT_EQ(folder_.read("a.txt"), bytes);
  elsewhere_.write("source", "from a file");
  ok({"write", "a.txt", "--lease", lease_file(), "--from", elsewhere_.at("source"), "--preimage", sha256_hex(bytes)});
  EXPECT_EQ(folder_.read("a.txt"), "from a file");
  ok({"edit", "a.txt", "--lease", lease_file(), "--replace", "file", "\xfe", "--replace", "from", "--of"});
  EXPECT_EQ(folder_.read("a.txt"), "--of a \xfe");
  EXPECT_EQ(json({"edit", "a.txt", "--lease", lease_file(), "--replace", "none", "x"}).code(), "edit_no_match");
}

TEST_F(Program, ExportsQuarantinedBytesToANewFileOnly) {
  init();
  folder_.write("a.txt", "old");
  acquire("a.txt");
  folder_.write("a.txt", "foreign");
  ok({"release", "a.txt", "--lease", lease_file()});
  const std::string id = ok({"quarantine", "list"})["quarantine"][0]["id"];
  const Json exported = ok({"quarantine", "export", id, "--to", elsewhere_.at("kept")});
  EXPECT_EQ(
      exported,
      (Json{{"exported", id}, {"to", elsewhere_.at("kept")}, {"sha256", sha256_hex("foreign")}, {"byte_count", 7}}));
  EXPECT_EQ(elsewhere_.read("kept"), "foreign");
  struct stat facts {};
  ASSERT_EQ(::stat(elsewhere_.at("kept").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0600U);
  elsewhere_.write("kept", "mine");
  EXPECT_NE(json({"quarantine", "export", id, "--to", elsewhere_.at("kept")}).status, 0);
  EXPECT_EQ(elsewhere_.read("kept"), "mine");
  elsewhere_.link("victim", "trap");
  EXPECT_NE(json({"quarantine", "export", id, "--to", elsewhere_.at("trap")}).status, 0);
  EXPECT_FALSE(elsewhere_.exists("victim"));
  EXPECT_EQ(run({"quarantine", "export", id, "--to", "-"}).out, "foreign");
}

TEST_F(Program, TellsABrokenPackageWithoutAWorkspace) {
  EXPECT_EQ(json({"evidence", "verify", elsewhere_.at("absent")}).code(), "not_found");
}

TEST_F(Program, PrintsCompletionsThatTheirShellReads) {
  Child bash = spawn({"bash", "-c",
                      std::string("source <(") + HOLDFAST_PROGRAM + " completions bash) && " +
                          "COMP_WORDS=(holdfast epoch ad) COMP_CWORD=2 && _holdfast 2>/dev/null && " +
                          "echo \"${COMPREPLY[@]}\""});
  EXPECT_EQ(bash.read_line(), "advance");
  EXPECT_EQ(bash.wait(), 0);
  Child verbs =
      spawn({"bash", "-c",
             std::string("source <(") + HOLDFAST_PROGRAM + " completions bash) && " +
                 "for words in 'act pre' 'act com' 'result gr' 'handoff st' 'receiver sett' 'iss' 'receiv'; do " +
                 "COMP_WORDS=(holdfast $words) COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) && " +
                 "_holdfast 2>/dev/null && echo \"${COMPREPLY[@]}\"; done"});
  for (const char* verb : {"prepare", "commit", "grant", "status", "settle", "issue"}) {
    EXPECT_EQ(verbs.read_line(), verb);
  }
  const std::string both = verbs.read_line();
  EXPECT_TRUE(both == "receive receiver" || both == "receiver receive") << both;
  EXPECT_EQ(run({"completions", "powershell"}).status, 2);
}

TEST_F(Program, AgreesWithTheCommittedDocuments) {
  for (const auto& [name, path] : {std::pair{"cli", "docs/cli.md"}, {"refusals", "docs/refusals.md"}}) {
    std::ifstream file(std::string(HOLDFAST_SOURCE_DIR) + "/" + path, std::ios::binary);
    std::ostringstream committed;
    committed << file.rdbuf();
    EXPECT_EQ(run({"docs", name}).out, committed.str()) << "run: holdfast docs " << name << " > " << path;
  }
}

}  // namespace
}  // namespace holdfast
