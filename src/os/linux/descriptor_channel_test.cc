#include "os/descriptor_channel.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "os/lock_file.h"
#include "support/refused_with.h"
#include "support/temporary_folder.h"

namespace holdfast::os {
namespace {

using support::granted;
using support::refused_with;

class Channel : public testing::Test {
 protected:
  Handle theirs_;
  DescriptorChannel ours = DescriptorChannel::make_pair(theirs_).value();
  DescriptorChannel theirs = DescriptorChannel::inherited(theirs_.release()).value();
};

TEST_F(Channel, CarriesMessagesWholeAndInOrder) {
  const std::string large(3'000'000, 'x');
  std::thread sending([&] {
    EXPECT_TRUE(granted(ours.send("")));
    EXPECT_TRUE(granted(ours.send(large)));
    EXPECT_TRUE(granted(ours.send("last")));
  });
  for (const std::string& expected : {std::string(), large, std::string("last")}) {
    const auto message = theirs.receive(10'000);
    ASSERT_TRUE(granted(message));
    EXPECT_EQ((*message)->text, expected);
    EXPECT_TRUE((*message)->objects.empty());
  }
  sending.join();
}

TEST_F(Channel, CarriesALockThatIsHeldWithoutAGap) {
  const support::TemporaryFolder place;
  std::optional<LockFile> lock(LockFile::open(place.open(), "lock").value());
  ASSERT_TRUE(lock->try_lock(LockMode::exclusive).value());
  ASSERT_TRUE(granted(ours.send("the lock", {&lock->handle()})));
  lock.reset();
  const LockFile look = LockFile::open(place.open(), "lock").value();
  EXPECT_TRUE(look.is_held_by_another(LockMode::shared).value()) << "also while it is on its way";
  auto message = theirs.receive(10'000);
  ASSERT_TRUE(granted(message));
  ASSERT_EQ((*message)->objects.size(), 1U);
  EXPECT_NE(::fcntl((*message)->objects[0].fd(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_TRUE(look.is_held_by_another(LockMode::shared).value());
  (*message)->objects.clear();
  EXPECT_FALSE(look.is_held_by_another(LockMode::shared).value());
}

TEST_F(Channel, SaysAtOnceThatTheOtherEndIsGoneAndAfterTheLimitThatItIsSilent) {
  EXPECT_TRUE(refused_with(ours.receive(20), Code::handoff_failed));
  { const DescriptorChannel dropped = std::move(theirs); }
  const auto gone = ours.receive(10'000);
  ASSERT_TRUE(granted(gone));
  EXPECT_FALSE(gone->has_value());
  EXPECT_TRUE(refused_with(ours.send("to nobody"), Code::handoff_failed));
}

TEST(InheritedChannel, IsNoOtherDescriptor) {
  EXPECT_TRUE(refused_with(DescriptorChannel::inherited(-1), Code::adoption_not_expected));
  EXPECT_TRUE(refused_with(DescriptorChannel::inherited(0), Code::adoption_not_expected));
  const Handle file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_TRUE(refused_with(DescriptorChannel::inherited(file.native()), Code::adoption_not_expected));
}

}  // namespace
}  // namespace holdfast::os
