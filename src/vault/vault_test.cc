#include "vault/vault.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <thread>
#include <vector>

#include "os/unnamed_file.h"
#include "support/refused_with.h"
#include "support/temporary_folder.h"

namespace holdfast::vault {
namespace {

namespace fs = std::filesystem;
using support::granted;
using support::refused_with;
using support::TemporaryFolder;

constexpr const char* kAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  return names;
}

std::string bytes_of(const os::Handle& object) { return os::read_whole(object, 1ULL << 30U).value(); }

class VaultTest : public testing::Test {
 protected:
  TemporaryFolder squad;
  std::unique_ptr<Vault> vault = Vault::open(squad.open()).value();

  std::string entry(Tier tier, const std::string& sha256) {
    return "vault/" + std::string(name_of(tier)) + "/" + sha256;
  }
  os::Handle object_of(const std::string& bytes) {
    squad.write("object", bytes);
    return os::open_for_reading(squad.open(), "object").value();
  }
};

TEST_F(VaultTest, KeepsBytesUnderTheirDigest) {
  const ContentDigest digest = vault->store_bytes(Tier::primary, "abc").value();
  EXPECT_EQ(digest.sha256, kAbc);
  EXPECT_EQ(digest.fnv1a, fnv1a_hex("abc"));
  EXPECT_EQ(digest.byte_count, 3U);
  EXPECT_EQ(squad.read(entry(Tier::primary, kAbc)), "abc");
  EXPECT_EQ(bytes_of(vault->open_verified(Tier::primary, kAbc).value()), "abc");
  EXPECT_TRUE(vault->contains(Tier::primary, kAbc));
  EXPECT_FALSE(vault->contains(Tier::amber, kAbc));
}

TEST_F(VaultTest, MakesFilesAndFoldersOfTheOwnerAlone) {
  const mode_t mask = ::umask(0);
  TemporaryFolder other;
  auto opened = Vault::open(other.open()).value();
  ASSERT_TRUE(granted(opened->store_bytes(Tier::amber, "abc")));
  ::umask(mask);
  const auto mode = [&](const std::string& path) {
    struct stat found {};
    EXPECT_EQ(::lstat(other.at(path).c_str(), &found), 0);
    return found.st_mode & 07777U;
  };
  EXPECT_EQ(mode("vault"), 0700U);
  EXPECT_EQ(mode("vault/amber"), 0700U);
  EXPECT_EQ(mode(entry(Tier::amber, kAbc)), 0600U);
}

TEST_F(VaultTest, KeepsAnEmptyAndALargeObject) {
  const std::string large(3'000'001, 'x');
  for (const std::string& bytes : {std::string(), std::string(256U * 1024U, 'y'), large}) {
    std::uint64_t seen = 0;
    const os::Handle object = object_of(bytes);
    const auto digest = vault->store(Tier::amber, object, nullptr, [&](std::uint64_t done) { seen = done; }).value();
    EXPECT_EQ(digest.sha256, sha256_hex(bytes));
    EXPECT_EQ(digest.byte_count, bytes.size());
    EXPECT_EQ(seen, bytes.size());
    EXPECT_EQ(bytes_of(vault->open_verified(Tier::amber, digest.sha256).value()), bytes);
  }
}

TEST_F(VaultTest, ReadsTheObjectFromItsBeginningWhateverItsPosition) {
  const os::Handle object = object_of("abc");
  ASSERT_EQ(::lseek(object.fd(), 2, SEEK_SET), 2);
  EXPECT_EQ(vault->store(Tier::primary, object).value().sha256, kAbc);
}

TEST_F(VaultTest, WritesNothingWhereTheBytesAreThereAlready) {
  ASSERT_TRUE(granted(vault->store_bytes(Tier::primary, "abc")));
  struct stat before {
  }, after{};
  ASSERT_EQ(::stat(squad.at(entry(Tier::primary, kAbc)).c_str(), &before), 0);
  ASSERT_TRUE(granted(vault->store_bytes(Tier::primary, "abc")));
  ASSERT_TRUE(granted(vault->store(Tier::primary, object_of("abc"))));
  ASSERT_EQ(::stat(squad.at(entry(Tier::primary, kAbc)).c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
  EXPECT_EQ(before.st_ctim.tv_nsec, after.st_ctim.tv_nsec);
  EXPECT_EQ(names_in(squad.at("vault/primary")).size(), 1U);
}

TEST_F(VaultTest, SkipsTheCopyOfAKnownDigest) {
  const ContentDigest known = vault->store_bytes(Tier::primary, "abc").value();
  const os::Handle object = object_of("something else");
  EXPECT_EQ(vault->store(Tier::primary, object, &known).value().sha256, kAbc);
  // A digest that the tier does not have is no reason to believe it.
  EXPECT_EQ(vault->store(Tier::amber, object, &known).value().sha256, sha256_hex("something else"));
}

TEST_F(VaultTest, FindsBytesInEitherTier) {
  ASSERT_TRUE(granted(vault->store_bytes(Tier::amber, "abc")));
  EXPECT_EQ(bytes_of(vault->open_verified_any(kAbc).value()), "abc");
  EXPECT_TRUE(refused_with(vault->open_verified(Tier::primary, kAbc), Code::vault_entry_missing));
  EXPECT_TRUE(refused_with(vault->open_verified_any(sha256_hex("none")), Code::vault_entry_missing));
}

// --- attacks

TEST_F(VaultTest, RefusesAnEntryThatDoesNotHashToItsNameAndKeepsIt) {
  ASSERT_TRUE(granted(vault->store_bytes(Tier::primary, "abc")));
  squad.write(entry(Tier::primary, kAbc), "abd");
  const auto opened = vault->open_verified(Tier::primary, kAbc);
  ASSERT_TRUE(refused_with(opened, Code::vault_entry_corrupt));
  EXPECT_EQ(opened.refusal().details()["actual_sha256"], sha256_hex("abd"));
  EXPECT_TRUE(refused_with(vault->open_verified_any(kAbc), Code::vault_entry_corrupt));
  EXPECT_EQ(squad.read(entry(Tier::primary, kAbc)), "abd");
  ASSERT_TRUE(granted(vault->store_bytes(Tier::amber, "abc")));
  EXPECT_EQ(bytes_of(vault->open_verified_any(kAbc).value()), "abc");
}

TEST_F(VaultTest, RefusesToStoreOverAnEntryOfAnotherSize) {
  squad.write(entry(Tier::amber, kAbc), "garbage");
  EXPECT_TRUE(refused_with(vault->store_bytes(Tier::amber, "abc"), Code::vault_entry_corrupt));
  EXPECT_TRUE(refused_with(vault->store(Tier::amber, object_of("abc")), Code::vault_entry_corrupt));
  const ContentDigest known{kAbc, fnv1a_hex("abc"), 3};
  EXPECT_TRUE(refused_with(vault->store(Tier::amber, object_of("abc"), &known), Code::vault_entry_corrupt));
  EXPECT_EQ(squad.read(entry(Tier::amber, kAbc)), "garbage");
}

TEST_F(VaultTest, RefusesAFolderOrAPipeInAnEntrysPlaceWithoutWaiting) {
  squad.make_folder(entry(Tier::primary, kAbc));
  ASSERT_EQ(::mkfifo(squad.at(entry(Tier::amber, kAbc)).c_str(), 0600), 0);
  for (const Tier tier : {Tier::primary, Tier::amber}) {
    EXPECT_TRUE(refused_with(vault->open_verified(tier, kAbc), Code::vault_entry_corrupt));
    EXPECT_TRUE(refused_with(vault->store_bytes(tier, "abc"), Code::vault_entry_corrupt));
  }
}

TEST_F(VaultTest, NeverFollowsALinkInAnEntrysPlace) {
  squad.write("victim", "abc");
  squad.link(squad.at("victim"), entry(Tier::primary, kAbc));
  EXPECT_TRUE(refused_with(vault->open_verified(Tier::primary, kAbc), Code::workspace_insecure));
  EXPECT_TRUE(refused_with(vault->open_verified_any(kAbc), Code::workspace_insecure));
  EXPECT_TRUE(refused_with(vault->store_bytes(Tier::primary, "abc"), Code::workspace_insecure));
  EXPECT_TRUE(refused_with(vault->store(Tier::primary, object_of("abc")), Code::workspace_insecure));
  squad.link("nowhere", entry(Tier::amber, kAbc));
  EXPECT_TRUE(refused_with(vault->store_bytes(Tier::amber, "abc"), Code::workspace_insecure));
  EXPECT_EQ(squad.read("victim"), "abc");
  EXPECT_FALSE(squad.exists("nowhere"));
}

TEST_F(VaultTest, NeverFollowsALinkInAFoldersPlace) {
  for (const char* place : {"vault", "vault/primary", "vault/amber"}) {
    TemporaryFolder other;
    other.make_folder("elsewhere");
    if (std::string(place) != "vault") other.make_folder("vault");
    other.link(other.at("elsewhere"), place);
    const auto opened = Vault::open(other.open());
    EXPECT_FALSE(opened.ok());
    if (!opened.ok()) { EXPECT_EQ(opened.refusal().code(), Code::workspace_insecure) << place; }
    EXPECT_TRUE(names_in(other.at("elsewhere")).empty());
  }
}

TEST_F(VaultTest, NeverMakesAPathOfWhatIsNoDigest) {
  squad.write("secret", "x");
  for (const std::string& name : {std::string("../../secret"), std::string(), std::string("."), std::string(kAbc) + "/",
                                  std::string(64, 'A'), std::string("\0", 1)}) {
    EXPECT_TRUE(refused_with(vault->open_verified(Tier::primary, name), Code::vault_entry_missing));
    EXPECT_FALSE(vault->contains(Tier::primary, name));
  }
}

TEST_F(VaultTest, StoresTheSameBytesFromManyThreadsOnce) {
  std::vector<std::thread> threads;
  std::array<bool, 8> stored{};
  const std::string bytes(700'000, 'z');
  for (std::size_t number = 0; number < stored.size(); ++number) {
    threads.emplace_back([&, number] { stored[number] = vault->store_bytes(Tier::amber, bytes).ok(); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const bool one : stored) EXPECT_TRUE(one);
  EXPECT_EQ(names_in(squad.at("vault/amber")).size(), 1U);
  EXPECT_TRUE(granted(vault->open_verified(Tier::amber, sha256_hex(bytes))));
}

// A write past the limit fails like a full disk does, in the middle of the object.
TEST_F(VaultTest, LeavesNothingWhereAWriteFails) {
  const os::Handle object = object_of(std::string(2'000'000, 'x'));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1'000'000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto result = vault->store(Tier::primary, object);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, old);
  ASSERT_TRUE(refused_with(result, Code::state_persist_failed));
  EXPECT_EQ(result.refusal().exit_status(), 5);
  EXPECT_TRUE(names_in(squad.at("vault/primary")).empty());
  EXPECT_TRUE(granted(vault->store(Tier::primary, object)));
}

TEST_F(VaultTest, LeavesNothingOnAFullDisk) {
  squad.make_folder("small");
  if (::mount("tmpfs", squad.at("small").c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,mode=0700") != 0) {
    GTEST_SKIP() << "mounting a small file system needs privilege";
  }
  {
    auto small = Vault::open(squad.open("small")).value();
    EXPECT_TRUE(
        refused_with(small->store(Tier::primary, object_of(std::string(4'000'000, 'x'))), Code::state_persist_failed));
    EXPECT_TRUE(names_in(squad.at("small/vault/primary")).empty());
    EXPECT_TRUE(granted(small->store_bytes(Tier::primary, std::string(500'000, 'y'))));
  }
  EXPECT_EQ(::umount2(squad.at("small").c_str(), MNT_DETACH), 0);
}

TEST_F(VaultTest, CallsTheReadErrorOfTheObjectByItsName) {
  const os::Handle folder = squad.open();  // read(2) of a folder fails
  EXPECT_TRUE(refused_with(vault->store(Tier::primary, folder), Code::file_unreadable));
  EXPECT_TRUE(names_in(squad.at("vault/primary")).empty());
}

// --- unnamed files

TEST(UnnamedFile, HasNoNameUntilItIsGivenOneThatIsFree) {
  TemporaryFolder place;
  const os::Handle folder = place.open();
  const os::Handle object = os::make_unnamed_file(folder).value();
  ASSERT_TRUE(granted(os::write_all(object, "abc")));
  EXPECT_TRUE(names_in(place.path()).empty());
  EXPECT_TRUE(os::name_unnamed_file(object, folder, "one").value());
  EXPECT_EQ(place.read("one"), "abc");
  place.write("taken", "theirs");
  const os::Handle other = os::make_unnamed_file(folder).value();
  EXPECT_FALSE(os::name_unnamed_file(other, folder, "taken").value());
  EXPECT_EQ(place.read("taken"), "theirs");
}

TEST(UnnamedFile, IsRefusedWhereTheFileSystemHasNone) {
  const os::Handle proc(::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_TRUE(proc);
  EXPECT_TRUE(refused_with(os::make_unnamed_file(proc), Code::atomic_publish_unsupported));
}

TEST(OpenFolder, MakesWhatIsMissingOnlyWhenAsked) {
  TemporaryFolder place;
  const os::Handle folder = place.open();
  const auto missing = os::open_folder(folder, "a/b", false);
  ASSERT_TRUE(refused_with(missing, Code::state_unreadable));
  EXPECT_EQ(missing.refusal().details()["os_error"], ENOENT);
  EXPECT_TRUE(granted(os::open_folder(folder, "a/b", true)));
  EXPECT_TRUE(granted(os::open_folder(folder, "a/b", false)));
  EXPECT_TRUE(granted(os::open_folder(folder, "", false)));
}

TEST(OpenFolder, NeverLeavesTheFolder) {
  TemporaryFolder place;
  place.make_folder("in/a");
  const os::Handle folder = place.open("in");
  for (const std::string& path : {std::string(".."), std::string("a/../.."), std::string("/etc"), std::string("a//b"),
                                  std::string("./a"), std::string("a\0b", 3)}) {
    EXPECT_TRUE(refused_with(os::open_folder(folder, path, true), Code::state_unreadable)) << path;
    EXPECT_TRUE(refused_with(os::open_for_reading(folder, path), Code::state_unreadable)) << path;
  }
  place.link("/etc", "in/link");
  EXPECT_TRUE(refused_with(os::open_folder(folder, "link", false), Code::workspace_insecure));
  EXPECT_TRUE(refused_with(os::open_for_reading(folder, "link/passwd"), Code::workspace_insecure));
}

TEST(OpenForReading, OpensRegularFilesOnly) {
  TemporaryFolder place;
  place.make_folder("folder");
  place.write("folder/file", "abc");
  ASSERT_EQ(::mkfifo(place.at("pipe").c_str(), 0600), 0);
  const os::Handle folder = place.open();
  EXPECT_EQ(bytes_of(os::open_for_reading(folder, "folder/file").value()), "abc");
  EXPECT_TRUE(refused_with(os::open_for_reading(folder, "folder"), Code::state_unreadable));
  EXPECT_TRUE(refused_with(os::open_for_reading(folder, "pipe"), Code::state_unreadable));
  EXPECT_TRUE(refused_with(os::open_for_reading(folder, "absent"), Code::state_unreadable));
}

TEST(NameExists, CountsALinkThatLeadsNowhere) {
  TemporaryFolder place;
  const os::Handle folder = place.open();
  EXPECT_FALSE(os::name_exists(folder, "a"));
  place.link("nowhere", "a");
  EXPECT_TRUE(os::name_exists(folder, "a"));
}

}  // namespace
}  // namespace holdfast::vault
