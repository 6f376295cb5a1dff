#include "lease/liveness.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "base/json.h"
#include "support/child.h"
#include "support/refused_with.h"
#include "support/temporary_folder.h"

namespace holdfast {
namespace {

using os::Liveness;
using support::Child;
using support::granted;
using support::TemporaryFolder;

// A server as far as liveness goes: publishes, says its record, lives until it hears a line, then ends in order.
const support::RegisterRole kServer("liveness_server", [](const std::vector<std::string>& arguments) {
  const os::Handle squad(::open(arguments.at(0).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto files = os::open_control_folder(squad).value();
  auto record = LivenessRecord::publish(*files, squad, arguments.at(1));
  if (!record) return 1;
  support::say(dump_ascii(record->document()));
  if (!support::hear().empty() && !record->remove(*files)) return 2;
  return 0;
});
const support::RegisterRole kJudge("liveness_judge", [](const std::vector<std::string>& arguments) {
  const os::Handle squad(::open(arguments.at(0).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto files = os::open_control_folder(squad).value();
  const auto process = os::ProcessIdentity::from_json(parse_json(arguments.at(1)).value_or(Json()));
  support::say(std::string(name_of(server_liveness(squad, *files, process, arguments.at(2)))));
  return 0;
});

class ServerLiveness : public testing::Test {
 protected:
  TemporaryFolder place;
  os::Handle squad = place.open();
  std::unique_ptr<os::ControlFolder> files = os::open_control_folder(squad).value();
  Child server = support::spawn_as("liveness_server", {place.path(), "session-1"});
  Json document = parse_json(server.read_line()).value_or(Json::object());
  os::ProcessIdentity process = os::ProcessIdentity::from_json(document.value("process", Json()));
  std::string record = liveness_record_path(process.pid);

  Liveness judge(const std::string& session = "session-1") { return server_liveness(squad, *files, process, session); }
  void end() {
    server.kill();
    server.wait();
  }
};

TEST_F(ServerLiveness, AServerIsAliveUntilItIsKilled) {
  EXPECT_EQ(document.value("protocol", ""), "holdfast.server.1");
  EXPECT_EQ(document.value("pid", 0), server.pid());
  EXPECT_EQ(judge(), Liveness::alive);
  EXPECT_EQ(living_server(squad, *files), document);
  server.kill();
  EXPECT_TRUE(support::eventually([&] { return judge() == Liveness::dead; }));
  server.wait();
  EXPECT_EQ(judge(), Liveness::dead);
  EXPECT_TRUE(living_server(squad, *files).is_null());
  EXPECT_TRUE(place.exists(record));
}

TEST_F(ServerLiveness, AStoppedServerIsAlive) {
  server.stop();
  EXPECT_EQ(judge(), Liveness::alive);
}

TEST_F(ServerLiveness, AnOrderlyEndTakesTheRecordAway) {
  server.write("end\n");
  EXPECT_EQ(server.wait(), 0);
  EXPECT_FALSE(place.exists(record));
  EXPECT_EQ(judge(), Liveness::dead);
}

TEST_F(ServerLiveness, AnotherSessionOrStartTimeIsNotThisServer) {
  EXPECT_EQ(judge("session-2"), Liveness::unknown);  // the process lives, its session is another
  process.started_at += "0";
  EXPECT_EQ(judge(), Liveness::dead);  // the pid was reused
}

TEST_F(ServerLiveness, ARecordOfAReusedPidDoesNotKeepItsTenanciesAlive) {
  end();
  os::ProcessIdentity reused = os::this_process();  // lives, and is not the one that was recorded
  reused.started_at = "1";
  document["process"] = reused.to_json();
  place.write(liveness_record_path(reused.pid), dump_ascii(document));
  EXPECT_EQ(server_liveness(squad, *files, reused, "session-1"), Liveness::dead);
}

TEST_F(ServerLiveness, AnotherBootIsDeadThoughItsPidLives) {
  os::ProcessIdentity before = os::this_process();
  before.boot_id = "00000000-0000-4000-8000-000000000000";
  document["process"] = before.to_json();
  place.write(liveness_record_path(before.pid), dump_ascii(document));
  EXPECT_EQ(server_liveness(squad, *files, before, "session-1"), Liveness::dead);
}

TEST_F(ServerLiveness, AnAbsentPidWithoutARecordIsDeadAndALivingOneUnknown) {
  ASSERT_EQ(::unlink(place.at(record).c_str()), 0);
  EXPECT_EQ(judge(), Liveness::unknown);
  end();
  EXPECT_EQ(judge(), Liveness::dead);
}

TEST_F(ServerLiveness, ACopiedRecordWhoseLockIsFreeProvesNothing) {
  const std::string bytes = place.read(record);
  ASSERT_EQ(::unlink(place.at(record).c_str()), 0);
  place.write(record, bytes);
  EXPECT_EQ(judge(), Liveness::unknown);
}

TEST_F(ServerLiveness, ATruncatedOrGarbledRecordIsUnknownWhileThePidLivesAndDeadOnlyAfterItsEnd) {
  const std::string whole = place.read(record);
  for (std::size_t length = 0; length + 2 < whole.size(); ++length) {
    place.write(record, whole.substr(0, length));  // in place: the lock is still held
    EXPECT_EQ(judge(), Liveness::unknown) << length;
  }
  for (const std::string& garbage : {std::string(whole.size(), '\0'), std::string("[]"), std::string("null"),
                                     whole + whole, std::string("{\"process\":7}"), std::string(100'000, '{')}) {
    place.write(record, garbage);
    EXPECT_EQ(judge(), Liveness::unknown) << garbage.substr(0, 40);
    EXPECT_TRUE(living_server(squad, *files).is_null());
  }
  place.write(record, whole);
  EXPECT_EQ(judge(), Liveness::alive);
  end();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    place.write(record, whole.substr(0, length));
    EXPECT_EQ(judge(), Liveness::dead) << length;
  }
}

TEST_F(ServerLiveness, APlantedLinkIsUnknownWhileThePidLives) {
  ASSERT_EQ(::rename(place.at(record).c_str(), place.at("elsewhere").c_str()), 0);
  place.link(place.at("elsewhere"), record);
  EXPECT_EQ(judge(), Liveness::unknown);
}

TEST_F(ServerLiveness, FromAnotherPidNamespaceItsLockSaysAliveAndNothingSaysDead) {
  char self[4096];
  const ssize_t length = ::readlink("/proc/self/exe", self, sizeof self);
  const std::string program(self, static_cast<std::size_t>(length));
  const auto judged_inside = [&] {
    Child child = support::spawn({"unshare", "-pf", "--kill-child", program, "--as=liveness_judge", place.path(),
                                  dump_ascii(process.to_json()), "session-1"});
    return child.read_line();
  };
  EXPECT_EQ(judged_inside(), "alive");
  end();
  EXPECT_EQ(judged_inside(), "unknown");

  Child inner =
      support::spawn({"unshare", "-pf", "--kill-child", program, "--as=liveness_server", place.path(), "session-2"});
  const Json told = parse_json(inner.read_line()).value_or(Json::object());
  const auto foreign = os::ProcessIdentity::from_json(told.value("process", Json()));
  ASSERT_EQ(foreign.pid, 1);
  EXPECT_EQ(server_liveness(squad, *files, foreign, "session-2"), Liveness::alive);
  ASSERT_EQ(::rename(place.at(liveness_record_path(1)).c_str(), place.at("away").c_str()), 0);
  EXPECT_EQ(server_liveness(squad, *files, foreign, "session-2"), Liveness::unknown);
}

// What a child got at a fork (field report B08): the open file of the lock, here taken from the living server.
TEST_F(ServerLiveness, ALockThatAChildOfADeadServerHasMakesItUnknownAndNotAlive) {
  const os::Handle of_server(static_cast<int>(::syscall(SYS_pidfd_open, server.pid(), 0)));
  os::Handle inherited;
  for (int number = 3; number < 64 && !inherited; ++number) {
    const std::string opened = "/proc/" + std::to_string(server.pid()) + "/fd/" + std::to_string(number);
    char target[4096];
    const ssize_t length = ::readlink(opened.c_str(), target, sizeof target);
    if (length <= 0 || std::string_view(target, static_cast<std::size_t>(length)) != place.at(record)) continue;
    inherited = os::Handle(static_cast<int>(::syscall(SYS_pidfd_getfd, of_server.fd(), number, 0)));
  }
  if (!inherited && errno == EPERM) GTEST_SKIP() << "no descriptor of another process may be copied here";
  ASSERT_TRUE(static_cast<bool>(inherited));
  EXPECT_EQ(judge(), Liveness::alive);
  end();
  EXPECT_EQ(judge(), Liveness::unknown);
  inherited.reset();
  EXPECT_EQ(judge(), Liveness::dead);
}

TEST_F(ServerLiveness, ALookNeverStandsInTheWayOfWhoPublishes) {
  std::atomic<bool> done{false};
  std::thread looking([&] {
    while (!done) static_cast<void>(living_server(squad, *files));
  });
  for (int round = 0; round < 20; ++round) {
    Child other = support::spawn_as("liveness_server", {place.path(), "session-2"});
    EXPECT_FALSE(other.read_line().empty());
    other.write("end\n");
    EXPECT_EQ(other.wait(), 0);
  }
  done = true;
  looking.join();
}

}  // namespace
}  // namespace holdfast
