// What rung kernel_lease cannot stop: it is noticed by the watch and by check(). And what it refuses to promise.
#include <sys/mount.h>
#include <sys/xattr.h>

#include "guard_ground.h"

namespace holdfast::guard {
namespace {

struct Change {
  std::string name;
  std::string shell;  // with $F the guarded path and $D the folder
  std::string what;
};

class Noticed : public ::testing::TestWithParam<Change> {};

TEST_P(Noticed, ByTheWatchSoonAfter) {
  Ground ground;
  put_bytes(ground.path("f"), "guarded");
  const auto guard = ground.take("f");
  EXPECT_EQ(0, run_shell("F=" + ground.path("f") + "; D=" + ground.folder() + "; " + GetParam().shell));
  const auto seen = ground.observed(GetParam().what);
  ASSERT_TRUE(seen.has_value());
  EXPECT_EQ("destination_identity_changed", seen->fault);
  EXPECT_EQ("file://project:/in/f", seen->scope);
  EXPECT_EQ("destination_identity_changed", guard->enforcement().fault);
  EXPECT_FALSE(guard->enforcement().enforced);
  // What was guarded can still be read through the guard.
  EXPECT_EQ("guarded", text_of(*guard->open_preimage().value()));
}

TEST_P(Noticed, ByTheNextCheckAtOnce) {
  Ground ground;
  put_bytes(ground.path("f"), "guarded");
  const auto guard = ground.take("f");
  const auto token = guard->content_token();
  EXPECT_EQ(0, run_shell("F=" + ground.path("f") + "; D=" + ground.folder() + "; " + GetParam().shell));
  const auto checked = guard->check();
  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(Code::destination_identity_changed, checked.refusal().code());
  EXPECT_EQ(Effect::none, checked.refusal().effect());
  EXPECT_NE(token, guard->content_token());
  // A fault stays until somebody decides.
  EXPECT_FALSE(replace_with(*guard, "next").ok());
  EXPECT_TRUE(ground.leftovers().empty());
}

INSTANTIATE_TEST_SUITE_P(
    OfEachKind, Noticed,
    ::testing::Values(Change{"RenamedOver", "printf FOREIGN > $D/g; mv $D/g $F", "name_replaced"},
                      Change{"SedInPlace", "sed -i s/guarded/FOREIGN/ $F", "name_replaced"},
                      Change{"RenamedAway", "mv $F $D/g", "name_moved_away"},
                      Change{"Unlinked", "rm $F", "name_unlinked"},
                      Change{"ReplacedByALink", "ln -s /etc/hostname $D/g; mv -T $D/g $F", "name_replaced"},
                      Change{"UnlinkedAndMadeAgain", "rm $F; printf guarded > $F", "name_replaced"}),
    [](const auto& parameters) { return parameters.param.name; });

TEST(Detection, OfACreationAtAnAbsentDestination) {
  Ground ground;
  const auto guard = ground.take("f");
  EXPECT_EQ("absent_destination", guard->enforcement().reason);
  EXPECT_TRUE(guard->check().ok());
  EXPECT_FALSE(guard->open_preimage().value().has_value());
  put_bytes(ground.path("f"), "FOREIGN");
  EXPECT_TRUE(ground.observed("name_replaced").has_value());
  EXPECT_EQ(Code::destination_identity_changed, guard->check().refusal().code());
}

TEST(Detection, OfMetadataIsNoFault) {
  Ground ground;
  put_bytes(ground.path("f"), "guarded");
  const auto guard = ground.take("f");
  EXPECT_EQ(0, run_shell("chmod 0600 " + ground.path("f")));
  auto seen = ground.observed("metadata_changed");
  ASSERT_TRUE(seen.has_value());
  EXPECT_EQ(0600, seen->facts["to"]["mode"]);
  ASSERT_EQ(0, ::setxattr(ground.path("f").c_str(), "user.note", "x", 1, 0));
  seen = ground.observed("metadata_changed");
  ASSERT_TRUE(seen.has_value());
  EXPECT_EQ(true, seen->facts["attributes_changed"]);
  EXPECT_TRUE(guard->check().ok());
  EXPECT_TRUE(guard->enforcement().enforced);
}

TEST(Detection, OfANewHardLinkEndsTheEnforcementUntilItIsGone) {
  Ground ground;
  put_bytes(ground.path("f"), "guarded");
  const auto guard = ground.take("f");
  EXPECT_EQ(0, run_shell("ln " + ground.path("f") + " " + ground.path("g")));
  EXPECT_TRUE(ground.observed("link_made").has_value());
  EXPECT_TRUE(guard->check().ok());
  EXPECT_FALSE(guard->enforcement().enforced);
  EXPECT_EQ("several_hard_links", guard->enforcement().reason);
  EXPECT_EQ("kernel_lease", guard->enforcement().mechanism);
  EXPECT_EQ(0, run_shell("rm " + ground.path("g")));
  EXPECT_TRUE(guard->check().ok());
  EXPECT_TRUE(guard->enforcement().enforced);
}

TEST(Detection, OfAParentFolderThatWentElsewhere) {
  Ground ground;
  put_bytes(ground.path("f"), "guarded");
  const auto guard = ground.take("f");
  EXPECT_EQ(0, run_shell("cd " + ground.root() + " && mv in away && mkdir in && cp away/f in/f"));
  EXPECT_EQ(Code::destination_parent_redirected, guard->check().refusal().code());
  EXPECT_TRUE(ground.observed("name_moved_away").has_value());
  EXPECT_EQ(Code::destination_parent_redirected, guard->adopt_current().refusal().code());
}

TEST(Detection, OfAParentFolderThatBecameALink) {
  Ground ground;
  put_bytes(ground.path("f"), "guarded");
  const auto guard = ground.take("f");
  EXPECT_EQ(0, run_shell("cd " + ground.root() + " && mv in away && ln -s away in"));
  EXPECT_EQ(Code::destination_parent_redirected, guard->check().refusal().code());
}

// open(O_RDONLY|O_TRUNC) empties a file without breaking its read lease: not stopped, so it has to be seen.
TEST(Detection, OfAFileEmptiedPastItsLease) {
  Ground ground;
  put_bytes(ground.path("f"), "guarded");
  const auto guard = ground.take("f");
  const auto token = guard->content_token();
  ASSERT_EQ(0, Process(role_command(ground.path("f")), role_environment("empty_by_reading_open")).wait());
  const auto seen = ground.observed("content_changed");
  ASSERT_TRUE(seen.has_value());
  EXPECT_EQ("destination_content_diverged", seen->fault);
  EXPECT_EQ(Code::destination_content_diverged, guard->check().refusal().code());
  EXPECT_NE(token, guard->content_token());
}

TEST(Adoption, MakesTheCurrentObjectTheGuardedOne) {
  Ground ground;
  put_bytes(ground.path("f"), "guarded");
  const auto guard = ground.take("f");
  EXPECT_EQ(0, run_shell("printf FOREIGN > " + ground.path("g") + "; mv " + ground.path("g") + " " + ground.path("f")));
  EXPECT_FALSE(guard->check().ok());
  ASSERT_TRUE(guard->adopt_current().ok());
  EXPECT_TRUE(guard->check().ok());
  EXPECT_EQ(identity_of(ground.path("f")), guard->identity());
  EXPECT_TRUE(guard->enforcement().enforced);
  EXPECT_EQ(0, run_shell("printf more >> " + ground.path("f")));
  EXPECT_EQ("FOREIGN", bytes_of(ground.path("f")));
}

TEST(Enforced, IsNotSaidWhereAWriterWasThereBefore) {
  Ground ground;
  put_bytes(ground.path("f"), "guarded");
  Process writer(Process::shell("exec 3>> " + ground.path("f") + "; echo open; read x"));
  EXPECT_EQ("open", writer.line());
  const auto guard = ground.take("f");
  const Enforcement enforcement = guard->enforcement();
  EXPECT_FALSE(enforcement.enforced);
  EXPECT_EQ("none", enforcement.mechanism);
  EXPECT_EQ("unknown", enforcement.preexisting_writers);
  EXPECT_EQ("writer_was_there_before", enforcement.reason);
  EXPECT_FALSE(enforcement.detects.empty());
  EXPECT_NE(guard->content_token(), guard->content_token());
  // What is published is a file that nobody can have open.
  ASSERT_TRUE(replace_with(*guard, "next").ok());
  EXPECT_TRUE(guard->enforcement().enforced);
  EXPECT_EQ("excluded", guard->enforcement().preexisting_writers);
}

TEST(Enforced, IsNotSaidWhereAMappingWasThereBefore) {
  Ground ground;
  put_bytes(ground.path("f"), "guarded");
  Process writer(role_command(ground.path("f")), role_environment("hold_mapping"));
  EXPECT_EQ("ready", writer.line());
  EXPECT_EQ("writer_was_there_before", ground.take("f")->enforcement().reason);
  writer.close_input();
  EXPECT_EQ(0, writer.wait());
  EXPECT_TRUE(ground.take("f")->enforcement().enforced);
}

TEST(Enforced, IsNotSaidOfWhatIsNoPlainFile) {
  Ground ground;
  std::filesystem::create_directory(ground.path("folder"));
  ASSERT_EQ(0, ::mkfifo(ground.path("pipe").c_str(), 0600));
  ASSERT_EQ(0, ::symlink("folder", ground.path("link").c_str()));
  EXPECT_EQ("folder_needs_bpf_lsm", ground.take("folder")->enforcement().reason);
  EXPECT_EQ("destination_is_no_regular_file", ground.take("pipe")->enforcement().reason);
  EXPECT_EQ("destination_is_a_link", ground.take("link")->enforcement().reason);
  EXPECT_EQ(Code::destination_not_a_file, ground.take("pipe")->open_preimage().refusal().code());
  EXPECT_TRUE(ground.take("folder")->check().ok());
}

TEST(Enforced, IsNotSaidWhereADivertWouldPartNamesOrTakeTooLong) {
  Ground ground;
  ground.limits.divert_max_bytes = 4;
  put_bytes(ground.path("big"), "guarded");
  put_bytes(ground.path("two"), "abc");
  EXPECT_EQ(0, run_shell("ln " + ground.path("two") + " " + ground.path("names")));
  EXPECT_EQ("file_too_large_to_divert", ground.take("big")->enforcement().reason);
  const Enforcement two = ground.take("two")->enforcement();
  EXPECT_EQ("several_hard_links", two.reason);
  EXPECT_EQ("kernel_lease", two.mechanism);
  EXPECT_FALSE(two.enforced);
}

TEST(Enforced, EndsWithoutAFaultWhereItWasNeverSaid) {
  Ground ground;
  ground.limits.divert_max_bytes = 4;
  put_bytes(ground.path("big"), "guarded");
  const auto guard = ground.take("big");
  EXPECT_EQ(0, run_shell("printf x >> " + ground.path("big")));
  const auto lost = ground.observed("guard_lost");
  ASSERT_TRUE(lost.has_value());
  EXPECT_EQ("", lost->fault);
  EXPECT_EQ("guardedx", bytes_of(ground.path("big")));
  EXPECT_TRUE(guard->check().ok());
}

TEST(Enforced, IsNotSaidToAProcessThatDoesNotOwnTheFile) {
  if (::geteuid() != 0) GTEST_SKIP() << "root is needed to become somebody else";
  Ground ground;
  put_bytes(ground.path("f"), "guarded");
  Process guarding(role_command(ground.root(), "f"), role_environment("guard_as_nobody"));
  const Json told = Json::parse(guarding.line());
  EXPECT_EQ(false, told["enforced"]);
  EXPECT_EQ("not_owner_of_file", told["reason"]);
}

TEST(Enforced, IsNotSaidWhereTheFolderCannotBeWritten) {
  if (::geteuid() != 0) GTEST_SKIP() << "root is needed to become somebody else";
  Ground ground;
  put_bytes(ground.path("f"), "guarded");
  ASSERT_EQ(0, ::chown(ground.path("f").c_str(), 65534, 65534));
  Process guarding(role_command(ground.root(), "f"), role_environment("guard_as_nobody"));
  EXPECT_EQ("parent_not_writable", Json::parse(guarding.line())["reason"]);
}

// /proc/sys/fs/lease-break-time for one test.
class LeaseBreakTime {
 public:
  explicit LeaseBreakTime(const std::string& seconds) : before_(bytes_of(kPath)) { put_bytes(kPath, seconds); }
  LeaseBreakTime(const LeaseBreakTime&) = delete;
  LeaseBreakTime& operator=(const LeaseBreakTime&) = delete;
  ~LeaseBreakTime() { put_bytes(kPath, before_); }

 private:
  static constexpr const char* kPath = "/proc/sys/fs/lease-break-time";
  std::string before_;
};

TEST(LostGuard, IsReportedAsLostByAProcessThatWasStoppedTooLong) {
  if (::access("/proc/sys/fs/lease-break-time", W_OK) != 0) GTEST_SKIP() << "root is needed to shorten the break time";
  Ground ground;
  put_bytes(ground.path("f"), "guarded");
  Process guarding(role_command(ground.root(), "f"), role_environment("guard"));
  EXPECT_EQ(true, Json::parse(guarding.line())["enforced"]);
  {
    const LeaseBreakTime one_second("1");
    guarding.signal(SIGSTOP);
    EXPECT_EQ(0, run_shell("printf x >> " + ground.path("f")));
  }
  guarding.signal(SIGCONT);
  EXPECT_EQ("guard_lost destination_guard_lost", guarding.line());
  EXPECT_EQ("guardedx", bytes_of(ground.path("f")));
  guarding.close_input();
  EXPECT_EQ(0, guarding.wait());
  EXPECT_EQ("", guarding.line());
}

TEST(LostGuard, IsReportedWhereNoTwinCanBeMade) {
  if (::geteuid() != 0) GTEST_SKIP() << "root is needed to mount";
  Ground ground;
  ground.limits.divert_patience_ms = 2000;
  ASSERT_EQ(0, ::mount("tmpfs", ground.folder().c_str(), "tmpfs", 0, "size=64k"));
  put_bytes(ground.path("f"), std::string(40'000, 'x'));
  {
    const auto guard = ground.take("f");
    EXPECT_TRUE(guard->enforcement().enforced);
    EXPECT_EQ(0, run_shell("printf y >> " + ground.path("f")));
    const auto lost = ground.observed("guard_lost");
    ASSERT_TRUE(lost.has_value());
    EXPECT_EQ("destination_guard_lost", lost->fault);
    EXPECT_EQ(Code::destination_guard_lost, guard->check().refusal().code());
  }
  EXPECT_EQ(0, ::umount2(ground.folder().c_str(), MNT_DETACH));
}

#ifdef HOLDFAST_FAULT_POINTS
std::vector<std::string> guarding_slowly(int sleep_ms) {
  return {"HOLDFAST_GUARD_ROLE=guard", "HOLDFAST_FAULT=before_divert_exchange:sleep=" + std::to_string(sleep_ms)};
}

TEST(LostGuard, InTheMiddleOfADivertKeepsTheWritersBytes) {
  if (::access("/proc/sys/fs/lease-break-time", W_OK) != 0) GTEST_SKIP() << "root is needed to shorten the break time";
  Ground ground;
  put_bytes(ground.path("f"), "guarded");
  Process guarding(role_command(ground.root(), "f"), guarding_slowly(3000));
  EXPECT_EQ(true, Json::parse(guarding.line())["enforced"]);
  const LeaseBreakTime one_second("1");
  EXPECT_EQ(0, run_shell("printf x >> " + ground.path("f")));
  EXPECT_EQ("guard_lost destination_guard_lost", guarding.line());
  EXPECT_EQ("guarded", bytes_of(ground.path("f")));
  ASSERT_EQ(1U, ground.leftovers().size());
  EXPECT_EQ("guardedx", bytes_of(ground.path(ground.leftovers()[0])));
}

TEST(Detection, OfAnObjectThatSlippedInDuringADivertKeepsItsBytes) {
  Ground ground;
  put_bytes(ground.path("f"), "guarded");
  Process guarding(role_command(ground.root(), "f"), guarding_slowly(1000));
  EXPECT_EQ(true, Json::parse(guarding.line())["enforced"]);
  Process writer(Process::shell("printf x >> " + ground.path("f")));
  ASSERT_TRUE(eventually([&] { return !ground.leftovers().empty(); }));
  EXPECT_EQ(0, run_shell("printf FOREIGN > " + ground.path("g") + "; mv " + ground.path("g") + " " + ground.path("f")));
  EXPECT_EQ("name_replaced destination_identity_changed", guarding.line());
  EXPECT_EQ(0, writer.wait());
  EXPECT_EQ("guarded", bytes_of(ground.path("f")));
  ASSERT_EQ(1U, ground.leftovers().size());
  EXPECT_EQ("FOREIGN", bytes_of(ground.path(ground.leftovers()[0])));
}
#endif

TEST(LostGuard, IsNotWhatAShortStopMakes) {
  Ground ground;
  put_bytes(ground.path("f"), "guarded");
  Process guarding(role_command(ground.root(), "f"), role_environment("guard"));
  EXPECT_EQ(true, Json::parse(guarding.line())["enforced"]);
  guarding.signal(SIGSTOP);
  Process writer(Process::shell("echo about; printf x >> " + ground.path("f")));
  EXPECT_EQ("about", writer.line());
  EXPECT_EQ(-1, writer.wait(100));
  guarding.signal(SIGCONT);
  EXPECT_EQ("write_diverted ", guarding.line());
  EXPECT_EQ(0, writer.wait());
  EXPECT_EQ("guarded", bytes_of(ground.path("f")));
}

TEST(GuardEnd, LetsWritersIn) {
  Ground ground;
  put_bytes(ground.path("f"), "guarded");
  ground.take("f").reset();
  EXPECT_EQ(0, run_shell("printf x >> " + ground.path("f")));
  EXPECT_EQ("guardedx", bytes_of(ground.path("f")));
}

TEST(GuardEnd, OfTheProcessDropsEveryGuard) {
  Ground ground;
  put_bytes(ground.path("f"), "guarded");
  const auto guard = ground.take("f");
  const std::size_t with_guards = open_descriptors();
  {
    Ground other;
    put_bytes(other.path("f"), "guarded");
    const auto others = other.take("f");
  }
  EXPECT_EQ(with_guards, open_descriptors());
  EXPECT_TRUE(guard->enforcement().enforced);
}

TEST(Observations, EndTheirWaitWhenWoken) {
  Ground ground;
  Guards& guards = ground.guards();
  std::thread waker([&] { guards.wake(); });
  EXPECT_TRUE(guards.wait_for_observations(kGenerousMs).empty());
  waker.join();
}

}  // namespace
}  // namespace holdfast::guard
