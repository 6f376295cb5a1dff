// What an act on one scope reads depends on what is open on that scope, not on how much the workspace has seen
// (counted: files opened, not time).
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <functional>

#include "base/json.h"
#include "support/workbench.h"

namespace holdfast {
namespace {

using support::Answer;
using support::Lease;
using support::operator+;
using support::Words;
using support::Workbench;

class OpenItems : public testing::Test {
 protected:
  // How many files below these folders of .squad are opened meanwhile, folders themselves not counted.
  int opened_during(const std::function<void()>& act) const {
    const int watch = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    for (const char* folder : {"intents", "evidence/reconcile", "resources", "evidence/quarantine"}) {
      ::inotify_add_watch(watch, bench_.at(std::string(".squad/") + folder).c_str(), IN_OPEN);
    }
    act();
    int opened = 0;
    alignas(inotify_event) std::array<char, 64 * 1024> events{};
    for (ssize_t count = 0; (count = ::read(watch, events.data(), events.size())) > 0;) {
      for (ssize_t at = 0; at < count;) {
        const auto* event = reinterpret_cast<const inotify_event*>(events.data() + at);
        if ((event->mask & IN_Q_OVERFLOW) != 0) ADD_FAILURE() << "too many";
        if ((event->mask & IN_ISDIR) == 0) ++opened;
        at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
      }
    }
    ::close(watch);
    return opened;
  }

  void write_often(int times) const {
    for (int number = 0; number < times; ++number) {
      const Lease lease = bench_.acquire("f" + std::to_string(number % 4), "writer");
      ASSERT_TRUE(bench_.write(lease, "bytes " + std::to_string(number)).ok());
      ASSERT_TRUE(bench_.release(lease).ok());
    }
  }

  // As many resolved records as a long life leaves.
  void resolve_often(int times) const {
    for (int number = 0; number < times; ++number) {
      std::string digits = std::to_string(number);
      const std::string id = "r-" + std::string(16 - digits.size(), '0') + digits;
      const Json record = {{"id", id}, {"at", "2026"}, {"scope", "file://project:/f1"}, {"state", "resolved"}};
      bench_.put(".squad/evidence/reconcile/" + id + ".json", dump_canonical(record) + "\n");
    }
  }

  Workbench bench_;
};

TEST_F(OpenItems, AWriteOpensNoMoreFilesForWhatWasSettledAndResolvedBefore) {
  bench_.serve();
  const Lease lease = bench_.acquire("a.txt");
  const auto write = [&] { EXPECT_TRUE(bench_.write(lease, "bytes").ok()); };
  write();
  const int first = opened_during(write);
  write_often(30);
  resolve_often(50);
  EXPECT_LE(opened_during(write), first);
}

TEST_F(OpenItems, AReleaseWithoutAServerOpensNoMoreFilesForWhatWasSettledAndResolvedBefore) {
  bench_.serve();
  const Lease one = bench_.acquire("a.txt");
  const Lease two = bench_.acquire("b.txt");
  for (const Lease* lease : {&one, &two}) ASSERT_TRUE(bench_.write(*lease, "bytes").ok());
  bench_.kill_server();
  const auto release = [&](const Lease& lease) {
    return opened_during([&] { EXPECT_TRUE(bench_.release(lease).ok()); });
  };
  const int first = release(one);
  bench_.serve();
  write_often(30);
  resolve_often(50);
  bench_.kill_server();
  EXPECT_LE(release(two), first);
}

TEST_F(OpenItems, AReleaseWithoutAServerSettlesWhatItsKilledServerLeftOpenOnTheScope) {
  bench_.put("a.txt", "old");
  bench_.serve({{"HOLDFAST_FAULT", "write_after_exchange:kill"}});
  const Lease other = bench_.acquire("b.txt");
  const Lease lease = bench_.acquire("a.txt");
  EXPECT_FALSE(bench_.write(lease, "new", {"--operation-id", "op-1"}).ok());
  ASSERT_EQ(bench_.wait_for_server(), -9);
  bench_.kill_server();
  ASSERT_TRUE(bench_.release(other).ok());
  EXPECT_EQ(bench_.log().find("write_recovered"), std::string::npos) << "it is not of that scope";
  const Answer released = bench_.release(lease);
  ASSERT_TRUE(released.ok()) << released.text;
  EXPECT_EQ(released.at("content_mismatch"), false) << released.text;
  EXPECT_NE(bench_.log().find("write_recovered"), std::string::npos);
  EXPECT_EQ(bench_.listing(), Words{"a.txt"});
}

}  // namespace
}  // namespace holdfast
