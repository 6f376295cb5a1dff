// How a bridge ends, and what it never waits for: a reader, a stderr, a server that stands still (field reports M20,
// M22, M26, M28).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include "base/json.h"
#include "support/mcp_client.h"

namespace holdfast {
namespace {

using support::Child;
using support::eventually;
using support::McpClient;
using support::SpawnOptions;
using support::Workbench;

// Far less than anything that a bridge could wait for, far more than it needs on a busy machine.
constexpr long kSoonMs = 8'000;

bool is_gone(pid_t pid) { return ::kill(pid, 0) != 0; }
std::size_t descriptors_of(pid_t pid) {
  std::error_code error;
  const auto all = std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd", error);
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}
std::string descriptor(pid_t pid, int number) {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/fd/" + std::to_string(number), error);
}
const std::string kWaitForever = R"({"jsonrpc":"2.0","id":"w","method":"tools/call","params":{"name":"lease_acquire",)"
                                 R"("arguments":{"scope":"a.txt","owner":"w","task":"t","wait_seconds":600}}})";

// A client that can be killed: it has a bridge, says its pid, and floods it where it is told to.
const support::RegisterRole kClient("mcp_client", [](const std::vector<std::string>& arguments) {
  SpawnOptions options;
  options.folder = arguments.at(0);
  Child bridge = support::spawn({HOLDFAST_PROGRAM, "mcp"}, options);
  bridge.write(
      R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}})"
      "\n");
  bridge.read_line();
  support::say(std::to_string(bridge.pid()));
  if (arguments.at(1) == "waits") bridge.write(kWaitForever + "\n");
  const std::string content(7U << 20U, 'x');
  for (int number = 0; arguments.at(1) == "floods"; ++number) {
    bridge.write(R"({"jsonrpc":"2.0","id":)" + std::to_string(number) +
                 R"(,"method":"tools/call","params":{"name":"file_write","arguments":{"scope":"a.txt","owner":"o",)"
                 R"("task":"t","generation":"1","started_at":"s","content":")" +
                 content + "\"}}}\n");
    support::say("sent");
  }
  support::hear();
  return 0;
});

class Ending : public testing::Test {
 protected:
  Ending() {
    bench_.put("a.txt", "old");
    bench_.serve();
  }
  Workbench bench_;
};

TEST_F(Ending, M22OfInputEndsAnIdleBridgeAndLeavesItsLeases) {
  McpClient client(bench_);
  client.lease("a.txt");
  const long took = client.end();
  EXPECT_TRUE(took >= 0 && took < kSoonMs) << took;
  EXPECT_EQ(bench_.run({"leases"}).at("leases").size(), 1U);
}

TEST_F(Ending, M22OfInputEndsABridgeThatNobodySpokeTo) {
  McpClient client(bench_, "");
  const long took = client.end();
  EXPECT_TRUE(took >= 0 && took < kSoonMs) << took;
}

TEST_F(Ending, M22OfInputWithdrawsAnAcquireThatWaits) {
  McpClient holder(bench_);
  const Json keys = holder.lease("a.txt", "bob");
  McpClient client(bench_);
  client.send_line(kWaitForever);
  ASSERT_TRUE(client.answers());
  const long took = client.end();
  EXPECT_TRUE(took >= 0 && took < kSoonMs) << took;
  ASSERT_EQ(holder.call("lease_release", keys).code(), "");
  EXPECT_EQ(holder.call("lease_list").document["total"], 0) << "nobody waits any more";
}

TEST_F(Ending, M22AClientThatIsKilledTakesItsBridgeAlong) {
  McpClient holder(bench_);
  holder.lease("a.txt", "bob");
  for (const char* how : {"rests", "waits"}) {
    Child client = support::spawn_as("mcp_client", {bench_.root(), how});
    const pid_t bridge = std::stoi(client.read_line());
    ASSERT_FALSE(is_gone(bridge));
    client.kill();
    client.wait();
    EXPECT_TRUE(eventually([&] { return is_gone(bridge); }, kSoonMs)) << how;
  }
}

// The thread that reads lines waits for room, and would never see the end of input.
TEST_F(Ending, M22AKilledClientTakesItsBridgeAlongThoughTheServerStandsStill) {
  bench_.server().stop();
  Child client = support::spawn_as("mcp_client", {bench_.root(), "floods"});
  const pid_t bridge = std::stoi(client.read_line());
  while (!client.read_line(2'000).empty()) {}  // until no more is taken
  client.kill();
  client.wait();
  EXPECT_TRUE(eventually([&] { return is_gone(bridge); }, kSoonMs));
  ::kill(bridge, SIGKILL);
  bench_.server().cont();
}

TEST_F(Ending, M22OfInputEndsABridgeWhoseAnswersNobodyReads) {
  McpClient client(bench_);
  for (int number = 0; number < 500; ++number) client.start("tools/list");  // many times what a pipe holds
  const long took = client.end();
  EXPECT_TRUE(took >= 0 && took < kSoonMs) << took;
}

TEST_F(Ending, M22ManyCyclesLeaveNothingBehindInTheServer) {
  { McpClient(bench_).answers(); }
  const pid_t server = bench_.server().pid();
  const std::size_t before = descriptors_of(server);
  for (int round = 0; round < 40; ++round) {
    McpClient client(bench_);
    EXPECT_EQ(client.call("lease_list").code(), "");
    EXPECT_GE(client.end(), 0);
  }
  EXPECT_TRUE(eventually([&] { return descriptors_of(server) <= before; })) << before << descriptors_of(server);
}

// M28: what was answered arrives whole though its reader is slow (1 KB/s) and the input has ended; through a pipe, and
// through a socket, which is what Node.js gives to its children.
class SlowReader : public Ending, public testing::WithParamInterface<bool> {};

TEST_P(SlowReader, M28GetsWholeRepliesAfterTheEndOfInput) {
  // What a reader takes out of a socket shows only once it has taken a whole piece of 32 KiB.
  const std::size_t a_second = GetParam() ? std::size_t{40} << 10U : 1024;
  constexpr int kInherited = 9;
  ASSERT_NE(::fcntl(kInherited, F_GETFD), 0) << "in use";
  int ends[2];
  ASSERT_EQ(GetParam() ? ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) : ::pipe2(ends, O_CLOEXEC), 0);
  const os::Handle reading(ends[0]);
  ASSERT_EQ(::dup2(ends[1], kInherited), kInherited);
  ::close(ends[1]);
  SpawnOptions options;
  options.folder = bench_.root();
  Child bridge = support::spawn({"sh", "-c", "exec \"$0\" mcp >&9 9>&-", HOLDFAST_PROGRAM}, options);
  ::close(kInherited);

  bench_.put("big.txt", std::string(3U << 20U, 'b'));
  constexpr int kPages = 4;
  bridge.write(
      R"({"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}})"
      "\n");
  for (int page = 0; page < kPages; ++page) {
    bridge.write(
        dump_ascii(
            {{"jsonrpc", "2.0"},
             {"id", page},
             {"method", "tools/call"},
             {"params", {{"name", "file_read"}, {"arguments", {{"scope", "big.txt"}, {"offset", page * 262'144}}}}}}) +
        "\n");
  }
  bridge.close_input();
  std::string text;
  std::string piece(1U << 20U, '\0');
  for (int second = 0;; ++second) {
    const bool is_slow = second < 4;
    if (is_slow) ::usleep(1'000'000);
    const ssize_t count = ::read(reading.fd(), piece.data(), is_slow ? a_second : piece.size());
    if (count <= 0) break;
    text.append(piece, 0, static_cast<std::size_t>(count));
  }
  int pages = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    ASSERT_NE(end, std::string::npos) << "the last line is cut";
    const auto answer = parse_json(text.substr(at, end - at));
    ASSERT_TRUE(answer.has_value());
    if ((*answer)["id"].is_number()) {
      ++pages;
      EXPECT_EQ((*answer)["result"]["structuredContent"]["content"].get_ref<const std::string&>().size(), 262'144U);
    }
    at = end + 1;
  }
  EXPECT_EQ(pages, kPages);
}

INSTANTIATE_TEST_SUITE_P(OverAPipeAndASocket, SlowReader, testing::Bool());

// A bridge whose stderr is a pipe that nobody reads, and that is full.
TEST_F(Ending, M26AStderrThatNobodyReadsStopsNothing) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ::fcntl(ends[1], F_SETFL, O_NONBLOCK);
  const std::string noise(4096, 'n');
  while (::write(ends[1], noise.data(), noise.size()) > 0) {}
  ::fcntl(ends[1], F_SETFL, 0);
  SpawnOptions options;
  options.folder = bench_.root();
  const std::string full = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(ends[1]);
  McpClient client(std::make_unique<Child>(
                       support::spawn({"sh", "-c", "exec \"$0\" mcp 2>\"$1\"", HOLDFAST_PROGRAM, full}, options)),
                   "2025-11-25");
  const Json keys = client.lease("a.txt");
  const std::string argument(64U << 10U, 'a');
  for (int number = 0; number < 200; ++number) {
    ASSERT_TRUE(client.call("lease_acquire", {{"scope", argument}, {"owner", "o"}, {"task", "t"}}).is_error());
  }
  client.send_line("no json");
  EXPECT_TRUE(client.receive().contains("error"));
  EXPECT_EQ(client.call("lease_heartbeat", keys).code(), "");
  EXPECT_GE(client.end(), 0);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(Ending, M20WhatIsPrintedToDescriptorOneNeverReachesTheClient) {
  McpClient client(bench_);
  const pid_t pid = client.bridge().pid();
  EXPECT_EQ(descriptor(pid, 1), descriptor(pid, 2));
  const os::Handle one(::open(("/proc/" + std::to_string(pid) + "/fd/1").c_str(), O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(one);
  EXPECT_EQ(::write(one.fd(), "\n", 1), 1);
  EXPECT_TRUE(client.answers()) << "receive() fails on a line that is no JSON-RPC";
  EXPECT_TRUE(client.heard().empty());
}

// The doctor's attackers and the server are children of the bridge.
TEST(Bridge, M20ItsChildrenHaveNoHandOnItsStdout) {
  Workbench bench;
  bench.put("a.txt", "old");
  McpClient client(bench);
  const Json keys = client.lease("a.txt");
  const std::string own = descriptor(client.bridge().pid(), 3);
  pid_t server = 0;
  for (const auto& entry : std::filesystem::directory_iterator(bench.at(".squad/servers"))) {
    if (entry.path().extension() == ".json") server = std::stoi(entry.path().stem());
  }
  ASSERT_GT(server, 0);
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(server) + "/fd")) {
    std::error_code error;
    const auto leads_to = std::filesystem::read_symlink(entry.path(), error);
    EXPECT_NE(leads_to, descriptor(client.bridge().pid(), 0)) << "the client's end of input would not be one";
    EXPECT_FALSE(leads_to.string().starts_with("pipe:") && leads_to == own) << entry.path();
  }
  EXPECT_EQ(client.call("doctor").code(), "");
  EXPECT_TRUE(client.heard().empty());
  client.call("lease_release", keys);
  bench.run({"stop"});
}

TEST(Bridge, M20AMistakeOnItsCommandLineLeavesStdoutClean) {
  Workbench bench;
  for (const support::Words& words : {support::Words{"mcp", "--no-such"}, {"mcp", "-vvv"}, {"mcp", "extra"}}) {
    SpawnOptions options;
    options.folder = bench.root();
    Child child = support::spawn(support::operator+(support::Words{HOLDFAST_PROGRAM}, words), options);
    child.close_input();
    EXPECT_EQ(child.read_all(), "") << words[1];
    EXPECT_EQ(child.wait(), 2) << words[1];
  }
}

TEST(Bridge, M20WithoutAWorkspaceEveryLineIsStillJsonRpc) {
  Workbench bench(false);
  McpClient client(bench);
  EXPECT_EQ(client.call("lease_list").code(), "workspace_not_found");
  EXPECT_TRUE(bench.run({"init"}).ok());
  bench.put("a.txt", "old");
  EXPECT_EQ(client.call("file_read", {{"scope", "a.txt"}}).code(), "") << "made while the bridge runs";
  bench.run({"stop"});
}

}  // namespace
}  // namespace holdfast
