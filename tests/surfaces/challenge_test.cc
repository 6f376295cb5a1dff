// `holdfast challenge` as its users see it: what it shows, what it leaves behind, and what it never touches.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "base/json.h"
#include "support/child.h"
#include "support/temporary_folder.h"

namespace holdfast {
namespace {

namespace fs = std::filesystem;
using support::Child;
using support::spawn;
using support::TemporaryFolder;
using Words = std::vector<std::string>;

struct Ran {
  int status = 0;
  std::string out;
  Json document() const { return parse_json(out).value_or(Json::object()); }
};

class Challenge : public testing::Test {
 protected:
  Ran run(Words words) {
    if (words.front() != "sh") words.insert(words.begin(), HOLDFAST_PROGRAM);
    support::SpawnOptions options;
    options.folder = folder_.path();
    options.environment = {{"TMPDIR", temporary_.path()}};
    Child child = spawn(words, options);
    child.close_input();
    Ran ran;
    ran.out = child.read_all();
    ran.status = child.wait();
    return ran;
  }

  static std::map<std::string, std::string> files_below(const TemporaryFolder& folder) {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder.path())) {
      const std::string name = fs::relative(entry.path(), folder.path()).generic_string();
      files[name] = entry.is_regular_file() ? folder.read(name) : "";
    }
    return files;
  }
  static std::set<std::string> names_in(const std::string& folder) {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename().string());
    return names;
  }
  static std::int64_t server_of(Child& challenge) {
    for (std::string line; !(line = challenge.read_line()).empty();) {
      const auto at = line.find("server pid ");
      if (at != std::string::npos) return std::stoll(line.substr(at + 11));
    }
    return 0;
  }
  static Json step(const Json& document, const std::string& title) {
    for (const Json& one : document.value("steps", Json::array())) {
      if (text_member(one, "step") == title) return one;
    }
    ADD_FAILURE() << "no step " << title << " in " << document.dump(1);
    return Json::object();
  }

  TemporaryFolder folder_;
  TemporaryFolder temporary_;
  TemporaryFolder elsewhere_;
};

TEST_F(Challenge, PassesAndShowsEachStepWithoutTouchingTheWorkspaceItIsStartedIn) {
  ASSERT_EQ(run({"init"}).status, 0);
  folder_.write("mine.txt", "untouched");
  const auto before = files_below(folder_);
  const Ran ran = run({"--json", "challenge"});
  const Json document = ran.document();
  EXPECT_EQ(ran.status, 0) << ran.out;
  EXPECT_EQ(document.value("passed", false), true);
  EXPECT_EQ(text_member(document, "challenge"), "stale-writer");
  EXPECT_EQ(files_below(folder_), before);
  const std::string package = text_member(document, "package");
  EXPECT_EQ(names_in(temporary_.path()), std::set<std::string>{fs::path(package).filename().string()})
      << "the scratch workspace is removed, the package stays";

  EXPECT_EQ(step(document, "A wakes up and uses its old keys")["shown"],
            Json({"write: stale_lease_generation: expected 1, current 2",
                  "heartbeat: stale_lease_generation: expected 1, current 2",
                  "release: stale_lease_generation: expected 1, current 2"}));
  EXPECT_EQ(text_member(step(document, "A opens the file itself, and writes"), "outcome"), "diverted");
  EXPECT_EQ(text_member(step(document, "a script never asked: echo > file"), "outcome"), "diverted");
  EXPECT_EQ(text_member(step(document, "a script never asked: truncate"), "outcome"), "denied");
  EXPECT_EQ(text_member(step(document, "a script never asked: sed -i"), "outcome"), "detected");
  EXPECT_EQ(text_member(step(document, "a script never asked: mv over the file"), "outcome"), "detected");
  EXPECT_EQ(text_member(step(document, "B releases: its content is compared"), "outcome"), "match");
}

// The window between the last check and the rename is hit by a real process; where it never is, the program has to say
// that it was not shown. Never anything else.
TEST_F(Challenge, ClaimsARaceOnlyWhereItsRecordIsThere) {
  const Json document = run({"--json", "challenge"}).document();
  const Json waiting = step(document, "what waits for reconciliation")["facts"].value("reconcile", Json::array());
  std::set<std::string> faults;
  for (const Json& record : waiting) faults.insert(text_member(record, "fault"));
  const std::map<std::string, std::string> expected = {
      {"... and in the window before the rename", "destination_name_redirected"},
      {"the preimage is displaced in that window", "destination_preimage_displaced"}};
  std::size_t not_shown = 0;
  for (const auto& [title, fault] : expected) {
    const std::string outcome = text_member(step(document, title), "outcome");
    if (outcome == "reconciliation") {
      EXPECT_TRUE(faults.contains(fault)) << title;
    } else {
      EXPECT_EQ(outcome, "not shown this time") << title;
      ++not_shown;
    }
  }
  std::size_t said = 0;
  for (const Json& text : document.value("unknown", Json::array())) {
    if (text.get<std::string>().find("was not shown") != std::string::npos) ++said;
  }
  EXPECT_EQ(said, not_shown);
}

TEST_F(Challenge, MakesAPackageThatVerifiesOfflineAndNotOnceAnyFileOfItIsChanged) {
  const Ran ran = run({"--json", "challenge", "t1", "--package", elsewhere_.at("package")});
  ASSERT_EQ(ran.status, 0) << ran.out;
  EXPECT_EQ(text_member(ran.document(), "package"), elsewhere_.at("package"));
  EXPECT_EQ(names_in(temporary_.path()), std::set<std::string>{});
  const Json verified = run({"--json", "evidence", "verify", elsewhere_.at("package")}).document();
  EXPECT_EQ(verified.value("verified", false), true) << verified;
  EXPECT_EQ(verified["decisions"]["recomputed"], 9)
      << "B's write and two commands, and A's write, renewal, release and three commands";
  EXPECT_EQ(verified["decisions"]["in_chain"], 5) << "the commands";
  EXPECT_FALSE(verified["unknown"].empty());
  for (const std::string& name : names_in(elsewhere_.at("package"))) {
    const std::string whole = elsewhere_.read("package/" + name);
    std::string changed = whole;
    changed[changed.size() / 2] = static_cast<char>(changed[changed.size() / 2] ^ 1);
    elsewhere_.write("package/" + name, changed);
    EXPECT_NE(run({"--json", "evidence", "verify", elsewhere_.at("package")}).status, 0) << name;
    elsewhere_.write("package/" + name, whole);
  }
  EXPECT_EQ(run({"--json", "evidence", "verify", elsewhere_.at("package")}).status, 0);
}

TEST_F(Challenge, RefusesAPackageFolderThatHoldsSomethingAndLeavesItAlone) {
  elsewhere_.make_folder("package");
  elsewhere_.write("package/mine.txt", "mine");
  const Ran ran = run({"--json", "challenge", "--package", elsewhere_.at("package")});
  EXPECT_EQ(ran.status, 2) << ran.out;
  EXPECT_EQ(names_in(elsewhere_.at("package")), std::set<std::string>{"mine.txt"});
  EXPECT_EQ(names_in(temporary_.path()), std::set<std::string>{});
}

TEST_F(Challenge, KeepsItsScratchFolderWhereAsked) {
  const Json document = run({"--json", "challenge", "t1", "--keep"}).document();
  const std::string scratch = text_member(document, "scratch");
  EXPECT_TRUE(fs::exists(scratch + "/workspace/.squad")) << document;
}

TEST_F(Challenge, ShowsItsProgressLineByLine) {
  const Ran ran = run({"challenge", "t1"});
  EXPECT_EQ(ran.status, 0);
  EXPECT_NE(ran.out.find("[ 1/11] a scratch workspace and its server"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("write: stale_lease_generation: expected 1, current 4"), std::string::npos);
  EXPECT_NE(ran.out.find("holdfast evidence verify "), std::string::npos);
  std::istringstream lines(ran.out);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("check it") && !line.starts_with("evidence")) { EXPECT_LE(line.size(), 80U) << line; }
  }
}

TEST_F(Challenge, SaysWhichNamesItKnows) {
  const Json unknown = run({"--json", "challenge", "t99"}).document();
  EXPECT_EQ(unknown["error"]["code"], "challenge_unknown");
  EXPECT_EQ(unknown["error"]["details"]["known"], Json({"stale-writer", "t1", "t2", "t3", "t4", "all"}));
  EXPECT_EQ(names_in(temporary_.path()), std::set<std::string>{});
}

// A `chmod` that does nothing leaves nothing to notice: the step has not shown its subject, and must not pass.
TEST_F(Challenge, FailsWithStatusOneAndStillLeavesAPackageWhereAStepDoesNotHold) {
  elsewhere_.write("chmod", "#!/bin/sh\nexit 0\n");
  fs::permissions(elsewhere_.at("chmod"), fs::perms::owner_all);
  const Ran ran =
      run({"sh", "-c", "PATH=\"$1:$PATH\" exec \"$0\" --json challenge", HOLDFAST_PROGRAM, elsewhere_.path()});
  const Json document = ran.document();
  EXPECT_EQ(ran.status, 1) << ran.out;
  EXPECT_EQ(document.value("passed", true), false);
  EXPECT_EQ(text_member(step(document, "a script never asked: chmod"), "outcome"), "not noticed");
  EXPECT_EQ(text_member(step(document, "B releases: its content is compared"), "outcome"), "match") << "it goes on";
  EXPECT_EQ(run({"evidence", "verify", text_member(document, "package")}).status, 0);
}

TEST_F(Challenge, EndsItsServerAndItsWorkersWhenItIsInterrupted) {
  support::SpawnOptions options;
  options.folder = folder_.path();
  options.environment = {{"TMPDIR", temporary_.path()}};
  Child child = spawn({HOLDFAST_PROGRAM, "challenge", "t1"}, options);
  const std::int64_t server = server_of(child);
  ASSERT_GT(server, 0);
  child.terminate();
  EXPECT_EQ(child.wait(), 1);
  EXPECT_TRUE(support::eventually([server] { return !fs::exists("/proc/" + std::to_string(server)); }));
  EXPECT_EQ(names_in(temporary_.path()), std::set<std::string>{});
}

TEST_F(Challenge, LeavesNoServerBehindWhenItIsKilled) {
  support::SpawnOptions options;
  options.folder = folder_.path();
  options.environment = {{"TMPDIR", temporary_.path()}};
  Child child = spawn({HOLDFAST_PROGRAM, "challenge", "t1"}, options);
  const std::int64_t server = server_of(child);
  ASSERT_GT(server, 0);
  child.kill();
  child.wait();
  EXPECT_TRUE(support::eventually([server] { return !fs::exists("/proc/" + std::to_string(server)); }));
}

}  // namespace
}  // namespace holdfast
