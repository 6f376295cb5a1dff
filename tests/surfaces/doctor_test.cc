// `holdfast doctor`: what it says agrees with what the guard claims, on several file systems and as several users, and
// nothing of it is left, however it ends.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <set>
#include <sstream>

#include "base/json.h"
#include "support/mounted.h"
#include "support/workbench.h"

namespace holdfast {
namespace {

using support::Answer;
using support::eventually;
using support::Lease;
using support::Mounted;
using support::spawn;
using support::TemporaryFolder;
using support::Words;
using support::Workbench;
using support::operator+;

constexpr unsigned kNobody = 65534;

const Json& mechanism(const Json& report, const std::string& name) {
  static const Json kNone;
  for (const Json& one : report.at("mechanisms")) {
    if (one.at("mechanism") == name) return one;
  }
  ADD_FAILURE() << "no mechanism " << name;
  return kNone;
}

const Json& way(const Json& mechanism, const std::string& name) {
  static const Json kNone;
  for (const Json& one : mechanism.at("operations")) {
    if (one.at("way") == name) return one;
  }
  ADD_FAILURE() << "no way " << name;
  return kNone;
}

// Every operation that is claimed was tried and held, and every outcome is a word of the report's.
void expect_claims_hold(const Json& examined) {
  const std::set<std::string> words = {"denied", "diverted", "detected", "let_through", "not_tried"};
  std::set<std::string> held;
  for (const Json& operation : examined.at("operations")) {
    const std::string outcome = operation.at("outcome");
    EXPECT_TRUE(words.contains(outcome)) << operation.dump();
    EXPECT_EQ(operation.at("agrees"), true) << operation.dump();
    if (operation.at("claimed").is_null() || outcome == "not_tried") continue;
    EXPECT_NE(outcome, "let_through") << operation.dump();
    held.insert(operation.at("operation").get<std::string>());
  }
  for (const char* kind : {"denies", "diverts", "detects"}) {
    for (const Json& claimed : examined.at("claims").at(kind)) EXPECT_TRUE(held.contains(claimed)) << claimed;
  }
  EXPECT_EQ(examined.at("agrees"), true);
}

Json examined(const Workbench& bench) {
  const Answer answer = bench.run({"doctor"});
  EXPECT_TRUE(answer.ok()) << answer.text;
  EXPECT_TRUE(bench.listing().empty()) << testing::PrintToString(bench.listing());
  return answer.ok() ? answer.at("doctor") : Json::object();
}

TEST(Doctor, ReportsMechanismByMechanismAndLeavesNothing) {
  const Workbench bench;
  const Json report = examined(bench);
  for (const char* name :
       {"kernel_lease", "immutable_flag", "bpf_lsm", "landlock", "transition_mutex", "liveness_lock"}) {
    const Json& one = mechanism(report, name);
    for (const char* part : {"usable", "held_by_this_release", "claims", "operations", "agrees", "reason"}) {
      EXPECT_TRUE(one.contains(part)) << name << " " << part;
    }
  }
  EXPECT_EQ(report.at("local"), true);
  EXPECT_EQ(report.at("user"), ::geteuid());
  EXPECT_EQ(report.at("passed"), true);
  EXPECT_FALSE(report.at("workspace_file_system").get<std::string>().empty());
  EXPECT_FALSE(report.at("not_tried").empty());
  for (const Json& entry : report.at("not_tried")) EXPECT_FALSE(text_member(entry, "why").empty()) << entry.dump();
}

TEST(Doctor, TriesEveryOperationOfTheVocabularyAndTheClaimsHold) {
  const Workbench bench;
  const Json report = examined(bench);
  const Json& lease = mechanism(report, "kernel_lease");
  std::set<std::string> tried;
  for (const Json& operation : lease.at("operations")) {
    if (operation.at("outcome") != "not_tried") tried.insert(operation.at("operation").get<std::string>());
  }
  EXPECT_EQ(tried, (std::set<std::string>{"open_write", "truncate", "rename", "unlink", "link", "create", "metadata",
                                          "mmap_store"}));
  expect_claims_hold(lease);
}

TEST(Doctor, SaysWhatALeaseDoesNotStop) {
  const Workbench bench;
  const Json report = examined(bench);
  const Json& lease = mechanism(report, "kernel_lease");
  ASSERT_EQ(lease.at("usable"), true) << lease.dump();
  EXPECT_EQ(way(lease, "without_waiting").at("errno"), "EAGAIN");
  EXPECT_EQ(way(lease, "append").at("outcome"), "diverted");
  EXPECT_EQ(way(lease, "open_reading_truncating").at("outcome"), "detected");
  EXPECT_GT(way(lease, "rename_over").at("noticed_within_ms"), 0);
  // Who had the file open before is not stopped; what is promised is that no such lease is called enforced.
  for (const char* earlier : {"descriptor_opened_before", "mapping_made_before"}) {
    EXPECT_EQ(way(lease, earlier).at("outcome"), "let_through");
    EXPECT_EQ(way(lease, earlier).at("claimed"), nullptr);
  }
  EXPECT_EQ(way(lease, "by_another_user").at("outcome"), ::geteuid() == 0 ? "diverted" : "not_tried");
}

TEST(Doctor, TriesTheImmutableFlagWhereItMay) {
  const Workbench bench;
  const Json report = examined(bench);
  const Json& flag = mechanism(report, "immutable_flag");
  EXPECT_EQ(flag.at("held_by_this_release"), false);
  if (flag.at("usable") == false) {
    EXPECT_FALSE(text_member(flag, "errno").empty());
    return;
  }
  for (const char* name : {"write_only", "truncate", "rename_over", "unlink", "link", "chmod"}) {
    EXPECT_EQ(way(flag, name).at("outcome"), "denied") << name;
  }
}

TEST(Doctor, B94TriesWhetherTwoProcessesReallyExcludeEachOther) {
  const Workbench bench;
  const Json report = examined(bench);
  for (const char* name : {"transition_mutex", "liveness_lock"}) {
    const Json& lock = mechanism(report, name);
    expect_claims_hold(lock);
    EXPECT_EQ(lock.at("usable"), true) << lock.dump();
    EXPECT_EQ(lock.at("freed_by_death"), true);
  }
}

TEST(Doctor, InfersNothingFromAListAndLoadsNothing) {
  const Workbench bench;
  const Json report = examined(bench);
  const Json& bpf = mechanism(report, "bpf_lsm");
  EXPECT_EQ(bpf.at("usable"), false);
  EXPECT_TRUE(text_member(bpf, "reason").starts_with("nothing was loaded")) << bpf.dump();
  EXPECT_TRUE(bpf.at("security_modules").is_string() || !text_member(bpf, "errno").empty());
}

TEST(Doctor, DoesNotDisturbAServerAndItsLeases) {
  Workbench bench;
  bench.put("a.txt", "old");
  bench.serve();
  bench.acquire("a.txt");
  const Answer leases = bench.run({"leases"});
  const std::string log = bench.log();
  const Answer answer = bench.run({"doctor"});
  EXPECT_TRUE(answer.ok()) << answer.text;
  EXPECT_EQ(bench.listing(), Words{"a.txt"});
  EXPECT_EQ(bench.log(), log);
  EXPECT_EQ(bench.run({"leases"}).at("leases").at(0).at("os_lock"), leases.at("leases").at(0).at("os_lock"));
}

TEST(Doctor, FindsADisagreementAndRefusesWithTheWholeReport) {
  const Workbench bench;
  const Answer refused = bench.run({"doctor"}, "", {{"HOLDFAST_FAULT", "doctor_attacker_idles:fail"}});
  EXPECT_EQ(refused.code(), "doctor_disagrees") << refused.text;
  EXPECT_EQ(refused.status, 1);
  const Json details = refused.at("error").at("details");
  EXPECT_EQ(details.at("doctor").at("passed"), false);
  EXPECT_EQ(details.at("operations"), Json::array({"kernel_lease: open_write by append"}));
  const Json& lease = mechanism(details.at("doctor"), "kernel_lease");
  EXPECT_EQ(lease.at("agrees"), false);
  EXPECT_EQ(way(lease, "append").at("outcome"), "let_through");
  EXPECT_TRUE(bench.listing().empty());
}

// Waits until the scratch folder holds a file of that name: so far has the doctor come.
bool comes_to(const Workbench& bench, const std::string& scratch_file) {
  return eventually([&] {
    const Words names = bench.listing();
    return !names.empty() && std::filesystem::exists(bench.at(names.front() + "/" + scratch_file));
  });
}

class Ended : public testing::TestWithParam<int> {};

TEST_P(Ended, InTheMiddleLeavesNothing) {
  const Workbench bench;
  const auto running = bench.start({"doctor"}, {{"HOLDFAST_FAULT", "doctor_before_attack@5:sleep=1000"}});
  ASSERT_TRUE(comes_to(bench, "scratch-11"));
  running->signal(GetParam());
  const Answer answer = Workbench::answer_of(*running);
  EXPECT_EQ(answer.code(), "doctor_interrupted") << answer.text;
  EXPECT_EQ(answer.status, 1);
  EXPECT_TRUE(bench.listing().empty()) << testing::PrintToString(bench.listing());
}
INSTANTIATE_TEST_SUITE_P(By, Ended, testing::Values(SIGTERM, SIGINT, SIGHUP));

TEST(Doctor, EndedWhileAFileIsImmutableLeavesNothing) {
  const Workbench bench;
  const auto running = bench.start({"doctor"}, {{"HOLDFAST_FAULT", "doctor_before_flagged_attack@2:sleep=1000"}});
  if (::geteuid() == 0) { ASSERT_TRUE(comes_to(bench, "scratch-60")); }
  running->terminate();
  const Answer answer = Workbench::answer_of(*running);
  EXPECT_EQ(answer.code(), "doctor_interrupted") << answer.text;
  EXPECT_TRUE(bench.listing().empty()) << testing::PrintToString(bench.listing());
}

class Killed : public testing::TestWithParam<const char*> {};

TEST_P(Killed, LeavesAFolderThatTheNextDoctorTakesAway) {
  const Workbench bench;
  EXPECT_NE(bench.run({"doctor"}, "", {{"HOLDFAST_FAULT", GetParam()}}).status, 0);
  ASSERT_EQ(bench.listing().size(), 1U);
  examined(bench);
}
INSTANTIATE_TEST_SUITE_P(At, Killed,
                         testing::Values("doctor_before_attack@5:kill", "doctor_before_flagged_attack@2:kill"));

TEST(Doctor, LeavesTheScratchFolderOfALivingOneAlone) {
  const Workbench bench;
  const auto running = bench.start({"doctor"}, {{"HOLDFAST_FAULT", "doctor_before_attack@5:sleep=1500"}});
  ASSERT_TRUE(comes_to(bench, "scratch-11"));
  EXPECT_TRUE(bench.run({"doctor"}).ok());
  const Answer first = Workbench::answer_of(*running);
  EXPECT_TRUE(first.ok()) << first.text;
  EXPECT_TRUE(bench.listing().empty());
}

TEST(Doctor, FitsEightyColumnsAndEndsWithWhatALeaseIsWorth) {
  const Workbench bench;
  support::Child child =
      spawn({HOLDFAST_PROGRAM, "--workspace", bench.root(), "doctor"}, {bench.root(), {{"NO_COLOR", "1"}}, false});
  child.close_input();
  const std::string text = child.read_all();
  EXPECT_EQ(child.wait(), 0);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  for (const char* part : {"kernel_lease", "immutable_flag", "bpf_lsm", "open_write", "diverted", "Not tried"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part;
  }
  EXPECT_NE(text.find("\n\nA lease held by a server"), std::string::npos) << text;
}

TEST(Doctor, HasNoWorkspaceToExamineWithoutOne) {
  const Workbench bench(false);
  EXPECT_EQ(bench.run({"doctor"}).code(), "workspace_not_found");
  EXPECT_TRUE(bench.listing().empty());
}

TEST(DoctorOn, TmpfsWhereTheFlagDoesNotStopAnEarlierDescriptor) {
  if (::geteuid() != 0) GTEST_SKIP() << "root is needed to mount";
  const Workbench bench(false);
  ASSERT_EQ(::mount("tmpfs", bench.root().c_str(), "tmpfs", 0, "mode=0700"), 0);
  const Mounted mounted(bench.root());
  ASSERT_TRUE(bench.run({"init"}).ok());
  const Json report = examined(bench);
  EXPECT_EQ(report.at("workspace_file_system"), "tmpfs");
  expect_claims_hold(mechanism(report, "kernel_lease"));
  const Json& flag = mechanism(report, "immutable_flag");
  if (flag.at("usable") == true) { EXPECT_EQ(way(flag, "descriptor_opened_before").at("outcome"), "let_through"); }
}

TEST(DoctorOn, OverlayClaimsNoProofAndKeepsItsWord) {
  if (::geteuid() != 0) GTEST_SKIP() << "root is needed to mount";
  const TemporaryFolder layers;
  for (const char* name : {"lower", "upper", "work"}) layers.make_folder(name);
  const Workbench bench(false);
  const std::string options =
      "lowerdir=" + layers.at("lower") + ",upperdir=" + layers.at("upper") + ",workdir=" + layers.at("work");
  ASSERT_EQ(::mount("overlay", bench.root().c_str(), "overlay", 0, options.c_str()), 0);
  const Mounted mounted(bench.root());
  ASSERT_TRUE(bench.run({"init"}).ok());
  const Json report = examined(bench);
  EXPECT_EQ(report.at("proof_of_no_earlier_writer"), false);
  EXPECT_EQ(mechanism(report, "kernel_lease").at("usable"), false);
  EXPECT_TRUE(text_member(report, "conclusion").starts_with("No guard is called enforced here"));
}

TEST(DoctorOn, B94AFuseMountIsCalledNotLocalAndNothingIsLeft) {
  if (::geteuid() != 0) GTEST_SKIP() << "root is needed to mount";
  const Workbench here;
  const Workbench there(false);
  ASSERT_EQ(spawn({"bindfs", here.root(), there.root()}).wait(), 0);
  const Mounted mounted(there.root());
  const Answer answer = there.run({"doctor"});
  const Json& document = answer.ok() ? answer.document : answer.at("error").at("details");
  ASSERT_TRUE(document.contains("doctor")) << answer.text;
  EXPECT_EQ(document.at("doctor").at("local"), false);
  EXPECT_TRUE(here.listing().empty()) << testing::PrintToString(here.listing());
}

TEST(DoctorOn, AReadOnlyFileSystemIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "root is needed to mount";
  const Workbench bench(false);
  ASSERT_EQ(::mount("tmpfs", bench.root().c_str(), "tmpfs", 0, "mode=0700"), 0);
  const Mounted mounted(bench.root());
  ASSERT_TRUE(bench.run({"init"}).ok());
  ASSERT_EQ(::mount(nullptr, bench.root().c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr), 0);
  const Answer refused = bench.run({"doctor"});
  EXPECT_EQ(refused.code(), "destination_read_only") << refused.text;
  EXPECT_EQ(refused.status, 5);
  EXPECT_TRUE(bench.listing().empty());
}

// The program where anybody may start it, and a workspace of another user's.
class ByNobody : public testing::Test {
 protected:
  ByNobody() : bench_(false) {
    EXPECT_EQ(::chmod(programs_.path().c_str(), 0755), 0);
    std::filesystem::copy_file(HOLDFAST_PROGRAM, programs_.at("holdfast"));
    EXPECT_EQ(::chown(bench_.root().c_str(), kNobody, kNobody), 0);
  }
  Answer run(const Words& words) const {
    const Words as_nobody = {"setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"};
    support::Child child = spawn(
        as_nobody + Words{programs_.at("holdfast"), "--workspace", bench_.root(), "--json"} + words, {"/", {}, false});
    child.close_input();
    return Workbench::answer_of(child);
  }
  TemporaryFolder programs_;
  Workbench bench_;
};

TEST_F(ByNobody, InHisOwnWorkspaceTheClaimsHoldAndWhatHeMayNotIsSaid) {
  if (::geteuid() != 0) GTEST_SKIP() << "root is needed to become another user";
  ASSERT_TRUE(run({"init"}).ok());
  const Answer answer = run({"doctor"});
  ASSERT_TRUE(answer.ok()) << answer.text;
  const Json& report = answer.at("doctor");
  EXPECT_EQ(report.at("user"), kNobody);
  expect_claims_hold(mechanism(report, "kernel_lease"));
  EXPECT_EQ(way(mechanism(report, "kernel_lease"), "by_another_user").at("outcome"), "not_tried");
  EXPECT_EQ(mechanism(report, "immutable_flag").at("usable"), false);
  EXPECT_EQ(mechanism(report, "immutable_flag").at("errno"), "EPERM");
  EXPECT_TRUE(bench_.listing().empty());
}

TEST_F(ByNobody, InAFolderThatHeMayNotWriteItIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "root is needed to become another user";
  ASSERT_TRUE(run({"init"}).ok());
  ASSERT_EQ(::chmod(bench_.root().c_str(), 0555), 0);
  const Answer refused = run({"doctor"});
  EXPECT_EQ(refused.code(), "workspace_permission_denied") << refused.text;
  EXPECT_TRUE(bench_.listing().empty());
}

}  // namespace
}  // namespace holdfast
