#include "os/local_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <random>
#include <thread>

#include "support/child.h"
#include "support/refused_with.h"
#include "support/temporary_folder.h"

namespace holdfast::os {
namespace {

using support::Child;
using support::granted;
using support::refused_with;
using support::TemporaryFolder;

struct Pair {
  Connection client;
  Connection server;
};
Pair connected(Listener& listener, const Handle& squad) {
  Result<Connection> client = connect_to_server(squad);
  Result<std::optional<Connection>> server = listener.accept(10'000);
  return Pair{std::move(client).value(), std::move(*std::move(server).value())};
}

struct Raw {
  Handle ours;
  Connection theirs;
};
Raw raw_pair() {
  int ends[2];
  HF_ASSERT(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  return Raw{Handle(ends[0]), Connection(Handle(ends[1]))};
}
void send_raw(const Handle& socket, const std::string& bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t count = ::send(socket.fd(), bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (count <= 0) return;
    done += static_cast<std::size_t>(count);
  }
}
std::string header(std::uint32_t length, char kind) {
  std::string bytes;
  for (unsigned at = 0; at < 4; ++at) bytes += static_cast<char>((length >> (8 * at)) & 0xFFU);
  return bytes + kind;
}

const support::RegisterRole kClient("connect_as_user", [](const std::vector<std::string>& arguments) {
  const Handle squad(::open(arguments.at(0).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // The folder stays open across the change, as if its modes let everybody in.
  if (::setresuid(65534, 65534, 65534) != 0) return 1;
  auto connection = connect_to_server(squad);
  if (!connection) {
    support::say(std::string(connection.refusal().code_name()));
    return 0;
  }
  support::say("connected");
  const auto answer = connection->receive();
  support::say(!answer ? std::string(answer.refusal().code_name()) : answer->has_value() ? "served" : "closed");
  return 0;
});

TEST(LocalSocket, CarriesFramesBothWaysWholeAndInOrder) {
  const TemporaryFolder place;
  const auto listener = Listener::open(place.open()).value();
  Pair pair = connected(*listener, place.open());
  EXPECT_EQ(pair.server.peer().pid, ::getpid());
  EXPECT_EQ(pair.server.peer().user, ::geteuid());
  const std::string large(Connection::kFrameMax, '\xAB');
  std::thread sender([&] {
    EXPECT_TRUE(granted(pair.client.send('J', "{}")));
    EXPECT_TRUE(granted(pair.client.send('C', large)));
    EXPECT_TRUE(granted(pair.client.send('E', "")));
  });
  const auto first = pair.server.receive().value();
  const auto second = pair.server.receive().value();
  const auto third = pair.server.receive().value();
  sender.join();
  EXPECT_EQ(first->kind, 'J');
  EXPECT_EQ(first->payload, "{}");
  EXPECT_TRUE(second->payload == large);
  EXPECT_EQ(third->kind, 'E');
  EXPECT_EQ(third->payload, "");
  ASSERT_TRUE(granted(pair.server.send('P', "1")));
  EXPECT_EQ(pair.client.receive().value()->payload, "1");
}

TEST(LocalSocket, IsPrivateAndReachedHoweverDeepTheWorkspaceLies) {
  const TemporaryFolder place;
  std::string deep = "squad";
  for (int level = 0; level < 12; ++level) deep += "/a-folder-with-a-rather-long-name";
  place.make_folder(deep);
  const Handle squad = place.open(deep);
  const auto listener = Listener::open(squad).value();
  struct stat found {};
  ASSERT_EQ(::stat(place.at(deep + "/servers/server.sock").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode, static_cast<mode_t>(S_IFSOCK | 0600));
  EXPECT_FALSE(place.exists(deep + "/servers/server.sock.new"));
  connected(*listener, squad);
}

TEST(LocalSocket, ReplacesTheSocketOfADeadServerAndOnlyRemovesItsOwn) {
  const TemporaryFolder place;
  EXPECT_TRUE(refused_with(connect_to_server(place.open()), Code::server_unreachable));
  auto dead = Listener::open(place.open()).value();
  { auto gone = std::move(dead); }
  EXPECT_TRUE(place.exists("servers/server.sock"));
  EXPECT_TRUE(refused_with(connect_to_server(place.open()), Code::server_unreachable));
  const auto first = Listener::open(place.open()).value();
  const auto second = Listener::open(place.open()).value();
  first->remove();
  connected(*second, place.open());
  second->remove();
  EXPECT_FALSE(place.exists("servers/server.sock"));
}

TEST(LocalSocket, AListenerThatIsClosedWakesAndRefuses) {
  const TemporaryFolder place;
  const auto listener = Listener::open(place.open()).value();
  EXPECT_FALSE(listener->accept(1).value().has_value());
  std::thread waiting([&] { EXPECT_FALSE(listener->accept(-1).value().has_value()); });
  listener->close();
  waiting.join();
  EXPECT_FALSE(listener->accept(-1).value().has_value());
  EXPECT_TRUE(refused_with(connect_to_server(place.open()), Code::server_unreachable));
}

TEST(LocalSocket, NothingIsReachedThroughALink) {
  const TemporaryFolder place;
  place.make_folder("real/servers");
  const auto listener = Listener::open(place.open("real")).value();
  place.make_folder("a");
  place.link(place.at("real/servers"), "a/servers");
  EXPECT_TRUE(refused_with(connect_to_server(place.open("a")), Code::workspace_insecure));
  EXPECT_TRUE(refused_with(Listener::open(place.open("a")), Code::workspace_insecure));
  place.make_folder("b/servers");
  place.link(place.at("real/servers/server.sock"), "b/servers/server.sock");
  EXPECT_TRUE(refused_with(connect_to_server(place.open("b")), Code::workspace_insecure));
  place.make_folder("c/servers");
  place.write("c/servers/server.sock", "no socket");
  EXPECT_TRUE(refused_with(connect_to_server(place.open("c")), Code::workspace_insecure));
}

TEST(LocalSocket, AnotherUserIsNotServed) {
  ASSERT_EQ(::geteuid(), 0U);
  const TemporaryFolder place;
  const auto listener = Listener::open(place.open()).value();
  Child by_mode = support::spawn_as("connect_as_user", {place.path()});
  EXPECT_EQ(by_mode.read_line(), "workspace_permission_denied");
  for (const char* name : {"", "servers"}) ASSERT_EQ(::chmod(place.at(name).c_str(), 0755), 0);
  ASSERT_EQ(::chmod(place.at("servers/server.sock").c_str(), 0666), 0);
  std::thread accepting([&] { EXPECT_FALSE(listener->accept(-1).value().has_value()); });
  Child by_peer = support::spawn_as("connect_as_user", {place.path()});
  EXPECT_EQ(by_peer.read_line(), "connected");
  EXPECT_EQ(by_peer.read_line(), "closed");
  listener->close();
  accepting.join();
}

TEST(LocalSocket, TellsAnOrderlyEndFromABrokenFrame) {
  for (const std::string& bytes : {std::string("\x01"), header(3, 'J'), header(3, 'J') + "{}"}) {
    Raw raw = raw_pair();
    send_raw(raw.ours, bytes);
    raw.ours.reset();
    EXPECT_TRUE(refused_with(raw.theirs.receive(), Code::server_answer_lost)) << bytes.size();
  }
  Raw raw = raw_pair();
  send_raw(raw.ours, header(2, 'J') + "{}");
  raw.ours.reset();
  EXPECT_EQ(raw.theirs.receive().value()->payload, "{}");
  EXPECT_FALSE(raw.theirs.receive().value().has_value());
}

TEST(LocalSocket, AnOversizeFrameOrAnUnknownKindEndsTheConnection) {
  for (const std::string& bytes : {header(Connection::kFrameMax + 1, 'J'), header(0xFFFFFFFFU, 'C'), header(0, 'X'),
                                   std::string("GET / HTTP/1.1\r\n")}) {
    Raw raw = raw_pair();
    send_raw(raw.ours, bytes);
    EXPECT_TRUE(refused_with(raw.theirs.receive(), Code::request_malformed));
    char byte = 0;
    EXPECT_EQ(::recv(raw.ours.fd(), &byte, 1, 0), 0);
  }
  Raw raw = raw_pair();
  EXPECT_TRUE(refused_with(raw.theirs.send('J', std::string(Connection::kFrameMax + 1, 'x')), Code::request_malformed));
  EXPECT_TRUE(refused_with(raw.theirs.send('X', ""), Code::request_malformed));
}

TEST(LocalSocket, SendingToWhoIsGoneIsARefusalAndNoSignal) {
  Raw raw = raw_pair();
  EXPECT_FALSE(raw.theirs.peer_is_gone());
  send_raw(raw.ours, header(1, 'J') + "1");
  EXPECT_FALSE(raw.theirs.peer_is_gone());
  raw.ours.reset();
  EXPECT_TRUE(raw.theirs.peer_is_gone());
  EXPECT_TRUE(refused_with(raw.theirs.send('J', "{}"), Code::server_answer_lost));
  EXPECT_EQ(raw.theirs.receive().value()->payload, "1");  // peer_is_gone() consumed nothing
}

TEST(LocalSocket, AThreadThatWaitsForAPeerThatHangsCanBeWoken) {
  for (const std::string& bytes : {std::string(), header(100, 'J') + "half"}) {
    Raw raw = raw_pair();
    send_raw(raw.ours, bytes);
    std::thread waiting([&] {
      const auto frame = raw.theirs.receive();
      EXPECT_TRUE(!frame.ok() || !frame->has_value());
    });
    raw.theirs.shut_down();
    waiting.join();
  }
}

// Invariants: no crash, no hang; whatever arrives is a frame of a known kind within bounds, an end, or a refusal.
TEST(LocalSocket, RandomBytesAreFramesEndsOrRefusals) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 300; ++round) {
    Raw raw = raw_pair();
    std::string bytes;
    const auto pieces = static_cast<unsigned>(random() % 6);
    for (unsigned piece = 0; piece < pieces; ++piece) {
      const auto length = static_cast<std::uint32_t>(random() % 200);
      if (random() % 3 != 0) bytes += header(length, "JCEP"[random() % 4]);
      for (std::uint32_t at = 0; at < length; ++at) bytes += static_cast<char>(random());
    }
    bytes.resize(bytes.size() - std::min<std::size_t>(bytes.size(), random() % 8));
    std::thread sender([&] {
      send_raw(raw.ours, bytes);
      ::shutdown(raw.ours.fd(), SHUT_WR);
    });
    std::size_t taken = 0;
    for (;;) {
      const auto frame = raw.theirs.receive();
      if (!frame || !frame->has_value()) break;
      EXPECT_NE(std::string("JCEP").find((*frame)->kind), std::string::npos);
      taken += 5 + (*frame)->payload.size();
    }
    EXPECT_LE(taken, bytes.size());
    sender.join();
  }
}

}  // namespace
}  // namespace holdfast::os
