// The whole program on file systems that answer otherwise: one that is not local, layers, and the moment in which the
// destination's folder becomes a link (field reports B45, B84, B94).
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>

#include "base/digest.h"
#include "support/mounted.h"
#include "support/workbench.h"

namespace holdfast {
namespace {

using support::Answer;
using support::Lease;
using support::Mounted;
using support::spawn;
using support::TemporaryFolder;
using support::Workbench;

TEST(NotLocal, B94AFuseMountIsRefusedBeforeAnythingIsMadeThere) {
  if (::geteuid() != 0) GTEST_SKIP() << "root is needed to mount";
  const TemporaryFolder below;
  const Workbench bench(false);
  ASSERT_EQ(spawn({"bindfs", below.path(), bench.root()}).wait(), 0);
  const Mounted mounted(bench.root());
  const Answer made = bench.run({"init"});
  EXPECT_EQ(made.code(), "workspace_not_local") << made.text;
  EXPECT_TRUE(std::filesystem::is_empty(below.path()));
}

TEST(NotLocal, B94AWorkspaceThatIsReachedThroughAFuseMountIsReadAndNotChanged) {
  if (::geteuid() != 0) GTEST_SKIP() << "root is needed to mount";
  const Workbench here;
  here.put("a.txt", "kept");
  const Workbench there(false);
  ASSERT_EQ(spawn({"bindfs", here.root(), there.root()}).wait(), 0);
  const Mounted mounted(there.root());
  const Answer acquired = there.run({"acquire", "a.txt", "--owner", "a", "--task", "t"});
  EXPECT_FALSE(acquired.ok());
  EXPECT_TRUE(acquired.code() == "workspace_not_local" || acquired.code() == "workspace_copied") << acquired.text;
  EXPECT_TRUE(here.run({"leases"}).at("leases").empty());
}

class OnOverlay : public testing::Test {
 protected:
  OnOverlay() : bench_(false) {
    for (const char* name : {"lower", "upper", "work"}) layers_.make_folder(name);
    layers_.write("lower/low.txt", "from below");
    const std::string options =
        "lowerdir=" + layers_.at("lower") + ",upperdir=" + layers_.at("upper") + ",workdir=" + layers_.at("work");
    EXPECT_EQ(::mount("overlay", bench_.root().c_str(), "overlay", 0, options.c_str()), 0);
    EXPECT_TRUE(bench_.run({"init"}).ok());
    bench_.serve();
  }
  ~OnOverlay() override {
    bench_.kill_server();
    ::umount2(bench_.root().c_str(), MNT_DETACH);
  }
  TemporaryFolder layers_;
  Workbench bench_;
};

TEST_F(OnOverlay, B84AFileOfALowerLayerIsReplacedAndVerifiedByAFreshOpen) {
  const Lease lease = bench_.acquire("low.txt");
  const Answer written = bench_.write(lease, "above", {"--preimage", sha256_hex("from below")});
  ASSERT_TRUE(written.ok()) << written.text;
  EXPECT_EQ(bench_.get("low.txt"), "above");
  EXPECT_EQ(layers_.read("lower/low.txt"), "from below");
  EXPECT_TRUE(bench_.write(lease, "again").ok());
  const Answer released = bench_.release(lease);
  EXPECT_EQ(released.at("content_mismatch"), false) << released.text;
}

TEST_F(OnOverlay, B84TheProofOfNoEarlierWriterIsNotClaimed) {
  const Lease lease = bench_.acquire("low.txt");
  EXPECT_EQ(lease.record["os_lock"]["enforced"], false);
  EXPECT_EQ(lease.record["os_lock"]["preexisting_writers"], "unknown");
}

TEST_F(OnOverlay, AForeignWriteToALowerFileIsNoticedAtTheLatestByTheRelease) {
  const Lease lease = bench_.acquire("low.txt");
  bench_.put("low.txt", "foreign");
  const Answer released = bench_.release(lease);
  const bool noticed = released.at("content_mismatch") == true || bench_.get("low.txt") == "from below";
  EXPECT_TRUE(noticed) << released.text;
}

class InTheWindow : public testing::Test {
 protected:
  // The server waits at this point of a write while the test changes what is there.
  void served(const std::string& point) {
    std::filesystem::create_directory(bench_.at("d"));
    bench_.put("d/f.txt", "old");
    bench_.serve({{"HOLDFAST_FAULT", point + ":sleep=1500"}});
  }
  std::unique_ptr<support::Child> writing(const Lease& lease) {
    bench_.put("new", "new bytes");
    support::Words words = {"write", lease.scope};
    for (const std::string& key : lease.keys()) words.push_back(key);
    words.insert(words.end(), {"--from", bench_.at("new")});
    auto child = bench_.start(words);
    ::usleep(600'000);
    return child;
  }
  Workbench bench_;
};

TEST_F(InTheWindow, AFolderThatBecomesALinkBetweenCheckAndRenameIsAFaultAndNotAnotherFile) {
  served("write_before_exchange");
  const Lease lease = bench_.acquire("d/f.txt");
  const auto writer = writing(lease);
  std::filesystem::rename(bench_.at("d"), bench_.at("moved"));
  std::filesystem::create_directory(bench_.at("elsewhere"));
  bench_.put("elsewhere/f.txt", "not ours");
  std::filesystem::create_directory_symlink("elsewhere", bench_.at("d"));
  const Answer answer = Workbench::answer_of(*writer);
  EXPECT_EQ(answer.code(), "destination_name_redirected") << answer.text;
  EXPECT_EQ(answer.status, 4);
  EXPECT_EQ(bench_.get("elsewhere/f.txt"), "not ours");
  const std::string moved = bench_.get("moved/f.txt");
  EXPECT_TRUE(moved == "old" || moved == "new bytes") << moved;
  EXPECT_EQ(bench_.run({"reconcile", "list"}).at("reconcile").size(), 1U);
}

TEST_F(InTheWindow, B45AReleaseWaitsForAReplacementThatIsBeingPublished) {
  served("write_after_intent");
  const Lease lease = bench_.acquire("d/f.txt");
  const auto writer = writing(lease);
  const Answer released = bench_.release(lease);
  EXPECT_TRUE(Workbench::answer_of(*writer).ok());
  EXPECT_TRUE(released.ok()) << released.text;
  EXPECT_EQ(released.at("content_check").at("baseline_source"), "gated_write_post_sha256");
  EXPECT_EQ(released.at("content_mismatch"), false);
}

TEST_F(InTheWindow, B45AReplacementThatIsStillBeingStagedIsFencedByTheRelease) {
  served("write_after_staging");
  const Lease lease = bench_.acquire("d/f.txt");
  const auto writer = writing(lease);
  ASSERT_TRUE(bench_.release(lease).ok());
  const Lease next = bench_.acquire("d/f.txt", "bob");
  const Answer answer = Workbench::answer_of(*writer);
  EXPECT_EQ(answer.code(), "stale_lease_generation") << answer.text;
  EXPECT_EQ(bench_.get("d/f.txt"), "old");
  EXPECT_EQ(bench_.release(next).at("content_mismatch"), false);
}

}  // namespace
}  // namespace holdfast
