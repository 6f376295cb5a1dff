#include "os/transition_mutex.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/json.h"
#include "os/lock_file.h"
#include "os/process.h"
#include "support/child.h"
#include "support/refused_with.h"
#include "support/temporary_folder.h"

namespace holdfast::os {
namespace {

using support::Child;
using support::granted;
using support::refused_with;
using support::TemporaryFolder;

constexpr char kFile[] = ".lease-transition.mutex";
constexpr int kShortMs = 60;

// Holds the transition until it hears a line.
const support::RegisterRole kHolder("hold_transition", [](const std::vector<std::string>& arguments) {
  const Handle folder(::open(arguments.at(0).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto mutex = TransitionMutex::open(folder).value();
  const auto held = mutex->acquire();
  if (!held) return 1;
  support::say("held");
  support::hear();
  return 0;
});

// Adds one to a number in a file, many times, each under the transition: lost updates would show.
const support::RegisterRole kCounter("count_under_transition", [](const std::vector<std::string>& arguments) {
  const Handle folder(::open(arguments.at(0).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::string path = arguments.at(0) + "/count";
  const auto mutex = TransitionMutex::open(folder).value();
  for (int round = 0; round < 30; ++round) {
    const auto held = mutex->acquire();
    if (!held) return 1;
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    int value = 0;
    if (::pread(file, &value, sizeof value, 0) < 0) return 2;
    std::this_thread::yield();
    ++value;
    if (::pwrite(file, &value, sizeof value, 0) != sizeof value) return 3;
    ::close(file);
  }
  return 0;
});

Json busy_details(TransitionMutex& mutex) {
  auto result = mutex.acquire();
  EXPECT_TRUE(refused_with(result, Code::lease_transition_busy));
  if (result.ok()) return Json::object();
  EXPECT_EQ(result.refusal().exit_status(), 3);
  return result.refusal().details();
}

TEST(TransitionMutex, IsReentrantInAThreadEvenThroughTwoObjects) {
  const TemporaryFolder place;
  const auto one = TransitionMutex::open(place.open(), kShortMs).value();
  const auto two = TransitionMutex::open(place.open(), kShortMs).value();
  const auto outside = LockFile::open(place.open(), kFile).value();
  {
    const auto first = one->acquire();
    const auto second = one->acquire();
    ASSERT_TRUE(granted(first));
    ASSERT_TRUE(granted(second));
    {
      const auto third = two->acquire();
      ASSERT_TRUE(granted(third));
    }
    EXPECT_TRUE(outside.is_held_by_another(LockMode::exclusive).value());
  }
  EXPECT_FALSE(outside.is_held_by_another(LockMode::exclusive).value());
}

TEST(TransitionMutex, ThreadsExcludeEachOtherThroughOneObjectAndThroughTwo) {
  const TemporaryFolder place;
  const auto shared = TransitionMutex::open(place.open()).value();
  std::atomic<int> inside{0};
  std::atomic<bool> overlapped{false};
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number) {
    threads.emplace_back([&, number] {
      const auto own = TransitionMutex::open(place.open()).value();
      for (int round = 0; round < 50; ++round) {
        const auto held = (number % 2 == 0 ? *shared : *own).acquire();
        EXPECT_TRUE(granted(held));
        if (inside.fetch_add(1) != 0) overlapped = true;
        std::this_thread::yield();
        inside.fetch_sub(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(overlapped);
}

TEST(TransitionMutex, ProcessesExcludeEachOther) {
  const TemporaryFolder place;
  std::vector<Child> children;
  for (int number = 0; number < 4; ++number) {
    children.push_back(support::spawn_as("count_under_transition", {place.path()}));
  }
  for (Child& child : children) EXPECT_EQ(child.wait(), 0);
  int value = 0;
  const std::string bytes = place.read("count");
  ASSERT_EQ(bytes.size(), sizeof value);
  std::memcpy(&value, bytes.data(), sizeof value);
  EXPECT_EQ(value, 120);
}

TEST(TransitionMutex, AStoppedHolderIsNamedAndNeverRobbedHoweverOldTheFileIs) {
  const TemporaryFolder place;
  Child holder = support::spawn_as("hold_transition", {place.path()});
  ASSERT_EQ(holder.read_line(), "held");
  holder.stop();
  const timespec ancient[2] = {{1, 0}, {1, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, place.at(kFile).c_str(), ancient, 0), 0);
  const auto mutex = TransitionMutex::open(place.open(), kShortMs).value();
  const auto began = std::chrono::steady_clock::now();
  const Json details = busy_details(*mutex);
  EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(kShortMs));
  EXPECT_EQ(details.value("holder_pid", Json()), holder.pid());
  EXPECT_FALSE(details.value("holder_command", "").empty());
  const auto refused = mutex->acquire();
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.refusal().message().find(std::to_string(holder.pid())), std::string::npos);
  EXPECT_NE(refused.refusal().message().find("kill -CONT"), std::string::npos);
}

TEST(TransitionMutex, AKilledHolderFreesIt) {
  const TemporaryFolder place;
  const auto mutex = TransitionMutex::open(place.open()).value();
  struct stat before {};
  ASSERT_EQ(::stat(place.at(kFile).c_str(), &before), 0);
  Child holder = support::spawn_as("hold_transition", {place.path()});
  ASSERT_EQ(holder.read_line(), "held");
  holder.kill();
  EXPECT_TRUE(granted(mutex->acquire()));
  struct stat after {};
  ASSERT_EQ(::stat(place.at(kFile).c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
}

TEST(TransitionMutex, AWaiterGetsItOnceTheHolderIsDone) {
  const TemporaryFolder place;
  const auto mutex = TransitionMutex::open(place.open()).value();
  Child holder = support::spawn_as("hold_transition", {place.path()});
  ASSERT_EQ(holder.read_line(), "held");
  std::thread release([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    holder.write("go\n");
  });
  EXPECT_TRUE(granted(mutex->acquire()));
  release.join();
  EXPECT_EQ(holder.wait(), 0);
}

TEST(TransitionMutex, AnotherThreadOfThisProcessIsNamedAsThisProcess) {
  const TemporaryFolder place;
  const auto mutex = TransitionMutex::open(place.open(), kShortMs).value();
  const auto held = mutex->acquire();
  ASSERT_TRUE(granted(held));
  std::thread([&] { EXPECT_EQ(busy_details(*mutex).value("holder_pid", Json()), ::getpid()); }).join();
}

TEST(TransitionMutex, AStaleOrGarbledNoteNamesNobody) {
  const TemporaryFolder place;
  const auto mutex = TransitionMutex::open(place.open(), 0).value();
  auto foreign = LockFile::open(place.open(), kFile).value();  // holds, and writes no note of its own
  ASSERT_TRUE(foreign.try_lock(LockMode::exclusive).value());
  ProcessIdentity gone = this_process();
  gone.started_at = "1";
  const std::string whole = dump_ascii(this_process().to_json());
  for (const std::string& note : {std::string(), std::string("garbage"), std::string("{}"), std::string("[1]"),
                                  whole + "x", whole.substr(0, whole.size() / 2), dump_ascii(gone.to_json()),
                                  std::string(300, '\0'), std::string("{\"pid\":1}"), std::string(100'000, ' ')}) {
    ASSERT_TRUE(granted(foreign.note(note)));
    EXPECT_TRUE(busy_details(*mutex).at("holder_pid").is_null()) << note.substr(0, 100);
  }
}

TEST(TransitionMutex, LeavesNoNoteBehind) {
  const TemporaryFolder place;
  const auto mutex = TransitionMutex::open(place.open()).value();
  {
    const auto held = mutex->acquire();
    ASSERT_TRUE(granted(held));
    EXPECT_NE(place.read(kFile).find(std::to_string(::getpid())), std::string::npos);
  }
  EXPECT_EQ(place.read(kFile).find_first_not_of(' '), std::string::npos);
}

TEST(TransitionMutex, AForkedChildOrAnotherDescriptorThatClosesDropsNothing) {
  const TemporaryFolder place;
  const auto mutex = TransitionMutex::open(place.open()).value();
  const auto held = mutex->acquire();
  ASSERT_TRUE(granted(held));
  ::close(::open(place.at(kFile).c_str(), O_RDWR | O_CLOEXEC));
  Child child = support::spawn({"true"});
  EXPECT_EQ(child.wait(), 0);
  const auto outside = LockFile::open(place.open(), kFile).value();
  EXPECT_TRUE(outside.is_held_by_another(LockMode::exclusive).value());
}

TEST(TransitionMutex, AMutexFileThatWasReplacedIsNoticed) {
  const TemporaryFolder place;
  const auto mutex = TransitionMutex::open(place.open()).value();
  ASSERT_TRUE(granted(mutex->acquire()));
  ASSERT_EQ(::unlink(place.at(kFile).c_str()), 0);
  EXPECT_TRUE(refused_with(mutex->acquire(), Code::workspace_insecure));
  place.write(kFile, "");
  EXPECT_TRUE(refused_with(mutex->acquire(), Code::workspace_insecure));
  EXPECT_TRUE(granted(TransitionMutex::open(place.open()).value()->acquire()));
}

TEST(TransitionMutex, SignalsEveryMillisecondCauseNoFalseRefusal) {
  const TemporaryFolder place;
  const auto mutex = TransitionMutex::open(place.open()).value();
  struct sigaction act {};
  act.sa_handler = [](int) {};  // no SA_RESTART: every blocking call comes back with EINTR
  struct sigaction before {};
  ASSERT_EQ(::sigaction(SIGALRM, &act, &before), 0);
  const itimerval every{{0, 1000}, {0, 1000}};
  const itimerval never{};
  ASSERT_EQ(::setitimer(ITIMER_REAL, &every, nullptr), 0);
  Child other = support::spawn_as("count_under_transition", {place.path()});
  for (int round = 0; round < 200; ++round) EXPECT_TRUE(granted(mutex->acquire()));
  EXPECT_EQ(other.wait(), 0);
  ASSERT_EQ(::setitimer(ITIMER_REAL, &never, nullptr), 0);
  ASSERT_EQ(::sigaction(SIGALRM, &before, nullptr), 0);
}

}  // namespace
}  // namespace holdfast::os
