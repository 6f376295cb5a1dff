#include "os/workspace_folder.h"

#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "scope/scratch_workspace.h"

namespace holdfast::os {
namespace {

class WorkspaceOnDisk : public ScratchWorkspace {
 protected:
  std::string opening(const std::filesystem::path& root) const {
    const Result<WorkspaceFolder> workspace = open_workspace(root.string());
    return workspace ? "opened" : std::string(workspace.refusal().code_name());
  }
  std::string opening() const { return opening(root_); }
};

TEST_F(WorkspaceOnDisk, OpensWithItsRealPathAndItsFileSystem) {
  std::filesystem::create_symlink(root_, base_ / "link");
  const Result<WorkspaceFolder> workspace = open_workspace((base_ / "link").string());
  ASSERT_TRUE(workspace.ok());
  EXPECT_EQ(workspace->root_path, root_.string());
  EXPECT_EQ(workspace->squad_facts.kind, Kind::folder);
  EXPECT_EQ(workspace->squad_facts.mode & 0777U, 0700U);
  EXPECT_FALSE(workspace->file_system.empty());
}

TEST_F(WorkspaceOnDisk, IsFoundFromAnyFolderBelowIt) {
  folder("deep/down");
  std::filesystem::create_symlink(path("deep"), base_ / "short");
  for (const std::filesystem::path& from : {root_, path("deep/down"), base_ / "short/down", path("deep/../deep/.")}) {
    EXPECT_EQ(find_workspace(from.string()), root_.string()) << from;
  }
  EXPECT_EQ(find_workspace(outside_.string()), std::nullopt);
  EXPECT_EQ(find_workspace((base_ / "absent").string()), std::nullopt);
  EXPECT_EQ(find_workspace(""), std::nullopt);
}

TEST_F(WorkspaceOnDisk, IsTheNearestOneAndNotPassedOverWhereItsControlFolderIsALink) {
  folder("inner/deep");
  ASSERT_TRUE(make_squad(path("inner").string()).value());
  EXPECT_EQ(find_workspace(path("inner/deep").string()), path("inner").string());
  std::filesystem::remove(path("inner/.squad"));
  link("absent", "inner/.squad");
  EXPECT_EQ(find_workspace(path("inner/deep").string()), path("inner").string());
  EXPECT_EQ(opening(path("inner")), "workspace_insecure");
}

TEST_F(WorkspaceOnDisk, IsNotFoundWhereThereIsNone) {
  EXPECT_EQ(opening(outside_), "workspace_not_found");
  EXPECT_EQ(opening(base_ / "absent"), "workspace_not_found");
  put(base_ / "file");
  EXPECT_EQ(opening(base_ / "file"), "workspace_not_found");
}

TEST_F(WorkspaceOnDisk, IsRefusedWhereOthersCanWriteItsControlFolder) {
  for (const mode_t mode : {0777U, 0770U, 0702U, 0720U, 01777U}) {
    ASSERT_EQ(::chmod(path(".squad").c_str(), mode), 0);
    EXPECT_EQ(opening(), "workspace_insecure") << std::oct << mode;
  }
  for (const mode_t mode : {0700U, 0755U, 02700U}) {
    ASSERT_EQ(::chmod(path(".squad").c_str(), mode), 0);
    EXPECT_EQ(opening(), "opened") << std::oct << mode;
  }
}

TEST_F(WorkspaceOnDisk, IsRefusedWhereItsControlFolderIsALinkOrAFile) {
  std::filesystem::rename(path(".squad"), path("moved"));
  link("moved", ".squad");
  EXPECT_EQ(opening(), "workspace_insecure");
  const Result<bool> made = make_squad(root_.string());
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.refusal().code(), Code::workspace_insecure);
  std::filesystem::remove(path(".squad"));
  put(path(".squad"));
  EXPECT_EQ(opening(), "workspace_insecure");
}

TEST_F(WorkspaceOnDisk, IsDeniedToAnotherUserWhetherOrNotTheModeLetsHimIn) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  ASSERT_EQ(::chmod(base_.c_str(), 0755), 0);
  ASSERT_EQ(::chmod(root_.c_str(), 0755), 0);
  for (const mode_t mode : {0700U, 0755U}) {
    ASSERT_EQ(::chmod(path(".squad").c_str(), mode), 0);
    std::thread([this] {  // the raw call changes the credentials of this thread alone
      ASSERT_EQ(::syscall(SYS_setresuid, 65534, 65534, 65534), 0);
      EXPECT_EQ(opening(), "workspace_permission_denied");
      const Result<bool> made = make_squad(outside_.string());
      ASSERT_FALSE(made.ok());
      EXPECT_EQ(made.refusal().code(), Code::workspace_permission_denied);
    })
        .join();
  }
}

TEST_F(WorkspaceOnDisk, IsOpenToRootWhoeverOwnsIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  ASSERT_EQ(::chown(path(".squad").c_str(), 65534, 65534), 0);
  EXPECT_EQ(opening(), "opened");
}

TEST_F(WorkspaceOnDisk, IsMadeOnceAndPrivateWhateverTheUmask) {
  const mode_t before = ::umask(0777);
  const Result<bool> made = make_squad(outside_.string());
  ::umask(before);
  ASSERT_TRUE(made.ok());
  EXPECT_TRUE(*made);
  const Result<WorkspaceFolder> workspace = open_workspace(outside_.string());
  ASSERT_TRUE(workspace.ok());
  EXPECT_EQ(workspace->squad_facts.mode, 0700U);
  EXPECT_FALSE(make_squad(outside_.string()).value());
  EXPECT_EQ(make_squad((base_ / "absent").string()).refusal().code(), Code::workspace_not_found);
}

TEST_F(WorkspaceOnDisk, KnowsTheFileSystemThatItsControlFolderIsOn) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  ASSERT_EQ(::mount("tmpfs", path(".squad").c_str(), "tmpfs", 0, "mode=0700"), 0) << std::strerror(errno);
  const Result<WorkspaceFolder> workspace = open_workspace(root_.string());
  ::umount2(path(".squad").c_str(), MNT_DETACH);
  ASSERT_TRUE(workspace.ok());
  EXPECT_EQ(workspace->file_system, "tmpfs");
  EXPECT_TRUE(workspace->local);
}

TEST_F(WorkspaceOnDisk, IsNotLocalOnAFileSystemThatNoDeviceBears) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  // proc stands for what is unknown and has an anonymous device, as network file systems have.
  ASSERT_EQ(::mount("proc", path(".squad").c_str(), "proc", MS_RDONLY, nullptr), 0) << std::strerror(errno);
  const Result<WorkspaceFolder> workspace = open_workspace(root_.string());
  ::umount2(path(".squad").c_str(), MNT_DETACH);
  ASSERT_TRUE(workspace.ok()) << workspace.refusal().message();
  EXPECT_TRUE(workspace->file_system.starts_with("0x"));
  EXPECT_FALSE(workspace->local);
}

}  // namespace
}  // namespace holdfast::os
