// Every way out of a confinement that we know is tried, by root and by an ordinary user, and nothing outside changes.
// The same attempts succeed without the confinement: none of them fails for another reason.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <grp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>

#include "base/ids.h"
#include "os/command_process.h"
#include "os/confinement.h"
#include "os/linux/escape_attempts.h"
#include "support/child.h"
#include "support/refused_with.h"
#include "support/temporary_folder.h"

namespace holdfast::os {
namespace {

using support::Child;
using support::say;
using support::TemporaryFolder;

constexpr const char* kRoot = "0";
constexpr const char* kNobody = "65534";

// Becomes the user, and stays open to tracing and to /proc as if it had always been that user.
bool become(const std::string& user) {
  const auto id = static_cast<uid_t>(std::stoul(user));
  if (id == 0) return true;
  return ::setgroups(0, nullptr) == 0 && ::setresgid(id, id, id) == 0 && ::setresuid(id, id, id) == 0 &&
         ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0;
}

const support::RegisterRole kNeighbour("escape_neighbour", [](const std::vector<std::string>& arguments) {
  if (!become(arguments.at(0))) return 1;
  ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  const Handle file(::open(arguments.at(1).c_str(), O_RDWR | O_CLOEXEC));
  if (::dup2(file.fd(), 9) != 9) return 1;
  const Handle socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  arguments.at(2).copy(address.sun_path + 1, sizeof address.sun_path - 1);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + arguments.at(2).size());
  if (::bind(socket.fd(), reinterpret_cast<sockaddr*>(&address), length) != 0 || ::listen(socket.fd(), 1) != 0)
    return 1;
  say("ready");
  support::hear();
  return 0;
});

std::vector<EscapeAttempt> all_attempts() {
  std::vector<EscapeAttempt> all = escape_attempts_by_path();
  const auto& detours = escape_attempts_by_detour();
  all.insert(all.end(), detours.begin(), detours.end());
  return all;
}

// Runs one attempt: user, "confined" or "free", its name, inside, outside, neighbour, socket.
const support::RegisterRole kEscape("escape_attempt", [](const std::vector<std::string>& arguments) {
  EscapeGround ground{arguments.at(3), arguments.at(4), std::stoi(arguments.at(5)), arguments.at(6)};
  if (!become(arguments.at(0)) || ::chdir(ground.inside.c_str()) != 0) return 1;
  if (arguments.at(1) == "confined") {
    std::vector<Handle> folders;
    folders.emplace_back(::open(ground.inside.c_str(), O_PATH | O_CLOEXEC));
    const auto confinement = Confinement::prepare(folders, {});
    if (!confinement || confinement->enter() != 0) return 1;
  }
  for (const EscapeAttempt& attempt : all_attempts()) {
    if (attempt.name == arguments.at(2)) say(attempt.run(ground) ? "done" : "denied");
  }
  return 0;
});

// Writable for everybody, so that ordinary permissions deny nothing.
struct Ground {
  explicit Ground(const std::string& user) : socket("holdfast-test-" + random_hex(8)) {
    for (const char* folder : {"leased", "outside", "outside/empty"}) place.make_folder(folder);
    for (const char* file : {"leased/mine", "outside/victim", "outside/spare"}) place.write(file, "old bytes");
    place.link("../outside/victim", "leased/way_out");
    ::chmod(place.path().c_str(), 0777);
    for (const char* folder : {"leased", "outside", "outside/empty"}) own(folder, 0777, user);
    for (const char* file : {"leased/mine", "outside/victim", "outside/spare"}) own(file, 0666, user);
  }
  void own(const std::string& name, mode_t mode, const std::string& user) const {
    const auto id = static_cast<uid_t>(std::stoul(user));
    if (::chmod(place.at(name).c_str(), mode) != 0 || ::chown(place.at(name).c_str(), id, id) != 0)
      ADD_FAILURE() << name;
  }

  // Everything outside: names, kinds, modes, links and bytes; and what of ours lies beside it.
  std::string outside() const {
    std::string text;
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(place.at("outside"))) {
      names.push_back(entry.path().string());
    }
    std::ranges::sort(names);
    for (const std::string& name : names) {
      struct stat status {};
      ::lstat(name.c_str(), &status);
      text += name + " " + std::to_string(status.st_ino) + " " + std::to_string(status.st_mode) + " " +
              std::to_string(status.st_nlink) + " " + std::to_string(status.st_size) + " " +
              std::to_string(status.st_mtim.tv_sec) + "." + std::to_string(status.st_mtim.tv_nsec);
      if (S_ISREG(status.st_mode)) text += " " + place.read(name.substr(place.path().size() + 1));
      text += "\n";
    }
    return text;
  }

  TemporaryFolder place;
  std::string socket;
};

std::string try_to_escape(const EscapeAttempt& attempt, const std::string& user, const std::string& mode) {
  const Ground ground(user);
  Child neighbour = support::spawn_as("escape_neighbour", {user, ground.place.at("outside/victim"), ground.socket});
  if (neighbour.read_line() != "ready") return "no neighbour";
  const std::string before = ground.outside();
  Child child =
      support::spawn_as("escape_attempt", {user, mode, attempt.name, ground.place.at("leased"),
                                           ground.place.at("outside"), std::to_string(neighbour.pid()), ground.socket});
  const std::string outcome = child.read_line();
  child.wait();
  if (mode != "confined") return outcome;
  if (ground.outside() != before) return "changed: " + before + "to " + ground.outside();
  if (!ground.place.exists("leased/mine")) return "what is leased is gone";
  neighbour.write("\n");
  return neighbour.wait() == 0 ? outcome : "the neighbour was ended";
}

class Escapes : public testing::TestWithParam<const char*> {};

TEST_P(Escapes, FromAConfinementFailAndChangeNothingOutside) {
  const auto attempts = all_attempts();
  EXPECT_GE(attempts.size(), 60U);
  for (const EscapeAttempt& attempt : attempts) {
    EXPECT_EQ(try_to_escape(attempt, GetParam(), "confined"), "denied") << attempt.name;
  }
}

TEST_P(Escapes, SucceedWhereNothingIsConfined) {
  for (const EscapeAttempt& attempt : all_attempts()) {
    if (attempt.uncertain || (attempt.by_root_alone && std::string(GetParam()) != kRoot)) continue;
    EXPECT_EQ(try_to_escape(attempt, GetParam(), "free"), "done") << attempt.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Escapes, testing::Values(kRoot, kNobody), [](const auto& user) {
  return std::string(user.param == std::string(kRoot) ? "Root" : "Nobody");
});

// A program that takes its owner's rights when it is run gives them to nobody who is confined.
const support::RegisterRole kSetuid("escape_setuid", [](const std::vector<std::string>& arguments) {
  if (!become(kNobody)) return 1;
  const auto confinement = Confinement::prepare({}, {});
  CommandOptions options;
  if (arguments.at(0) == "confined") options.confinement = &confinement.value();
  auto command = CommandProcess::start({arguments.at(1), "-u"}, options);
  if (!command || !(*command)->release_gate()) return 1;
  return (*command)->wait(-1).value_or(1);
});

TEST(SetuidProgram, GivesAConfinedUserNothing) {
  const TemporaryFolder place;
  ::chmod(place.path().c_str(), 0755);
  std::filesystem::copy_file("/usr/bin/id", place.at("id"));
  ASSERT_EQ(::chmod(place.at("id").c_str(), 04755), 0);
  Child free = support::spawn_as("escape_setuid", {"free", place.at("id")});
  EXPECT_EQ(free.read_line(), "0");
  Child confined = support::spawn_as("escape_setuid", {"confined", place.at("id")});
  EXPECT_EQ(confined.read_line(), kNobody);
}

}  // namespace
}  // namespace holdfast::os
