#include "os/thread.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <cstdint>
#include <memory>
#include <string>

#include "os/termination.h"
#include "support/child.h"
#include "support/no_new_threads.h"
#include "support/refused_with.h"

namespace holdfast::os {
namespace {

using support::refused_with;

// How much of its stack a thread of a small process has left, in bytes; -1 where none starts.
const support::RegisterRole kSmall("small_stack_left", [](const std::vector<std::string>&) {
  keep_footprint_small();
  std::int64_t left = -1;
  auto thread = start_thread([&left] {
    pthread_attr_t attributes;
    void* lowest = nullptr;
    std::size_t size = 0;
    if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return;
    ::pthread_attr_getstack(&attributes, &lowest, &size);
    ::pthread_attr_destroy(&attributes);
    left = static_cast<char*>(__builtin_frame_address(0)) - static_cast<char*>(lowest);
  });
  if (thread) thread->join();
  support::say(std::to_string(left));
  return 0;
});

TEST(Thread, RunsItsWorkOnce) {
  int runs = 0;
  auto thread = start_thread([&runs, only_moved = std::make_unique<int>(1)] { runs += *only_moved; });
  ASSERT_TRUE(thread.ok());
  thread->join();
  EXPECT_EQ(runs, 1);
}

TEST(Thread, ThatCannotStartIsARefusalAndItsWorkIsGone) {
  const auto held_by_work = std::make_shared<int>(0);
  const support::NoNewThreads none;
  const auto thread = start_thread([held_by_work] { ++*held_by_work; });
  EXPECT_TRUE(refused_with(thread, Code::os_failed));
  EXPECT_EQ(held_by_work.use_count(), 1);
  EXPECT_EQ(*held_by_work, 0);
}

// The thread sanitizer's own thread-local variables are larger than the stack that a small process asks for.
TEST(SmallFootprint, LeavesAThreadItsStackBesideTheThreadLocalVariablesOfAllModules) {
  support::Child child = support::spawn_as("small_stack_left");
  const std::int64_t left = std::stoll(child.read_line());
  EXPECT_GT(left, 480 * 1024);
  EXPECT_LT(left, 2 * 1024 * 1024);
  EXPECT_EQ(child.wait(), 0);
}

}  // namespace
}  // namespace holdfast::os
