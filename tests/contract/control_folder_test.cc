// One body of tests for every ControlFolder; then what only one of them can show: links and modes on a real file
// system, crashes and power cuts in memory.
#include "os/control_folder.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <csignal>
#include <thread>

#include "os/fake/control_folder.h"
#include "support/refused_with.h"
#include "support/temporary_folder.h"

namespace holdfast::os {
namespace {

using support::granted;
using support::refused_with;
using support::TemporaryFolder;
using Names = std::vector<std::string>;

struct InMemory {
  FakeControlFolder files;
  ControlFolder& folder() { return files; }
  void plant(const std::string& path, const std::string& bytes) { files.plant(path, bytes); }
  void plant_link(const std::string& path) { files.plant_link(path); }
};

struct OnDisk {
  TemporaryFolder place;
  std::unique_ptr<ControlFolder> files = open_control_folder(place.open()).value();
  ControlFolder& folder() { return *files; }
  void plant(const std::string& path, const std::string& bytes) {
    if (const auto slash = path.rfind('/'); slash != std::string::npos) place.make_folder(path.substr(0, slash));
    place.write(path, bytes);
  }
  void plant_link(const std::string& path) {
    if (const auto slash = path.rfind('/'); slash != std::string::npos) place.make_folder(path.substr(0, slash));
    place.write("elsewhere", "untouched");
    place.link(place.at("elsewhere"), path);
  }
};

template <class Kind>
class ControlFolderContract : public testing::Test {
 protected:
  Kind kind;
  ControlFolder& files = kind.folder();
  std::string content(const std::string& path) { return files.read(path).value().value_or("(none)"); }
};
using Kinds = testing::Types<InMemory, OnDisk>;
TYPED_TEST_SUITE(ControlFolderContract, Kinds);

TYPED_TEST(ControlFolderContract, ReadsWhatWasPublishedLast) {
  EXPECT_EQ(this->content("a/b.json"), "(none)");
  ASSERT_TRUE(granted(this->files.publish("a/b.json", "one")));
  ASSERT_TRUE(granted(this->files.publish("a/b.json", std::string("tw\0o\n", 5))));
  EXPECT_EQ(this->content("a/b.json"), std::string("tw\0o\n", 5));
  EXPECT_EQ(this->files.size("a/b.json").value().value_or(99), 5U);
  EXPECT_FALSE(this->files.size("a/c.json").value().has_value());
  EXPECT_EQ(this->files.read_from("a/b.json", 2).value(), std::string("\0o\n", 3));
  EXPECT_EQ(this->files.read_from("a/b.json", 77).value(), "");
}

TYPED_TEST(ControlFolderContract, ListsFilesAndFoldersSortedWithoutStagedOnes) {
  EXPECT_EQ(this->files.list("a").value(), Names());
  ASSERT_TRUE(granted(this->files.publish("a/z", "")));
  ASSERT_TRUE(granted(this->files.publish("a/b/c", "")));
  ASSERT_TRUE(granted(this->files.stage("a/x.staged", "left by a crash")));
  EXPECT_EQ(this->files.list("a").value(), (Names{"b", "z"}));
  EXPECT_EQ(this->files.list("").value(), (Names{"a"}));
}

TYPED_TEST(ControlFolderContract, StagesExactlyThePathThatIsNamed) {
  ASSERT_TRUE(granted(this->files.stage("generations.json.next", "one")));
  ASSERT_TRUE(granted(this->files.stage("generations.json.next", "two")));
  EXPECT_EQ(this->content("generations.json.next"), "two");
  ASSERT_TRUE(granted(this->files.rename("generations.json.next", "generations.json")));
  EXPECT_EQ(this->content("generations.json"), "two");
  EXPECT_EQ(this->content("generations.json.next"), "(none)");
}

TYPED_TEST(ControlFolderContract, StagesSeveralFilesBesideAnAppend) {
  ASSERT_TRUE(granted(this->files.append("log", "one\n")));
  ASSERT_TRUE(granted(this->files.append_and_stage("log", "two\n", {{"a/x.staged", "x"}, {"b/y.staged", "y"}})));
  EXPECT_EQ(this->content("log"), "one\ntwo\n");
  EXPECT_EQ(this->content("a/x.staged"), "x");
  ASSERT_TRUE(granted(this->files.rename(staging_path("b/y"), "b/y")));
  EXPECT_EQ(this->content("b/y"), "y");
  ASSERT_TRUE(granted(this->files.stage_together({{"a/x.staged", "x2"}, {"z", "z"}})));
  EXPECT_EQ(this->content("a/x.staged"), "x2");
  EXPECT_EQ(this->content("z"), "z");
}

TYPED_TEST(ControlFolderContract, OfSeveralFilesNoneIsLeftWhereOneIsRefused) {
  ASSERT_TRUE(granted(this->files.append("log", "one\n")));
  const std::vector<Staged> several = {{"x.staged", "x"}, {"../y", "y"}};
  EXPECT_TRUE(refused_with(this->files.stage_together(several), Code::state_persist_failed));
  EXPECT_TRUE(refused_with(this->files.append_and_stage("log", "two\n", several), Code::state_persist_failed));
  EXPECT_EQ(this->content("log"), "one\n");
  EXPECT_EQ(this->content("x.staged"), "(none)");
}

TYPED_TEST(ControlFolderContract, PublishesOneFileUnderTwoNames) {
  ASSERT_TRUE(granted(this->files.publish_under_two_names("a/x", "a/x.open", "one")));
  EXPECT_EQ(this->content("a/x"), "one");
  EXPECT_EQ(this->content("a/x.open"), "one");
  ASSERT_TRUE(granted(this->files.publish("a/x", "two")));
  EXPECT_EQ(this->content("a/x.open"), "one") << "the second name keeps what it was given";
  this->kind.plant("a/x.open.staged", "left by a crash");
  ASSERT_TRUE(granted(this->files.publish_under_two_names("a/y", "a/x.open", "three")));
  EXPECT_EQ(this->content("a/x"), "two");
  EXPECT_EQ(this->content("a/y"), "three");
  EXPECT_EQ(this->content("a/x.open"), "three");
  EXPECT_EQ(this->files.list("a").value(), (Names{"x", "x.open", "y"}));
}

TYPED_TEST(ControlFolderContract, PlantedLinksAreNoSecondName) {
  this->kind.plant_link("a/x.open");
  EXPECT_TRUE(refused_with(this->files.publish_under_two_names("a/x", "a/x.open", "one"), Code::workspace_insecure));
  EXPECT_EQ(this->content("a/x"), "(none)");
}

TYPED_TEST(ControlFolderContract, RenamesBetweenFolders) {
  ASSERT_TRUE(granted(this->files.publish("a/x", "x")));
  ASSERT_TRUE(granted(this->files.make_folder("b")));
  ASSERT_TRUE(granted(this->files.rename("a/x", "b/y")));
  EXPECT_EQ(this->content("b/y"), "x");
  EXPECT_EQ(this->files.list("a").value(), Names());
  EXPECT_TRUE(refused_with(this->files.rename("a/x", "b/y"), Code::state_persist_failed));
  EXPECT_EQ(this->content("b/y"), "x");
}

TYPED_TEST(ControlFolderContract, RemovesAndIsContentWithWhatIsAbsent) {
  ASSERT_TRUE(granted(this->files.publish("a/x", "x")));
  ASSERT_TRUE(granted(this->files.remove("a/x")));
  EXPECT_EQ(this->content("a/x"), "(none)");
  EXPECT_TRUE(granted(this->files.remove("a/x")));
  EXPECT_TRUE(granted(this->files.remove("never/was")));
  EXPECT_TRUE(refused_with(this->files.remove("a"), Code::state_persist_failed));
}

TYPED_TEST(ControlFolderContract, AppendsAndTruncates) {
  ASSERT_TRUE(granted(this->files.append("log/1", "one\n")));
  ASSERT_TRUE(granted(this->files.append("log/1", "two\n")));
  EXPECT_EQ(this->content("log/1"), "one\ntwo\n");
  ASSERT_TRUE(granted(this->files.truncate("log/1", 3)));
  EXPECT_EQ(this->content("log/1"), "one");
  ASSERT_TRUE(granted(this->files.append("log/1", "!")));
  EXPECT_EQ(this->content("log/1"), "one!");
  EXPECT_TRUE(refused_with(this->files.truncate("log/2", 0), Code::state_persist_failed));
}

TYPED_TEST(ControlFolderContract, ReplacesAStagingFileThatACrashLeft) {
  this->kind.plant("a/x.staged", "half of what was pl");
  ASSERT_TRUE(granted(this->files.publish("a/x", "whole")));
  EXPECT_EQ(this->content("a/x"), "whole");
  EXPECT_EQ(this->content("a/x.staged"), "(none)");
}

TYPED_TEST(ControlFolderContract, RefusesALinkWhereverItStands) {
  this->kind.plant_link("locks/link");
  this->kind.plant_link("a/x.staged");
  this->kind.plant_link("folder");
  this->kind.plant("locks/file", "kept");
  const Code insecure = Code::workspace_insecure;
  EXPECT_TRUE(refused_with(this->files.read("locks/link"), insecure));
  EXPECT_TRUE(refused_with(this->files.read_from("locks/link", 0), insecure));
  EXPECT_TRUE(refused_with(this->files.size("locks/link"), insecure));
  EXPECT_TRUE(refused_with(this->files.list("locks"), insecure));
  EXPECT_TRUE(refused_with(this->files.list("folder"), insecure));
  EXPECT_TRUE(refused_with(this->files.publish("locks/link", "x"), insecure));
  EXPECT_TRUE(refused_with(this->files.publish("a/x", "x"), insecure));
  EXPECT_TRUE(refused_with(this->files.publish("folder/x", "x"), insecure));
  EXPECT_TRUE(refused_with(this->files.stage("locks/link", "x"), insecure));
  EXPECT_TRUE(refused_with(this->files.append("locks/link", "x"), insecure));
  EXPECT_TRUE(refused_with(this->files.truncate("locks/link", 0), insecure));
  EXPECT_TRUE(refused_with(this->files.remove("locks/link"), insecure));
  EXPECT_TRUE(refused_with(this->files.rename("locks/link", "locks/file"), insecure));
  EXPECT_TRUE(refused_with(this->files.rename("locks/file", "locks/link"), insecure));
  EXPECT_TRUE(refused_with(this->files.make_folder("folder"), insecure));
  EXPECT_TRUE(refused_with(this->files.make_folder("folder/below"), insecure));
  EXPECT_EQ(this->content("locks/file"), "kept");
}

TYPED_TEST(ControlFolderContract, RefusesPathsThatAreNone) {
  for (const char* path : {"", "/etc/passwd", "../x", "a/../b", "a//b", "a/", "./a", "a\\b"}) {
    EXPECT_TRUE(refused_with(this->files.read(path), Code::state_unreadable)) << path;
    EXPECT_TRUE(refused_with(this->files.publish(path, "x"), Code::state_persist_failed)) << path;
    EXPECT_TRUE(refused_with(this->files.remove(path), Code::state_persist_failed)) << path;
  }
  EXPECT_TRUE(refused_with(this->files.read(std::string("a\0b", 3)), Code::state_unreadable));
}

TYPED_TEST(ControlFolderContract, RefusesAFolderWhereAFileIsMeant) {
  ASSERT_TRUE(granted(this->files.make_folder("a/b/c")));
  ASSERT_TRUE(granted(this->files.make_folder("a/b/c")));
  EXPECT_TRUE(refused_with(this->files.read("a/b"), Code::state_unreadable));
  EXPECT_TRUE(refused_with(this->files.publish("a/b", "x"), Code::state_persist_failed));
  EXPECT_TRUE(refused_with(this->files.append("a/b", "x"), Code::state_persist_failed));
  EXPECT_EQ(this->files.list("a").value(), (Names{"b"}));
}

// --- on disk

TEST(ControlFolderOnDisk, NothingIsWrittenThroughAPlantedStagingLink) {
  OnDisk disk;
  disk.plant_link("a/x.staged");
  EXPECT_TRUE(refused_with(disk.files->publish("a/x", "secret"), Code::workspace_insecure));
  EXPECT_EQ(disk.place.read("elsewhere"), "untouched");
  EXPECT_FALSE(disk.place.exists("a/x"));
}

TEST(ControlFolderOnDisk, FilesArePrivateAndFoldersToo) {
  OnDisk disk;
  ASSERT_TRUE(granted(disk.files->publish("a/b/x", "x")));
  ASSERT_TRUE(granted(disk.files->append("a/b/y", "y")));
  struct stat found {};
  for (const char* file : {"a/b/x", "a/b/y"}) {
    ASSERT_EQ(::stat(disk.place.at(file).c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 07777U, 0600U);
  }
  for (const char* folder : {"a", "a/b"}) {
    ASSERT_EQ(::stat(disk.place.at(folder).c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 07777U, 0700U);
  }
}

TEST(ControlFolderOnDisk, APipeInPlaceOfAFileDoesNotHangTheReader) {
  OnDisk disk;
  ASSERT_EQ(::mkfifo(disk.place.at("pipe").c_str(), 0600), 0);
  EXPECT_TRUE(refused_with(disk.files->read("pipe"), Code::state_unreadable));
  EXPECT_TRUE(refused_with(disk.files->append("pipe", "x"), Code::state_persist_failed));
  EXPECT_EQ(disk.files->list("").value(), Names());
}

// A file size limit stands for the full disk: write(2) comes back short, then with EFBIG.
TEST(ControlFolderOnDisk, AFailedWriteLeavesTheOldBytesAndNoStagingFile) {
  OnDisk disk;
  ASSERT_TRUE(granted(disk.files->publish("x", "old")));
  ASSERT_TRUE(granted(disk.files->append("log", "line\n")));
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit narrow{4096, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &narrow), 0);
  const Result<void> published = disk.files->publish("x", std::string(10'000, 'n'));
  const Result<void> appended = disk.files->append("log", std::string(10'000, 'n'));
  const Result<void> created = disk.files->append("new", std::string(10'000, 'n'));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_TRUE(refused_with(published, Code::state_persist_failed));
  EXPECT_EQ(published.refusal().exit_status(), 5);
  EXPECT_EQ(published.refusal().effect(), Effect::none);
  EXPECT_EQ(published.refusal().details().value("os_error", 0), EFBIG);
  EXPECT_TRUE(refused_with(appended, Code::state_persist_failed));
  EXPECT_EQ(disk.place.read("x"), "old");
  EXPECT_EQ(disk.place.read("log"), "line\n");
  EXPECT_TRUE(refused_with(created, Code::state_persist_failed));
  EXPECT_FALSE(disk.place.exists("new"));
  EXPECT_FALSE(disk.place.exists("x.staged"));
}

TEST(ControlFolderOnDisk, AReaderSeesOldOrNewBytesWholeWhileTheyArePublished) {
  OnDisk disk;
  const std::string one(100'000, '1');
  const std::string two(50'000, '2');
  ASSERT_TRUE(granted(disk.files->publish("x", one)));
  std::thread writer([&] {
    for (int round = 0; round < 100; ++round) EXPECT_TRUE(granted(disk.files->publish("x", round % 2 ? one : two)));
  });
  for (int round = 0; round < 2000; ++round) {
    const std::string seen = disk.files->read("x").value().value_or("");
    EXPECT_TRUE(seen == one || seen == two);
  }
  writer.join();
}

TEST(ControlFolderOnDisk, TheFolderIsTheOpenOneNotItsName) {
  TemporaryFolder place;
  place.make_folder("squad");
  const auto files = open_control_folder(place.open("squad")).value();
  ASSERT_EQ(::rename(place.at("squad").c_str(), place.at("moved").c_str()), 0);
  place.make_folder("squad");
  ASSERT_TRUE(granted(files->publish("x", "x")));
  EXPECT_TRUE(place.exists("moved/x"));
  EXPECT_FALSE(place.exists("squad/x"));
}

// --- in memory: crashes are counted, not random

// Runs `act` once for each of its steps, crashing there, and hands every image that could be left to `check`.
void crash_everywhere(const std::function<void(FakeControlFolder&)>& prepare,
                      const std::function<Result<void>(ControlFolder&)>& act,
                      const std::function<void(ControlFolder&, bool refused)>& check) {
  FakeControlFolder whole;
  prepare(whole);
  const int before = whole.steps();
  ASSERT_TRUE(granted(act(whole)));
  const int count = whole.steps() - before;
  ASSERT_GT(count, 1);
  for (int step = 1; step <= count + 1; ++step) {
    for (const auto loss : FakeControlFolder::kEveryLoss) {
      SCOPED_TRACE("step " + std::to_string(step) + ", loss " + std::to_string(static_cast<int>(loss)));
      FakeControlFolder files;
      prepare(files);
      files.crash_at(step);
      const bool refused = !act(files).ok();
      EXPECT_EQ(refused, step <= count);
      const auto left = files.power_cut(loss);
      check(*left, refused);
    }
  }
}

TEST(ControlFolderInMemory, APublishIsOldOrNewAfterAnyCrashAndNewOnceItReturned) {
  crash_everywhere([](FakeControlFolder& files) { ASSERT_TRUE(granted(files.publish("a/x", "old old"))); },
                   [](ControlFolder& files) { return files.publish("a/x", "new bytes"); },
                   [](ControlFolder& left, bool refused) {
                     const std::string seen = left.read("a/x").value().value_or("(none)");
                     EXPECT_TRUE(seen == "new bytes" || (refused && seen == "old old")) << seen;
                     EXPECT_EQ(left.list("a").value(), (Names{"x"}));
                     EXPECT_TRUE(granted(left.publish("a/x", "again")));
                   });
}

TEST(ControlFolderInMemory, AnAppendWithFilesBesideItLeavesAllOrNothingWhereAStepFails) {
  const auto act = [](ControlFolder& files) {
    return files.append_and_stage("log", "two\n", {{"x.staged", "x"}, {"y.staged", "y"}});
  };
  FakeControlFolder counted;
  ASSERT_TRUE(granted(counted.append("log", "one\n")));
  const int before = counted.steps();
  ASSERT_TRUE(granted(act(counted)));
  for (int step = 1; step <= counted.steps() - before; ++step) {
    FakeControlFolder files;
    ASSERT_TRUE(granted(files.append("log", "one\n")));
    files.fail_at(step, ENOSPC);
    ASSERT_TRUE(refused_with(act(files), Code::state_persist_failed)) << step;
    EXPECT_EQ(files.read("log").value().value_or("(none)"), "one\n") << step;
    EXPECT_FALSE(files.read("x.staged").value().has_value()) << step;
    EXPECT_FALSE(files.read("y.staged").value().has_value()) << step;
  }
}

TEST(ControlFolderInMemory, WhatWasAppendedAndStagedTogetherIsDurableOnceItReturned) {
  crash_everywhere([](FakeControlFolder& files) { ASSERT_TRUE(granted(files.append("log", "one\n"))); },
                   [](ControlFolder& files) -> Result<void> {
                     HF_CHECK(files.append_and_stage("log", "two\n", {{staging_path("x"), "whole"}}));
                     return files.rename(staging_path("x"), "x");
                   },
                   [](ControlFolder& left, bool refused) {
                     const std::string log = left.read("log").value().value_or("(none)");
                     const auto file = left.read("x").value();
                     EXPECT_TRUE(log.starts_with("one\n"));
                     EXPECT_TRUE(!file || (*file == "whole" && log == "one\ntwo\n")) << log;
                     if (!refused) { EXPECT_TRUE(file.has_value()); }
                   });
}

TEST(ControlFolderInMemory, OfTwoNamesTheFirstIsOldOrNewAndTheSecondIsNotBehindIt) {
  crash_everywhere(
      [](FakeControlFolder& files) { ASSERT_TRUE(granted(files.publish_under_two_names("a/x", "a/s", "old old"))); },
      [](ControlFolder& files) { return files.publish_under_two_names("a/x", "a/s", "new bytes"); },
      [](ControlFolder& left, bool refused) {
        const std::string first = left.read("a/x").value().value_or("(none)");
        const std::string second = left.read("a/s").value().value_or("(none)");
        EXPECT_TRUE(first == "new bytes" || (refused && first == "old old")) << first;
        EXPECT_TRUE(second == "new bytes" || second == first) << second;
        EXPECT_EQ(left.list("a").value(), (Names{"s", "x"}));
        EXPECT_TRUE(granted(left.publish_under_two_names("a/x", "a/s", "again")));
      });
}

TEST(ControlFolderInMemory, AFirstPublishIsAbsentOrWholeAfterAnyCrash) {
  crash_everywhere([](FakeControlFolder&) {}, [](ControlFolder& files) { return files.publish("a/b/x", "new bytes"); },
                   [](ControlFolder& left, bool refused) {
                     const std::string seen = left.read("a/b/x").value().value_or("(none)");
                     EXPECT_TRUE(seen == "new bytes" || (refused && seen == "(none)")) << seen;
                   });
}

TEST(ControlFolderInMemory, AnAppendKeepsWhatWasThereAndAllOfItOnceItReturned) {
  crash_everywhere([](FakeControlFolder& files) { ASSERT_TRUE(granted(files.append("log", "one\n"))); },
                   [](ControlFolder& files) { return files.append("log", "two\n"); },
                   [](ControlFolder& left, bool refused) {
                     const std::string seen = left.read("log").value().value_or("(none)");
                     EXPECT_TRUE(seen.starts_with("one\n"));
                     EXPECT_TRUE(std::string("one\ntwo\n").starts_with(seen));
                     if (!refused) { EXPECT_EQ(seen, "one\ntwo\n"); }
                   });
}

TEST(ControlFolderInMemory, ARenameAcrossFoldersNeverLosesBothNames) {
  crash_everywhere(
      [](FakeControlFolder& files) {
        ASSERT_TRUE(granted(files.publish("a/x", "x")));
        ASSERT_TRUE(granted(files.make_folder("b")));
      },
      [](ControlFolder& files) { return files.rename("a/x", "b/x"); },
      [](ControlFolder& left, bool refused) {
        const bool old_name = left.read("a/x").value() == "x";
        const bool new_name = left.read("b/x").value() == "x";
        EXPECT_TRUE(old_name || new_name);
        if (!refused) { EXPECT_TRUE(new_name && !old_name); }
      });
}

TEST(ControlFolderInMemory, OneFailedStepLeavesTheOldBytesOrSaysThatTheEffectIsUnknown) {
  for (int step = 1; step <= 5; ++step) {
    FakeControlFolder files;
    ASSERT_TRUE(granted(files.publish("x", "old")));
    ASSERT_TRUE(granted(files.append("log", "old")));
    files.fail_at(step, ENOSPC);
    const Result<void> published = files.publish("x", "new bytes");
    ASSERT_TRUE(refused_with(published, Code::state_persist_failed)) << step;
    const std::string seen = files.read("x").value().value_or("(none)");
    EXPECT_EQ(seen, published.refusal().effect() == Effect::none ? "old" : "new bytes") << step;
    EXPECT_FALSE(files.read("x.staged").value().has_value()) << step;
    EXPECT_EQ(files.list("").value(), (Names{"log", "x"})) << step;
  }
  for (int step = 1; step <= 2; ++step) {
    FakeControlFolder files;
    ASSERT_TRUE(granted(files.append("log", "old")));
    files.fail_at(step, ENOSPC);
    ASSERT_TRUE(refused_with(files.append("log", "new bytes"), Code::state_persist_failed)) << step;
    EXPECT_EQ(files.read("log").value().value_or("(none)"), "old") << step;
  }
}

TEST(ControlFolderInMemory, TheFakeCanLoseWhatWasNotFlushed) {
  FakeControlFolder files;
  ASSERT_TRUE(granted(files.publish("x", "old")));
  files.crash_at(5);  // create, write, flush, rename are done; the folder flush is not
  EXPECT_FALSE(files.publish("x", "new").ok());
  EXPECT_TRUE(files.crashed());
  EXPECT_TRUE(refused_with(files.read("x"), Code::state_unreadable));
  EXPECT_EQ(files.power_cut(FakeControlFolder::Loss::unflushed_lost)->read("x").value(), "old");
  EXPECT_EQ(files.power_cut(FakeControlFolder::Loss::unflushed_kept)->read("x").value(), "new");
}

}  // namespace
}  // namespace holdfast::os
