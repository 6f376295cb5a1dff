#include "os/scratch_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

#include "os/kernel_trials.h"
#include "os/unnamed_file.h"
#include "support/refused_with.h"
#include "support/temporary_folder.h"

namespace holdfast::os {
namespace {

using support::granted;
using support::TemporaryFolder;

constexpr const char* kPrefix = ".trial";

class Scratch : public testing::Test {
 protected:
  std::size_t names() const { return names_in(parent_)->size(); }
  TemporaryFolder place_;
  Handle parent_ = place_.open();
};

TEST_F(Scratch, IsGoneWithEverythingInIt) {
  {
    auto scratch = ScratchFolder::make_in(parent_, kPrefix, 0700);
    ASSERT_TRUE(granted(scratch));
    ASSERT_TRUE((*scratch)->put((*scratch)->next_name(), "bytes", 0600).ok());
    EXPECT_TRUE(support::refused_with((*scratch)->put("scratch-1", "again", 0600), Code::state_persist_failed));
    EXPECT_EQ(names(), 1U);
  }
  EXPECT_EQ(names(), 0U);
}

TEST_F(Scratch, TakesAwayWhatAKilledMakerLeftEvenAnImmutableFile) {
  place_.make_folder(".trial-0123456789abcdef");
  place_.write(".trial-0123456789abcdef/scratch-lock", "");
  place_.write(".trial-0123456789abcdef/scratch-1", "left");
  auto left = open_for_reading(parent_, ".trial-0123456789abcdef/scratch-1");
  ASSERT_TRUE(granted(left));
  const bool immutable = set_immutable(*left, true) == 0;
  EXPECT_EQ(immutable, ::geteuid() == 0);
  ASSERT_TRUE(granted(ScratchFolder::make_in(parent_, kPrefix, 0700)));
  EXPECT_EQ(names(), 0U);
}

TEST_F(Scratch, LeavesALivingMakersFolderAlone) {
  auto first = ScratchFolder::make_in(parent_, kPrefix, 0700);
  ASSERT_TRUE(granted(first));
  ASSERT_TRUE((*first)->put("scratch-1", "mine", 0600).ok());
  { ASSERT_TRUE(granted(ScratchFolder::make_in(parent_, kPrefix, 0700))); }
  EXPECT_TRUE(name_exists((*first)->folder(), "scratch-1"));
}

TEST_F(Scratch, IsGoneAlsoWhereAnotherMakerWasFasterToTakeItAway) {
  auto scratch = ScratchFolder::make_in(parent_, kPrefix, 0700);
  ASSERT_TRUE(granted(scratch));
  std::filesystem::remove_all(place_.at((*scratch)->name()));
  EXPECT_TRUE(granted((*scratch)->remove()));
}

TEST_F(Scratch, ManyMakersAtOnceNeverTakeEachOthersFolders) {
  std::atomic<int> failed{0};
  std::vector<std::thread> makers;
  for (int maker = 0; maker < 4; ++maker) {
    makers.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        auto scratch = ScratchFolder::make_in(parent_, kPrefix, 0700);
        const bool kept = scratch.ok() && (*scratch)->put("scratch-1", "mine", 0600).ok() &&
                          name_exists((*scratch)->folder(), "scratch-1");
        EXPECT_TRUE(granted(scratch));
        if (!kept) {
          ++failed;
          continue;
        }
        EXPECT_TRUE(granted((*scratch)->remove()));
      }
    });
  }
  for (std::thread& maker : makers) maker.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(names(), 0U);
}

TEST_F(Scratch, TakesNothingAwayThatItsClassDoesNotGive) {
  place_.make_folder(".trial-mine");
  place_.make_folder("elsewhere");
  place_.write(".trial-mine/scratch-lock", "");
  place_.write(".trial-mine/precious", "kept");
  place_.write("elsewhere/scratch-1", "kept");
  place_.link("elsewhere", ".trial-link");
  { ASSERT_TRUE(granted(ScratchFolder::make_in(parent_, kPrefix, 0700))); }
  EXPECT_EQ(place_.read(".trial-mine/precious"), "kept");
  EXPECT_EQ(place_.read("elsewhere/scratch-1"), "kept");
}

}  // namespace
}  // namespace holdfast::os
