#include "os/confinement.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>

#include "os/command_process.h"
#include "os/linux/landlock_rights.h"
#include "support/child.h"
#include "support/refused_with.h"
#include "support/temporary_folder.h"

namespace holdfast::os {
namespace {

using support::granted;
using support::refused_with;
using support::TemporaryFolder;

constexpr int kLimitMs = 20'000;

Handle named(const std::string& path) { return Handle(::open(path.c_str(), O_PATH | O_CLOEXEC)); }

// Two folders; `leased` is writable, and the files that are named.
struct Ground {
  Ground() {
    place.make_folder("leased/inner");
    place.make_folder("outside");
    place.write("outside/file", "old");
  }

  // The status of a script that is confined to what is leased.
  int run(const std::string& script, const std::vector<std::string>& leased_files = {}) const {
    std::vector<Handle> folders;
    std::vector<Handle> files;
    folders.push_back(named(place.at("leased")));
    for (const std::string& file : leased_files) files.push_back(named(place.at(file)));
    const auto confinement = Confinement::prepare(folders, files);
    if (!granted(confinement)) return -1;
    CommandOptions options;
    options.folder = place.path();
    options.confinement = &*confinement;
    auto command = CommandProcess::start({"sh", "-ec", script}, options);
    if (!granted(command) || !granted((*command)->release_gate())) return -1;
    return (*command)->wait(kLimitMs).value_or(-1);
  }

  TemporaryFolder place;
};

TEST(Confinement, LetsEverythingHappenInAWritableFolder) {
  const Ground ground;
  EXPECT_EQ(
      ground.run("cd leased; echo one > a; echo two >> a; truncate -s 3 a; mkdir b; mv a b/c; ln b/c d; ln -s d e; "
                 "mkfifo f; mv b/c inner/c; cp -a inner copy; chmod 600 d; touch -d 2000-01-01 d; rm e f; "
                 "rm -r copy b; rm d; cat inner/c > said"),
      0);
  EXPECT_EQ(ground.place.read("leased/said"), "one");
}

TEST(Confinement, LetsAWritableFileBeWrittenAndTruncatedAndNothingElse) {
  const Ground ground;
  EXPECT_EQ(ground.run("echo new > outside/file; echo more >> outside/file", {"outside/file"}), 0);
  EXPECT_EQ(ground.place.read("outside/file"), "new\nmore\n");
  EXPECT_EQ(ground.run("truncate -s 2 outside/file", {"outside/file"}), 0);
  EXPECT_EQ(ground.place.read("outside/file"), "ne");
  for (const char* script :
       {"rm -f outside/file", "mv outside/file leased/x", "mv outside/file outside/y", "ln outside/file leased/x",
        "echo x > leased/x; mv leased/x outside/file", "echo x > outside/other", "rm -rf outside"}) {
    EXPECT_NE(ground.run(script, {"outside/file"}), 0) << script;
    EXPECT_EQ(ground.place.read("outside/file"), "ne") << script;
  }
  EXPECT_FALSE(ground.place.exists("outside/other"));
}

TEST(Confinement, FollowsTheObjectAndNotItsName) {
  const Ground ground;
  std::vector<Handle> folders;
  folders.push_back(named(ground.place.at("leased")));
  const auto confinement = Confinement::prepare(folders, {});
  ASSERT_TRUE(granted(confinement));
  std::filesystem::rename(ground.place.at("leased"), ground.place.at("moved"));
  ground.place.make_folder("leased");
  CommandOptions options;
  options.folder = ground.place.path();
  options.confinement = &*confinement;
  auto command = CommandProcess::start({"sh", "-c", "echo > moved/x; echo > leased/y; exit 0"}, options);
  ASSERT_TRUE(granted(command));
  ASSERT_TRUE((*command)->release_gate());
  EXPECT_EQ((*command)->wait(kLimitMs), 0);
  EXPECT_TRUE(ground.place.exists("moved/x"));
  EXPECT_FALSE(ground.place.exists("leased/y"));
}

TEST(Confinement, LeavesReadingRunningAndTheUsualDevicesFree) {
  const Ground ground;
  EXPECT_EQ(ground.run("cat outside/file > /dev/null; echo x > /dev/zero; echo x >> /dev/null; ls / > leased/said; "
                       "echo a | cat | cat > leased/piped; cat /dev/urandom | head -c 3 > leased/random; "
                       "[ \"$(id -u)\" = \"$(id -u)\" ]; (echo x > /dev/full) 2> /dev/null || echo full > leased/full"),
            0);
  EXPECT_EQ(ground.place.read("leased/piped"), "a\n");
  EXPECT_EQ(ground.place.read("leased/full"), "full\n");
  EXPECT_EQ(
      ground.run("exec python3 -c 'import pty,os; m,s=pty.openpty(); t=os.open(os.ttyname(s),os.O_RDWR|os.O_NOCTTY); "
                 "os.get_terminal_size(t); os.write(t,b\"x\")'"),
      0);
}

// What the header says is not denied: a test, so that nobody promises more.
TEST(Confinement, DoesNotDenyWhatChangesAFileWithoutWritingToIt) {
  const Ground ground;
  EXPECT_EQ(ground.run("chmod 640 outside/file; touch -d 2000-01-01 outside/file"), 0);
  struct stat status {};
  ASSERT_EQ(::stat(ground.place.at("outside/file").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0640U);
  EXPECT_LT(status.st_mtim.tv_sec, 1'000'000'000);
  EXPECT_EQ(ground.place.read("outside/file"), "old");
}

TEST(Confinement, ConfinesTheCommandAndNotUs) {
  const Ground ground;
  EXPECT_NE(ground.run("echo x > outside/file"), 0);
  ground.place.write("outside/file", "ours");
  EXPECT_EQ(ground.place.read("outside/file"), "ours");
}

TEST(Confinement, DoesNotHideADaemonFromItsEnd) {
  const Ground ground;
  std::vector<Handle> folders;
  folders.push_back(named(ground.place.at("leased")));
  const auto confinement = Confinement::prepare(folders, {});
  ASSERT_TRUE(granted(confinement));
  CommandOptions options;
  options.folder = ground.place.at("leased");
  options.confinement = &*confinement;
  options.whole_tree = true;
  auto command = CommandProcess::start({"sh", "-c",
                                        "setsid sh -c 'echo $$ > daemon; while :; do echo >> mark; sleep 0.01; done' & "
                                        "while [ ! -s mark ]; do sleep 0.01; done; exit 4"},
                                       options);
  ASSERT_TRUE(granted(command));
  ASSERT_TRUE((*command)->release_gate());
  EXPECT_EQ((*command)->wait(kLimitMs), 4);
  EXPECT_FALSE(process_of_pid(std::stol(ground.place.read("leased/daemon"))).ok());
}

TEST(Confinement, RefusesAHandleThatIsNoFolder) {
  const Ground ground;
  std::vector<Handle> folders;
  folders.push_back(named(ground.place.at("outside/file")));
  EXPECT_TRUE(refused_with(Confinement::prepare(folders, {}), Code::os_failed));
}

// Makes the kernel look as if it had no Landlock.
const support::RegisterRole kWithoutLandlock("without_landlock", [](const std::vector<std::string>& arguments) {
  const auto error = static_cast<unsigned>(std::stoi(arguments.at(0)));
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 444, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{4, rules};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    return 1;
  }
  const auto confinement = Confinement::prepare({}, {});
  support::say(confinement ? "granted" : std::string(confinement.refusal().code_name()));
  return 0;
});

TEST(Confinement, IsRefusedWhereLandlockIsMissingOrSwitchedOff) {
  for (const int error : {ENOSYS, EOPNOTSUPP}) {
    auto child = support::spawn_as("without_landlock", {std::to_string(error)});
    EXPECT_EQ(child.read_line(), "confinement_unavailable");
  }
}

TEST(Confinement, IsRefusedWhereTruncationCannotBeDenied) {
  EXPECT_TRUE(refused_with(landlock::usable_abi(1, 0), Code::confinement_unavailable));
  EXPECT_TRUE(refused_with(landlock::usable_abi(2, 0), Code::confinement_unavailable));
  EXPECT_TRUE(refused_with(landlock::usable_abi(0, 0), Code::confinement_unavailable));
  EXPECT_TRUE(refused_with(landlock::usable_abi(-1, ENOSYS), Code::confinement_unavailable));
  EXPECT_EQ(landlock::usable_abi(3, 0).value(), 3);
  EXPECT_EQ(landlock::usable_abi(99, 0).value(), 99);
}

TEST(Confinement, AsksOfEachVersionWhatItKnows) {
  EXPECT_EQ(landlock::denied_by(3), 0x7ff2U);  // everything but execute, read file, read folder
  EXPECT_EQ(landlock::denied_by(4), 0x7ff2U);
  EXPECT_EQ(landlock::denied_by(5), 0xfff2U);
  EXPECT_EQ(landlock::denied_by(99), 0xfff2U);
  EXPECT_EQ(landlock::scopes_of(5), 0U);
  EXPECT_EQ(landlock::scopes_of(6), 3U);
  for (const int abi : {3, 5, 7}) {
    EXPECT_EQ(landlock::allowed_below_folder(abi) &
                  (landlock::kMakeBlockDevice | landlock::kMakeCharacterDevice | landlock::kDeviceIoctl),
              0U);
  }
}

}  // namespace
}  // namespace holdfast::os
