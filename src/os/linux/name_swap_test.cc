#include "os/name_swap.h"

#include <gtest/gtest.h>

#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "os/temporary_folder.h"

namespace holdfast::os {
namespace {

namespace fs = std::filesystem;

class NameSwapTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = make_temporary_folder("/tmp", "holdfast-test");
    ASSERT_TRUE(made.ok());
    folder_ = *made;
    put("one");
    put("other");
  }
  void TearDown() override { fs::remove_all(folder_); }
  void put(const std::string& name) const { std::ofstream(folder_ + "/" + name) << name; }
  std::string text_in(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder_ + "/" + name).rdbuf();
    return text.str();
  }
  // In a thread of its own: it changes the scheduling of its thread for good.
  Json swap(const std::string& appearing, int limit_ms) const {
    Json answer;
    std::thread neighbour([&] {
      const NameSwap wanted{.folder = folder_,
                            .prefix = ".staged-",
                            .one = folder_ + "/one",
                            .other = folder_ + "/other",
                            .against_pid = ::getpid(),
                            .limit_ms = limit_ms};
      auto done = swap_when_name_appears(wanted, [&] { put(appearing); });
      answer = done.ok() ? *done : done.refusal().to_json();
    });
    neighbour.join();
    return answer;
  }
  std::string folder_;
};

TEST_F(NameSwapTest, LetsTwoNamesChangePlacesWhenTheNameAppears) {
  const Json answer = swap(".staged-1", 20'000);
  EXPECT_EQ(answer.value("swapped", false), true) << answer;
  EXPECT_EQ(text_in("one"), "other");
  EXPECT_EQ(text_in("other"), "one");
}

TEST_F(NameSwapTest, DoesNothingForAnotherNameAndComesBackAfterTheLimit) {
  const Json answer = swap("elsewhere", 50);
  EXPECT_EQ(answer.value("appeared", true), false) << answer;
  EXPECT_EQ(text_in("one"), "one");
}

TEST_F(NameSwapTest, GivesTheProcessorsBack) {
  cpu_set_t before;
  cpu_set_t after;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  (void)swap(".staged-1", 20'000);
  ASSERT_EQ(::sched_getaffinity(0, sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

TEST_F(NameSwapTest, SaysWhyTheNamesDidNotChangePlaces) {
  fs::remove(folder_ + "/other");
  const Json answer = swap(".staged-1", 20'000);
  EXPECT_EQ(answer.value("swapped", true), false) << answer;
  EXPECT_EQ(answer.value("os_error", 0), ENOENT);
}

}  // namespace
}  // namespace holdfast::os
