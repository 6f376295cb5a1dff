#include "os/lock_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/child.h"
#include "support/refused_with.h"
#include "support/temporary_folder.h"

namespace holdfast::os {
namespace {

using support::Child;
using support::granted;
using support::refused_with;
using support::TemporaryFolder;

const support::RegisterRole kHolder("hold_lock_file", [](const std::vector<std::string>& arguments) {
  const Handle folder(::open(arguments.at(0).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  auto file = LockFile::open(folder, "a.lock");
  if (!file || !file->try_lock(LockMode::exclusive).value()) return 1;
  support::say("held");
  support::hear();
  return 0;
});

TEST(LockFile, ExcludesAnotherOpenOfTheSameFileEvenInOneProcess) {
  const TemporaryFolder place;
  auto one = LockFile::open(place.open(), "a.lock").value();
  auto two = LockFile::open(place.open(), "a.lock").value();
  EXPECT_TRUE(one.try_lock(LockMode::exclusive).value());
  EXPECT_FALSE(two.try_lock(LockMode::exclusive).value());
  EXPECT_FALSE(two.try_lock(LockMode::shared).value());
  ASSERT_TRUE(granted(one.unlock()));
  EXPECT_TRUE(two.try_lock(LockMode::shared).value());
  EXPECT_TRUE(one.try_lock(LockMode::shared).value());
  EXPECT_FALSE(one.try_lock(LockMode::exclusive).value());
}

TEST(LockFile, ALookTellsTheLockAndTakesNothing) {
  const TemporaryFolder place;
  EXPECT_FALSE(LockFile::open_existing(place.open(), "a.lock").value().has_value());
  EXPECT_FALSE(place.exists("a.lock"));
  auto holder = LockFile::open(place.open(), "a.lock").value();
  const auto look = LockFile::open_existing(place.open(), "a.lock").value();
  ASSERT_TRUE(look.has_value());
  EXPECT_FALSE(look->is_held_by_another(LockMode::exclusive).value());
  EXPECT_TRUE(holder.try_lock(LockMode::shared).value());
  EXPECT_TRUE(look->is_held_by_another(LockMode::exclusive).value());
  EXPECT_FALSE(look->is_held_by_another(LockMode::shared).value());
  EXPECT_FALSE(holder.is_held_by_another(LockMode::exclusive).value());
  EXPECT_TRUE(holder.try_lock(LockMode::exclusive).value());
  EXPECT_TRUE(look->is_held_by_another(LockMode::shared).value());
}

TEST(LockFile, ClosingAnotherDescriptorOfTheFileDropsNothing) {
  const TemporaryFolder place;
  auto holder = LockFile::open(place.open(), "a.lock").value();
  ASSERT_TRUE(holder.try_lock(LockMode::exclusive).value());
  ::close(::open(place.at("a.lock").c_str(), O_RDWR | O_CLOEXEC));
  auto other = LockFile::open(place.open(), "a.lock").value();
  EXPECT_FALSE(other.try_lock(LockMode::exclusive).value());
}

TEST(LockFile, AChildThatRanAnotherProgramKeepsNothing) {
  const TemporaryFolder place;
  auto other = LockFile::open(place.open(), "a.lock").value();
  Child child = [&] {
    auto holder = LockFile::open(place.open(), "a.lock").value();
    EXPECT_TRUE(holder.try_lock(LockMode::exclusive).value());
    Child cat = support::spawn({"cat"});
    cat.write("x\n");
    EXPECT_EQ(cat.read_line(), "x");
    EXPECT_FALSE(other.try_lock(LockMode::exclusive).value());
    return cat;
  }();
  EXPECT_TRUE(other.try_lock(LockMode::exclusive).value());
}

TEST(LockFile, DeathOfTheHolderFreesItAndTheFileStays) {
  const TemporaryFolder place;
  Child holder = support::spawn_as("hold_lock_file", {place.path()});
  ASSERT_EQ(holder.read_line(), "held");
  auto other = LockFile::open(place.open(), "a.lock").value();
  struct stat before {};
  ASSERT_EQ(::stat(place.at("a.lock").c_str(), &before), 0);
  EXPECT_FALSE(other.try_lock(LockMode::exclusive).value());
  holder.stop();
  EXPECT_FALSE(other.try_lock(LockMode::exclusive).value());
  holder.kill();
  EXPECT_TRUE(support::eventually([&] { return other.try_lock(LockMode::exclusive).value(); }));
  struct stat after {};
  ASSERT_EQ(::stat(place.at("a.lock").c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
  EXPECT_EQ(after.st_mode & 07777U, 0600U);
}

TEST(LockFile, IsNeverReachedThroughALink) {
  const TemporaryFolder place;
  place.write("elsewhere", "untouched");
  place.link(place.at("elsewhere"), "a.lock");
  place.make_folder("real");
  place.link("real", "folder");
  EXPECT_TRUE(refused_with(LockFile::open(place.open(), "a.lock"), Code::workspace_insecure));
  EXPECT_TRUE(refused_with(LockFile::open_existing(place.open(), "a.lock"), Code::workspace_insecure));
  EXPECT_TRUE(refused_with(LockFile::open(place.open(), "folder/a.lock"), Code::workspace_insecure));
  EXPECT_TRUE(refused_with(LockFile::open(place.open("real"), "../a.lock"), Code::workspace_insecure));
  ASSERT_EQ(::mkfifo(place.at("pipe").c_str(), 0600), 0);
  EXPECT_TRUE(refused_with(LockFile::open(place.open(), "pipe"), Code::workspace_insecure));
  EXPECT_FALSE(place.exists("real/a.lock"));
}

TEST(LockFile, ANoteReplacesTheOneBefore) {
  const TemporaryFolder place;
  auto file = LockFile::open(place.open(), "a.lock").value();
  EXPECT_EQ(file.read_note().value(), "");
  ASSERT_TRUE(granted(file.note("a long note")));
  ASSERT_TRUE(granted(file.note("short")));
  EXPECT_EQ(LockFile::open_existing(place.open(), "a.lock").value()->read_note().value(), "short");
}

}  // namespace
}  // namespace holdfast::os
