#include "server/server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <random>
#include <thread>

#include "base/digest.h"
#include "base/json.h"
#include "lease/liveness.h"
#include "os/control_folder.h"
#include "os/local_socket.h"
#include "os/workspace_folder.h"
#include "server/client.h"
#include "server/exchange.h"
#include "server/server_lock.h"
#include "support/child.h"
#include "support/refused_with.h"
#include "support/temporary_folder.h"
#include "support/text_content.h"

namespace holdfast {
namespace {

using support::Child;
using support::granted;
using support::refused_with;
using support::TemporaryFolder;
using support::TextContent;

// serve ROOT [lock_limit_ms connection_limit idle_limit_ms]: says the ready line, or the code of the refusal.
const support::RegisterRole kServe("serve", [](const std::vector<std::string>& arguments) {
  ServeOptions options;
  if (arguments.size() > 1) options.lock_limit_ms = std::stoi(arguments[1]);
  if (arguments.size() > 2) options.connection_limit = std::stoi(arguments[2]);
  if (arguments.size() > 3) options.idle_limit_ms = std::stoi(arguments[3]);
  options.on_ready = [](const Json& ready) { support::say(dump_ascii(ready)); };
  const auto ended = serve(arguments.at(0), options);
  if (!ended) support::say(dump_ascii(ended.refusal().to_json()));
  return ended ? *ended : 77;
});
// Holds the direct pass until it hears a line.
const support::RegisterRole kDirect("hold_direct_pass", [](const std::vector<std::string>& arguments) {
  const os::Handle squad(::open((arguments.at(0) + "/.squad").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto pass = DirectPass::take(squad);
  support::say(pass ? "taken" : std::string(pass.refusal().code_name()));
  support::hear();
  return 0;
});

class Served : public testing::Test {
 protected:
  TemporaryFolder place;
  Json initialised = Engine::initialise(place.path(), Json::object()).value();
  os::Handle squad = place.open(".squad");
  std::unique_ptr<os::ControlFolder> files = os::open_control_folder(squad).value();

  Child start(const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {place.path()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return support::spawn_as("serve", arguments);
  }
  static Json line_of(Child& child) { return parse_json(child.read_line()).value_or(Json::object()); }
  static std::string code_of(const Json& refusal) { return refusal.value("error", Json::object()).value("code", ""); }

  os::Connection connect() { return os::connect_to_server(squad).value(); }
  Result<Json> ask(os::Connection& connection, const std::string& verb, Json arguments = Json::object(),
                   ContentSource* content = nullptr) {
    arguments["cwd"] = place.path();
    return call_server(connection, Json{{"verb", verb}, {"arguments", arguments}, {"client", {{"bound", false}}}},
                       content);
  }
  bool answers() {
    auto connection = os::connect_to_server(squad);
    return connection && ask(*connection, "leases").ok();
  }
  Json acquire(os::Connection& connection, const std::string& scope) {
    const auto answer = ask(connection, "acquire", {{"scopes", Json::array({scope})}, {"owner", "o"}, {"task", "t"}});
    EXPECT_TRUE(granted(answer));
    return answer ? answer->at("leases").at(0) : Json::object();
  }
  static Json keys(const Json& lease, const std::string& scope) {
    return Json{{"scope", scope},
                {"owner", "o"},
                {"task", "t"},
                {"generation", lease.value("generation", Json())},
                {"started_at", lease.value("started_at", Json())}};
  }
};

TEST_F(Served, ServesAndEndsInOrderHoweverItIsAsked) {
  for (const int ending : {SIGTERM, SIGINT, SIGHUP, 0}) {
    EXPECT_FALSE(server_lives(squad));
    Child server = start();
    const Json ready = line_of(server);
    ASSERT_EQ(ready.value("ready", false), true) << ready;
    EXPECT_EQ(ready.value("pid", 0), server.pid());
    EXPECT_TRUE(server_lives(squad));
    EXPECT_EQ(living_server(squad, *files).value("session", ""), ready.value("session", "-"));
    os::Connection connection = connect();
    ASSERT_TRUE(granted(ask(connection, "leases")));
    if (ending != 0) {
      server.signal(ending);
    } else {
      EXPECT_EQ(ask(connection, "stop").value(), (Json{{"stopping", true}, {"pid", server.pid()}}));
    }
    EXPECT_EQ(server.wait(), kEndedInOrder);
    EXPECT_FALSE(server_lives(squad));
    EXPECT_TRUE(place.exists(".squad/servers/server.lock"));
    EXPECT_FALSE(place.exists(".squad/servers/server.sock"));
    EXPECT_FALSE(place.exists(".squad/" + liveness_record_path(server.pid())));
  }
}

// Field report B129; tests/race/one_server_test.cc has many, while their predecessors die.
TEST_F(Served, ASecondServerSaysWhoServesAndChangesNothing) {
  Child server = start();
  ASSERT_TRUE(line_of(server).contains("ready"));
  Child second = start();
  const Json refusal = line_of(second);
  EXPECT_EQ(code_of(refusal), "server_already_serves");
  EXPECT_EQ(refusal.at("error").at("details").value("pid", 0), server.pid());
  EXPECT_EQ(second.wait(), 77);
  EXPECT_FALSE(place.exists(".squad/" + liveness_record_path(second.pid())));
  EXPECT_TRUE(answers());
}

TEST_F(Served, WaitsForDirectChangesAndThenExcludesThem) {
  Child direct = support::spawn_as("hold_direct_pass", {place.path()});
  ASSERT_EQ(direct.read_line(), "taken");
  Child another = support::spawn_as("hold_direct_pass", {place.path()});
  ASSERT_EQ(another.read_line(), "taken");
  another.kill();
  Child impatient = start({"50"});
  EXPECT_EQ(code_of(line_of(impatient)), "workspace_in_use");
  EXPECT_EQ(impatient.wait(), 77);

  Child server = start();
  EXPECT_EQ(server.read_line(100), "");
  EXPECT_FALSE(server_lives(squad));
  direct.write("done\n");
  ASSERT_TRUE(line_of(server).contains("ready"));
  EXPECT_TRUE(refused_with(DirectPass::take(squad), Code::direct_refused_server_lives));
  server.terminate();
  EXPECT_EQ(server.wait(), kEndedInOrder);
  EXPECT_TRUE(granted(DirectPass::take(squad)));
}

TEST_F(Served, CanBeEndedWhileItWaitsForDirectChanges) {
  const auto pass = DirectPass::take(squad);
  ASSERT_TRUE(granted(pass));
  Child server = start();
  const os::LockFile wanted = os::LockFile::open(squad, kServerWanted).value();
  ASSERT_TRUE(support::eventually([&] { return wanted.is_held_by_another(os::LockMode::shared).value(); }));
  server.terminate();
  EXPECT_EQ(server.wait(), 77);
}

TEST_F(Served, AKilledServerIsGoneAtOnceAndAnotherTakesItsPlace) {
  Child server = start();
  const Json ready = line_of(server);
  const auto process = os::process_of_pid(server.pid()).value();
  server.kill();
  EXPECT_TRUE(support::eventually([&] { return !server_lives(squad); }));
  EXPECT_TRUE(place.exists(".squad/servers/server.sock"));
  EXPECT_TRUE(refused_with(os::connect_to_server(squad), Code::server_unreachable));
  EXPECT_EQ(server_liveness(squad, *files, process, ready.value("session", "")), os::Liveness::dead);
  Child next = start();
  ASSERT_TRUE(line_of(next).contains("ready"));
  EXPECT_TRUE(answers());
}

TEST_F(Served, ContentOfManyFramesArrivesByteForByte) {
  Child server = start();
  ASSERT_TRUE(line_of(server).contains("ready"));
  os::Connection connection = connect();
  const Json lease = acquire(connection, "large.bin");
  std::string bytes(9'000'001, '\0');
  std::mt19937 random(7);
  for (char& byte : bytes) byte = static_cast<char>(random());
  TextContent content(bytes);
  const auto answer = ask(connection, "write", keys(lease, "large.bin"), &content);
  ASSERT_TRUE(granted(answer));
  EXPECT_EQ(content.used(), bytes.size());
  EXPECT_NE(dump_ascii(*answer).find(sha256_hex(bytes)), std::string::npos);
  EXPECT_TRUE(granted(ask(connection, "leases")));
}

TEST_F(Served, AnEarlyRefusalArrivesWhileContentIsStillSentAndTheConnectionGoesOn) {
  Child server = start();
  ASSERT_TRUE(line_of(server).contains("ready"));
  os::Connection connection = connect();
  Json lease = acquire(connection, "a.txt");
  lease["generation"] = "999";
  for (int round = 0; round < 3; ++round) {
    TextContent content(std::string(30'000'000, 'x'));
    EXPECT_TRUE(refused_with(ask(connection, "write", keys(lease, "a.txt"), &content), Code::stale_lease_generation));
    EXPECT_TRUE(granted(ask(connection, "leases")));
  }
}

TEST_F(Served, AWriterThatDiesOrFailsHalfwayChangesNothing) {
  Child server = start();
  ASSERT_TRUE(line_of(server).contains("ready"));
  os::Connection connection = connect();
  const Json lease = acquire(connection, "a.txt");
  TextContent unreadable(std::string(2'000'000, 'x'), 1'000'000);
  EXPECT_TRUE(refused_with(ask(connection, "write", keys(lease, "a.txt"), &unreadable), Code::content_unreadable));

  os::Connection dying = connect();
  ASSERT_TRUE(granted(send_document(dying, Json{{"verb", "write"}, {"arguments", keys(lease, "a.txt")}})));
  ASSERT_TRUE(granted(dying.send('C', "half")));
  dying.shut_down();
  os::Connection confused = connect();
  ASSERT_TRUE(granted(send_document(confused, Json{{"verb", "write"}, {"arguments", keys(lease, "a.txt")}})));
  ASSERT_TRUE(granted(confused.send('J', "{}")));
  EXPECT_TRUE(answers());
  server.terminate();
  EXPECT_EQ(server.wait(), kEndedInOrder);
  EXPECT_FALSE(place.exists("a.txt"));
}

TEST_F(Served, GarbageSilenceAndHalfFramesEndTheirConnectionOnly) {
  Child server = start();
  ASSERT_TRUE(line_of(server).contains("ready"));
  const std::vector<std::string> garbage = {std::string("GET / HTTP/1.1\r\n\r\n"),
                                            std::string("\xFF\xFF\xFF\xFFJ"),
                                            std::string("\x02\0\0\0J[]", 7),
                                            std::string("\x04\0\0\0Jnull", 9),
                                            std::string("\x03\0\0\0J{]}", 8),
                                            std::string("\0\0\0\0P", 5),
                                            std::string("\0\0\0\0J", 5),
                                            std::string("\x0e\0\0\0J{\"verb\":\"nix\"}", 19),
                                            std::string("\x16\0\0\0J{\"verb\":7,\"a\":[[[[]]]]}", 27),
                                            std::string("\x09\0\0\0J{\"ver", 11)};
  std::vector<os::Connection> silent;
  for (const std::string& bytes : garbage) {
    os::Connection connection = connect();
    ASSERT_EQ(::send(connection.socket().fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    silent.push_back(std::move(connection));
  }
  std::mt19937 random(std::random_device{}());
  for (int round = 0; round < 50; ++round) {
    os::Connection connection = connect();
    std::string bytes(random() % 300, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    if (bytes.size() > 5 && round % 2 == 0) bytes.replace(0, 5, std::string("\x20\0\0\0J", 5));
    EXPECT_GE(::send(connection.socket().fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL), 0);
  }
  EXPECT_TRUE(answers());
  os::Connection connection = connect();
  EXPECT_TRUE(refused_with(ask(connection, "no_such_verb"), Code::request_malformed));
  EXPECT_TRUE(granted(ask(connection, "leases")));
  server.terminate();  // with connections that hang in the middle of a frame
  EXPECT_EQ(server.wait(10'000), kEndedInOrder);
}

TEST_F(Served, OneConnectionTooManyIsToldSo) {
  Child server = start({"1000", "2"});
  ASSERT_TRUE(line_of(server).contains("ready"));
  {
    os::Connection one = connect();
    os::Connection two = connect();
    ASSERT_TRUE(granted(ask(one, "leases")));
    ASSERT_TRUE(granted(ask(two, "leases")));
    os::Connection three = connect();
    EXPECT_TRUE(refused_with(ask(three, "leases"), Code::server_unreachable));
    EXPECT_TRUE(granted(ask(one, "leases")));
  }
  EXPECT_TRUE(support::eventually([&] { return answers(); }));
}

TEST_F(Served, ManyClientsAreServedAtOnce) {
  Child server = start();
  ASSERT_TRUE(line_of(server).contains("ready"));
  std::vector<std::thread> clients;
  for (int number = 0; number < 8; ++number) {
    clients.emplace_back([&] {
      for (int round = 0; round < 10; ++round) {
        os::Connection connection = connect();
        for (int request = 0; request < 3; ++request) EXPECT_TRUE(granted(ask(connection, "leases")));
      }
    });
  }
  for (std::thread& client : clients) client.join();
}

TEST_F(Served, LeavesByItselfAfterIdleTimeWithoutLeases) {
  Child server = start({"1000", "10", "200"});
  ASSERT_TRUE(line_of(server).contains("ready"));
  {
    os::Connection connection = connect();
    ASSERT_TRUE(granted(ask(connection, "leases")));
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
    EXPECT_TRUE(granted(ask(connection, "leases")));  // a connection keeps it
  }
  EXPECT_EQ(server.wait(10'000), kEndedInOrder);
}

TEST_F(Served, StaysWhileALeaseIsHeldHoweverIdle) {
  Child server = start({"1000", "10", "100"});
  ASSERT_TRUE(line_of(server).contains("ready"));
  {
    os::Connection connection = connect();
    acquire(connection, "a.txt");
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  EXPECT_TRUE(answers());
}

TEST_F(Served, AnIdleServerIsSmall) {
  Child server = start();
  ASSERT_TRUE(line_of(server).contains("ready"));
  {
    os::Connection connection = connect();
    const Json lease = acquire(connection, "a.txt");
    for (int round = 0; round < 3; ++round) {
      TextContent content(std::string(5'000'000, static_cast<char>('a' + round)));
      EXPECT_TRUE(granted(ask(connection, "write", keys(lease, "a.txt"), &content)));
    }
  }
  std::ifstream status("/proc/" + std::to_string(server.pid()) + "/status");
  std::string line;
  long resident_kib = 0;
  while (std::getline(status, line)) {
    if (line.starts_with("VmRSS:")) resident_kib = std::stol(line.substr(6));
  }
  EXPECT_GT(resident_kib, 0);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's own memory counts here";
#else
  EXPECT_LT(resident_kib, 20 * 1024);
#endif
}

}  // namespace
}  // namespace holdfast
