// `serve --replace`: a new image of the server takes the old one's place (field report B129; the first seed, section
// 7).
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "base/json.h"
#include "os/descriptor_channel.h"
#include "support/handoff_ground.h"

namespace holdfast {
namespace {

using support::Answer;
using support::Lease;
using support::Words;
using support::operator+;

class Handoff : public testing::Test, public support::HandoffGround {
 protected:
  Handoff() {
    bench.put("a.txt", "old a");
    bench.put("b.txt", "old b");
  }
  static std::int64_t pid_of(const Answer& ready) { return ready.document.value("pid", std::int64_t{0}); }
  // A connection as a bridge keeps it.
  static Result<Json> ask(os::Connection& connection, const std::string& verb, Json arguments = Json::object()) {
    arguments["cwd"] = "/";
    return call_server(connection, Json{{"verb", verb}, {"arguments", std::move(arguments)}});
  }
};

TEST_F(Handoff, TheNewImageServesWithEveryLeaseAndTheOldOneIsGone) {
  bench.serve();
  const Lease a = bench.acquire("a.txt");
  const Lease b = bench.acquire("b.txt", "bob");
  const Lease absent = bench.acquire("not/yet.txt", "carol");
  const Lease session = bench.acquire("session://desk/1", "dora");
  bench.put("folder/inner.txt", "inner");
  const Lease folder = bench.acquire("folder", "emil");
  const Json before = leases();
  const Answer ready = replace();
  ASSERT_TRUE(ready.ok()) << ready.text;
  EXPECT_EQ(ready.at("ready"), true);
  EXPECT_EQ(ready.at("replaced"), bench.server().pid());
  EXPECT_NE(pid_of(ready), bench.server().pid());
  EXPECT_EQ(bench.wait_for_server(), 0);
  EXPECT_EQ(server_pids(), std::vector<std::int64_t>{pid_of(ready)});
  const Json after = leases();
  ASSERT_EQ(after.size(), before.size());
  for (std::size_t at = 0; at < after.size(); ++at) {
    for (const char* key : {"generation", "started_at", "owner", "task_id", "expires_at", "os_lock", "identity"}) {
      EXPECT_EQ(after[at][key], before[at][key]) << key;
    }
    EXPECT_EQ(after[at]["holder"]["pid"], pid_of(ready));
    EXPECT_EQ(after[at]["liveness"]["holder"], "alive");
  }
  EXPECT_FALSE(lets_hostile_bytes_in("a.txt"));
  EXPECT_FALSE(lets_hostile_bytes_in("b.txt"));
  EXPECT_TRUE(bench.heartbeat(session).ok());
  EXPECT_TRUE(bench.write(a, "new a").ok());
  EXPECT_EQ(bench.get("a.txt"), "new a");
  for (const Lease& lease : {a, b, absent, session, folder}) {
    const Answer released = bench.release(lease);
    EXPECT_TRUE(released.ok()) << released.text;
    EXPECT_EQ(released.document.value("content_mismatch", Json(false)), Json(false)) << released.text;
  }
  EXPECT_TRUE(bench.evidence_verifies());
  EXPECT_NE(bench.log().find("holder_transferred"), std::string::npos);
  EXPECT_TRUE(bench.run({"stop"}).ok());
  EXPECT_FALSE(std::filesystem::exists(bench.at(".squad/servers/server.sock")));
}

TEST_F(Handoff, FollowsAHandoffAsOftenAsOneLikes) {
  bench.serve();
  const Lease lease = bench.acquire("a.txt");
  std::int64_t last = bench.server().pid();
  for (int round = 0; round < 5; ++round) {
    const Answer ready = replace();
    ASSERT_TRUE(ready.ok()) << ready.text;
    EXPECT_EQ(ready.at("replaced"), last);
    last = pid_of(ready);
    EXPECT_FALSE(lets_hostile_bytes_in("a.txt"));
  }
  EXPECT_TRUE(bench.write(lease, "new").ok());
  EXPECT_TRUE(support::eventually([&] { return server_pids() == std::vector<std::int64_t>{last}; }));
}

TEST_F(Handoff, WhereNobodyServesTheCommandServesItself) {
  const auto server = bench.start({"serve", "--replace"});
  const auto ready = parse_json(server->read_line());
  ASSERT_TRUE(ready);
  EXPECT_EQ(ready->value("pid", std::int64_t{0}), server->pid());
  EXPECT_FALSE(ready->contains("replaced"));
  EXPECT_TRUE(bench.run({"stop"}).ok());
  EXPECT_EQ(server->wait(), 0);
}

TEST_F(Handoff, ADiedServerIsNotReplacedButFollowed) {
  bench.serve();
  bench.acquire("a.txt");
  bench.kill_server();
  const auto server = bench.start({"serve", "--replace"});
  EXPECT_FALSE(parse_json(server->read_line()).value_or(Json::object()).contains("replaced"));
  EXPECT_TRUE(bench.run({"acquire", "a.txt", "--owner", "alice", "--task", "task-1"}).ok());
  EXPECT_TRUE(bench.run({"stop"}).ok());
}

TEST_F(Handoff, AConnectionThatIsOpenGoesOnWithoutNoticing) {
  bench.serve();
  os::Connection bridge = connect();
  ASSERT_TRUE(ask(bridge, "leases").ok());
  os::Connection silent = connect();
  ASSERT_TRUE(replace().ok());
  ASSERT_TRUE(ask(bridge, "leases").ok());
  const auto granted =
      ask(bridge, "acquire", Json{{"scopes", {"file://project:/a.txt"}}, {"owner", "o"}, {"task", "t"}});
  EXPECT_TRUE(granted.ok());
  ASSERT_TRUE(replace().ok());
  EXPECT_TRUE(ask(bridge, "leases").ok());
  EXPECT_TRUE(ask(silent, "leases").ok());
}

TEST_F(Handoff, AHalfRequestIsToldThatNothingOfItWasDone) {
  bench.serve();
  os::Connection half = connect();
  ASSERT_EQ(::write(half.socket().fd(), "\x20\0\0\0J{\"ve", 9), 9);
  ASSERT_TRUE(support::eventually([&] { return ask(*std::make_unique<os::Connection>(connect()), "leases").ok(); }));
  ASSERT_TRUE(replace().ok());
  EXPECT_TRUE(half.wait_until_gone(10'000));
  EXPECT_TRUE(bench.run({"leases"}).ok());
}

TEST_F(Handoff, AWaiterKeepsItsPlaceInTheQueue) {
  bench.serve();
  const Lease held = bench.acquire("a.txt");
  const auto wait_for = [&](const std::string& owner) {
    auto waiter = bench.start({"acquire", "a.txt", "--owner", owner, "--task", "t", "--wait", "60"});
    return waiter;
  };
  // The second comes when the first stands in the queue: a third party that overlaps says so.
  const auto first = wait_for("first");
  const auto in_queue = [&](int places) {
    os::Connection connection = connect();
    int place = 0;
    std::thread looking([&] {
      (void)call_server(connection,
                        Json{{"verb", "acquire"},
                             {"arguments",
                              {{"scopes", {"file://project:/a.txt"}},
                               {"owner", "looker"},
                               {"task", "t"},
                               {"wait_seconds", 1},
                               {"cwd", "/"}}}},
                        nullptr, [&](const Json& said) {
                          if (place == 0) place = said.value("waiting", Json::object()).value("place", 0);
                        });
    });
    looking.join();
    return place == places;
  };
  ASSERT_TRUE(support::eventually([&] { return in_queue(2); }));
  const auto second = wait_for("second");
  ASSERT_TRUE(support::eventually([&] { return in_queue(3); }));
  ASSERT_TRUE(replace().ok());
  ASSERT_TRUE(replace().ok());
  ASSERT_TRUE(bench.release(held).ok());
  const Answer granted = support::Workbench::answer_of(*first);
  ASSERT_TRUE(granted.ok()) << granted.text;
  EXPECT_EQ(leases().at(0).at("owner"), "first");
  ASSERT_TRUE(bench.release(Lease{"file://project:/a.txt", granted.at("leases").at(0)}).ok());
  EXPECT_TRUE(support::Workbench::answer_of(*second).ok());
}

TEST_F(Handoff, HoldGoesOnAndNoticesOnlyTheDeathOfTheServerThatServesNow) {
  bench.serve();
  const auto hold = bench.start({"hold", "a.txt", "--owner", "o", "--task", "t", "--", "sh", "-c",
                                 "while [ ! -e go ]; do sleep 0.05; done; cat \"$HOLDFAST_LEASE_FILE\""});
  ASSERT_TRUE(support::eventually([&] { return leases().size() == 1 && !leases()[0]["command"].is_null(); }));
  const Answer ready = replace();
  ASSERT_TRUE(ready.ok()) << ready.text;
  const Json generation = leases().at(0).at("generation");
  EXPECT_TRUE(all_held_by(pid_of(ready)));
  // The successor dies: hold starts another, and its lease is granted again, as it would have been without a handoff.
  ::kill(static_cast<pid_t>(pid_of(ready)), SIGKILL);
  EXPECT_TRUE(support::eventually([&] {
    const Json now = leases();
    return now.size() == 1 && now[0]["generation"] != generation && now[0]["liveness"]["holder"] == "alive";
  }));
  bench.put("go", "");
  EXPECT_EQ(hold->wait(30'000), 0);
}

TEST_F(Handoff, AFaultThatTheOldImageSawIsKnownToTheNewOne) {
  bench.serve();
  const Lease lease = bench.acquire("a.txt");
  bench.put("foreign", "foreign");
  std::filesystem::rename(bench.at("foreign"), bench.at("a.txt"));
  ASSERT_TRUE(support::eventually([&] { return leases().at(0).at("os_lock").at("enforced") == false; }));
  const Json before = leases().at(0).at("os_lock");
  ASSERT_TRUE(replace().ok());
  EXPECT_EQ(leases().at(0).at("os_lock"), before);
  EXPECT_EQ(bench.write(lease, "new").code(), "reconciliation_required");
  EXPECT_EQ(bench.run({"reconcile", "list"}).at("reconcile").size(), 1U);
}

TEST_F(Handoff, ARequestThatRunsIsFinishedAndOneThatRunsTooLongIsNotBrokenOff) {
  bench.serve();
  const Lease lease = bench.acquire("a.txt");
  const auto writer = bench.start(Words{"write", "a.txt"} + lease.keys() + Words{"--from", "-"});
  writer->write("first half, ");
  // It runs: nobody else may write meanwhile, and the server waits for the rest.
  ASSERT_TRUE(support::eventually([&] {
    for (const auto& entry :
         std::filesystem::directory_iterator("/proc/" + std::to_string(bench.server().pid()) + "/fd"))
      if (std::filesystem::read_symlink(entry.path()).string().find("/#") != std::string::npos) return true;
    return false;
  }));
  const Answer refused = replace();
  EXPECT_EQ(refused.code(), "handoff_failed") << refused.text;
  writer->write("second half");
  writer->close_input();
  const Answer written = support::Workbench::answer_of(*writer);
  EXPECT_TRUE(written.ok()) << written.text;
  EXPECT_EQ(bench.get("a.txt"), "first half, second half");
  EXPECT_TRUE(all_held_by(bench.server().pid()));
  EXPECT_TRUE(replace().ok());
}

TEST_F(Handoff, ASecondOneAtOnceIsRefused) {
  bench.serve({{"HOLDFAST_FAULT", "handoff_before_secret:sleep=3000"}});
  const auto one = bench.start({"serve", "--replace"});
  const auto other = bench.start({"serve", "--replace"});
  const Answer first = support::Workbench::answer_of(*one);
  const Answer second = support::Workbench::answer_of(*other);
  // Which of them came first nobody can say.
  EXPECT_TRUE(first.ok() != second.ok()) << first.text << second.text;
  EXPECT_EQ((first.ok() ? second : first).code(), "handoff_in_progress") << first.text << second.text;
}

TEST_F(Handoff, AnEndThatIsAskedForMeanwhileEndsTheImageThatServes) {
  bench.serve({{"HOLDFAST_FAULT", "handoff_before_transfer:sleep=1000"}});
  const auto first = bench.start({"serve", "--replace"});
  ASSERT_TRUE(support::eventually([&] { return server_pids().size() == 2; }));
  bench.server().terminate();
  (void)support::Workbench::answer_of(*first);
  EXPECT_EQ(bench.wait_for_server(), 0);
  EXPECT_TRUE(support::eventually([&] { return server_pids().empty() && !is_served(); }));
}

TEST_F(Handoff, AdoptionByHandIsNotExpected) {
  EXPECT_EQ(bench.run({"adopt", "3"}).code(), "adoption_not_expected");
  EXPECT_EQ(bench.run({"adopt", "0"}).code(), "adoption_not_expected");
  EXPECT_EQ(bench.run({"adopt", "x"}).status, 2);
  bench.serve();
  EXPECT_EQ(bench.run({"adopt", "3"}).code(), "adoption_not_expected");
  EXPECT_TRUE(bench.run({"leases"}).ok());
}

// --- images that are none of ours: this very program asks, so this very program is started

const support::RegisterRole kAsks("ask_for_handoff", [](const std::vector<std::string>& arguments) {
  if (arguments.size() > 1) ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  const auto answer = ask_for_handoff(os::open_workspace(arguments.at(0)).value());
  support::say(dump_ascii(answer.ok() ? *answer : answer.refusal().to_json()));
  return 0;
});

os::DescriptorChannel channel_of(const std::vector<std::string>& arguments) {
  return os::DescriptorChannel::inherited(std::stoi(arguments.at(1))).value();
}
Json adopt_with(const std::string& secret, const std::string& protocol = "holdfast.handoff.1") {
  return Json{{"jsonrpc", "2.0"},
              {"id", 1},
              {"method", "squad/lease_adopt"},
              {"params", {{"secret", secret}, {"protocol", protocol}, {"build", "0"}, {"pid", ::getpid()}}}};
}
const support::RegisterRole kExits("image_exits", [](const std::vector<std::string>&) { return 0; });
const support::RegisterRole kWrong("image_wrong_secret", [](const std::vector<std::string>& arguments) {
  auto channel = channel_of(arguments);
  (void)channel.receive(5'000);
  (void)channel.send(dump_ascii(adopt_with(std::string(64, 'a'))));
  ::pause();
  return 0;
});
const support::RegisterRole kFirst("image_asks_first", [](const std::vector<std::string>& arguments) {
  auto channel = channel_of(arguments);
  (void)channel.receive(5'000);
  (void)channel.send(R"({"jsonrpc":"2.0","id":1,"method":"handoff/open","params":{}})");
  ::pause();
  return 0;
});
const support::RegisterRole kGarbage("image_talks_garbage", [](const std::vector<std::string>& arguments) {
  auto channel = channel_of(arguments);
  (void)channel.send("no request at all");
  ::pause();
  return 0;
});
const support::RegisterRole kProtocol("image_other_protocol", [](const std::vector<std::string>& arguments) {
  auto channel = channel_of(arguments);
  const Json given = parse_json((*channel.receive(5'000))->text).value();
  (void)channel.send(dump_ascii(adopt_with(given.at("secret"), "holdfast.handoff.99")));
  ::pause();
  return 0;
});
const support::RegisterRole kHangs("image_hangs", [](const std::vector<std::string>&) {
  ::pause();
  return 0;
});
// Authenticates, and then answers nothing more.
const support::RegisterRole kStops("image_stops_after_authentication", [](const std::vector<std::string>& arguments) {
  auto channel = channel_of(arguments);
  const Json given = parse_json((*channel.receive(5'000))->text).value();
  (void)channel.send(dump_ascii(adopt_with(given.at("secret"))));
  (void)channel.receive(5'000);
  return 0;
});

struct Image {
  const char* role;
  const char* code;
};
void PrintTo(const Image& image, std::ostream* out) { *out << image.role; }

class ForeignImage : public Handoff, public testing::WithParamInterface<Image> {};

TEST_P(ForeignImage, IsRefusedAndTheOldImageServesOnWithEverything) {
  bench.serve({{"HOLDFAST_PLAYED_IMAGE", GetParam().role}});
  const Lease lease = bench.acquire("a.txt");
  const Json before = leases();
  support::Child asker = support::spawn_as("ask_for_handoff", {bench.root()});
  const auto refusal = parse_json(asker.read_line(60'000));
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->value("error", Json::object()).value("code", ""), GetParam().code) << *refusal;
  Json after = leases();
  EXPECT_EQ(after.at(0).at("holder"), before.at(0).at("holder"));
  EXPECT_TRUE(all_held_by(bench.server().pid()));
  EXPECT_FALSE(lets_hostile_bytes_in("a.txt"));
  EXPECT_TRUE(bench.write(lease, "new").ok());
  EXPECT_EQ(server_pids(), std::vector<std::int64_t>{bench.server().pid()});
  EXPECT_TRUE(replace().ok()) << "a good image is taken afterwards";
}

INSTANTIATE_TEST_SUITE_P(OfEveryKind, ForeignImage,
                         testing::Values(Image{"image_exits", "handoff_failed"},
                                         Image{"image_wrong_secret", "adoption_secret_invalid"},
                                         Image{"image_asks_first", "adoption_secret_invalid"},
                                         Image{"image_talks_garbage", "handoff_failed"},
                                         Image{"image_other_protocol", "handoff_refused"},
                                         Image{"image_stops_after_authentication", "handoff_failed"},
                                         Image{"image_hangs", "handoff_failed"}));

TEST_F(Handoff, AConfinedProgramCannotHaveItsOwnImageStarted) {
  bench.serve({{"HOLDFAST_PLAYED_IMAGE", "image_exits"}});
  support::Child asker = support::spawn_as("ask_for_handoff", {bench.root(), "confined"});
  const auto refusal = parse_json(asker.read_line());
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->value("error", Json::object()).value("code", ""), "handoff_refused") << *refusal;
  EXPECT_TRUE(bench.run({"leases"}).ok());
}

}  // namespace
}  // namespace holdfast
