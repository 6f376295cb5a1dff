// What only Linux shows: bind mounts, special files, permissions, and an adversary who swaps names all the time.
#include "os/path_walk.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <set>
#include <thread>

#include "scope/scratch_workspace.h"

namespace holdfast::os {
namespace {

using namespace std::chrono_literals;

class PathWalk : public ScratchWorkspace {
 protected:
  // A bind mount for the length of a test.
  class Bound {
   public:
    Bound(const std::filesystem::path& from, std::filesystem::path to) : to_(std::move(to)) {
      EXPECT_EQ(::mount(from.c_str(), to_.c_str(), nullptr, MS_BIND, nullptr), 0) << std::strerror(errno);
    }
    ~Bound() { ::umount2(to_.c_str(), MNT_DETACH); }
    Bound(const Bound&) = delete;
    Bound& operator=(const Bound&) = delete;

   private:
    std::filesystem::path to_;
  };

  static std::size_t open_descriptors() {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
    return count;
  }
};

TEST_F(PathWalk, RecognisesTheWorkspaceThroughABindMountOfIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  put(path("deep/x"));
  std::filesystem::create_directory(base_ / "mounted");
  const Bound bound(root_, base_ / "mounted");
  EXPECT_EQ(resolve((base_ / "mounted/deep/x").string()), "project:/deep/x");
  EXPECT_EQ(resolve_from((base_ / "mounted/deep").string(), "x"), "project:/deep/x");
}

TEST_F(PathWalk, KeepsTheNameOfAMountInsideAndSaysWhatItIs) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  put(path("one.txt"), "one");
  put(path("two.txt"), "");
  put(outside_ / "x");
  folder("mounted");
  const Bound file(path("one.txt"), path("two.txt"));
  const Bound outer(outside_, path("mounted"));
  EXPECT_EQ(resolve("two.txt"), "project:/two.txt");
  EXPECT_EQ(resolve("mounted/x"), "project:/mounted/x");
  Result<PinnedPlace> two = pin_place(workspace_, scope_of("two.txt"));
  ASSERT_TRUE(two.ok());
  EXPECT_TRUE(two->is_mount_point);
  EXPECT_EQ(two->facts->identity, pin_place(workspace_, scope_of("one.txt"))->facts->identity);
  EXPECT_FALSE(pin_place(workspace_, scope_of("one.txt"))->is_mount_point);
  EXPECT_TRUE(pin_place(workspace_, scope_of("mounted"))->is_mount_point);
  EXPECT_FALSE(pin_place(workspace_, scope_of("mounted/x"))->is_mount_point);
  EXPECT_EQ(answer(opened_file_scope(workspace_, *two->object)), "project:/two.txt");
}

TEST_F(PathWalk, RefusesTheControlFolderBehindABindMount) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  put(path(".squad/locks/x"));
  folder("innocent");
  const Bound bound(path(".squad"), path("innocent"));
  EXPECT_EQ(resolve("innocent/locks/x"), "scope_reserved");
  const Result<PinnedPlace> place = pin_place(workspace_, scope_of("innocent/locks/x"));
  ASSERT_FALSE(place.ok());
  EXPECT_EQ(place.refusal().code(), Code::scope_reserved);
}

TEST_F(PathWalk, NeverOpensASpecialFile) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(resolve("pipe"), "project:/pipe");
  Result<PinnedPlace> place = pin_place(workspace_, scope_of("pipe"));  // opening it for reading would wait for ever
  ASSERT_TRUE(place.ok());
  EXPECT_EQ(place->facts->kind, Kind::other);
  EXPECT_FALSE(place->object.has_value());
  // Nobody has it open for reading: a writer that does not wait is told so.
  EXPECT_EQ(::open(path("pipe").c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC), -1);
  EXPECT_EQ(errno, ENXIO);
}

TEST_F(PathWalk, KeepsHandlesOutOfOtherPrograms) {
  put(path("deep/a.txt"));
  Result<PinnedPlace> place = pin_place(workspace_, scope_of("deep/a.txt"));
  ASSERT_TRUE(place.ok());
  for (const int descriptor : {place->parent.fd(), place->object->fd(), workspace_.root.fd(), workspace_.squad.fd()}) {
    EXPECT_NE(::fcntl(descriptor, F_GETFD) & FD_CLOEXEC, 0);
  }
}

// Runs as another user in a thread of its own: the raw call changes the credentials of that thread alone.
TEST_F(PathWalk, GivesTheFactsOfAFileThatMayNotBeRead) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  put(path("secret"), "12345");
  ASSERT_EQ(::chmod(path("secret").c_str(), 0600), 0);
  put(path("closed/a.txt"));
  ASSERT_EQ(::chmod(path("closed").c_str(), 0700), 0);
  ASSERT_EQ(::chmod(root_.c_str(), 0755), 0);
  std::thread([this] {
    ASSERT_EQ(::syscall(SYS_setresuid, 65534, 65534, 65534), 0);
    Result<PinnedPlace> place = pin_place(workspace_, scope_of("secret"));
    ASSERT_TRUE(place.ok()) << place.refusal().message();
    EXPECT_EQ(place->facts->byte_count, 5U);
    EXPECT_FALSE(place->object.has_value());
    const Result<PinnedPlace> closed = pin_place(workspace_, scope_of("closed/a.txt"));
    ASSERT_FALSE(closed.ok());
    EXPECT_EQ(closed.refusal().code(), Code::destination_parent_unverifiable);
    EXPECT_EQ(resolve("closed/a.txt"), "scope_unresolvable");
  }).join();
}

TEST_F(PathWalk, LeavesNoDescriptorOpen) {
  put(path("real/a.txt"));
  put(outside_ / "x");
  link("real", "folder");
  link(outside_, "leaving");
  link("loop", "loop");
  const std::size_t before = open_descriptors();
  for (int round = 0; round < 50; ++round) {
    for (const char* text : {"folder/a.txt", "leaving/x", "loop", "new/x", ".squad/x", "/etc/hostname"})
      (void)resolve(text);
    (void)pin_place(workspace_, scope_of("real/a.txt"));
    (void)pin_place(workspace_, scope_of("folder/a.txt"));
    (void)opened_file_scope(workspace_, workspace_.root);
  }
  EXPECT_EQ(open_descriptors(), before);
}

// B93, M12: while a folder and a link that leaves the workspace change places without pause, nothing that is resolved
// or pinned is ever outside, and everything that is answered is one of the answers that a quiet moment has.
TEST_F(PathWalk, NeverGetsOutsideWhileAFolderAndALinkChangePlaces) {
  put(path("flip/a.txt"), "inside");
  put(outside_ / "a.txt", "OUTSIDE");
  link(outside_, "flop");
  const Identity inside = pin_place(workspace_, scope_of("flip/a.txt"))->facts->identity;
  std::atomic<bool> stop = false;
  std::atomic<std::uint64_t> swaps = 0;
  std::thread swapper([&] {
    const std::string flip = path("flip").string();
    const std::string flop = path("flop").string();
    while (!stop) {
      if (::syscall(SYS_renameat2, AT_FDCWD, flip.c_str(), AT_FDCWD, flop.c_str(), RENAME_EXCHANGE) == 0) ++swaps;
    }
  });
  std::set<std::string> resolved;
  std::set<std::string> pinned;
  const auto end = std::chrono::steady_clock::now() + 2s;
  while (std::chrono::steady_clock::now() < end) {
    resolved.insert(resolve("flip/a.txt"));
    Result<PinnedPlace> place = pin_place(workspace_, scope_of("flip/a.txt"));
    pinned.insert(place ? "pinned" : std::string(place.refusal().code_name()));
    if (place) {
      ASSERT_EQ(place->facts->identity, inside);
      ASSERT_EQ(read_whole(*place->object, 100).value(), "inside");
      const std::string found = answer(opened_file_scope(workspace_, *place->object));
      ASSERT_TRUE(found == "project:/flip/a.txt" || found == "project:/flop/a.txt" || found == "scope_unresolvable" ||
                  found == "scope_outside_workspace")
          << found;
    }
  }
  stop = true;
  swapper.join();
  EXPECT_GT(swaps, 100U);
  EXPECT_EQ(resolved, (std::set<std::string>{"project:/flip/a.txt", "scope_outside_workspace"}));
  EXPECT_EQ(pinned, (std::set<std::string>{"pinned", "destination_parent_redirected"}));
}

// The leaf changes between a file and a pipe: opening the name again would hang, or wake the pipe's writer.
TEST_F(PathWalk, OpensTheObjectThatItLookedAtWhileALeafAndAPipeChangePlaces) {
  put(path("file"), "inside");
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  std::atomic<bool> stop = false;
  std::thread swapper([&] {
    while (!stop) {
      ::syscall(SYS_renameat2, AT_FDCWD, path("file").c_str(), AT_FDCWD, path("pipe").c_str(), RENAME_EXCHANGE);
    }
  });
  const auto end = std::chrono::steady_clock::now() + 1s;
  while (std::chrono::steady_clock::now() < end) {
    Result<PinnedPlace> place = pin_place(workspace_, scope_of("file"));
    ASSERT_TRUE(place.ok()) << place.refusal().message();
    ASSERT_EQ(place->object.has_value(), place->facts->kind == Kind::regular);
    if (place->object) { ASSERT_EQ(facts_of_open(*place->object)->identity, place->facts->identity); }
  }
  stop = true;
  swapper.join();
}

}  // namespace
}  // namespace holdfast::os
