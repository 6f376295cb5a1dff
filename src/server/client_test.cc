#include "server/client.h"

#include <gtest/gtest.h>

#include <thread>

#include "os/local_socket.h"
#include "server/exchange.h"
#include "support/refused_with.h"
#include "support/temporary_folder.h"
#include "support/text_content.h"

namespace holdfast {
namespace {

using support::granted;
using support::refused_with;
using support::TemporaryFolder;
using support::TextContent;

// A server that the test plays.
class PlayedServer : public testing::Test {
 protected:
  TemporaryFolder place;
  os::Handle squad = place.open();
  std::unique_ptr<os::Listener> listener = os::Listener::open(squad).value();
  os::Connection client = os::connect_to_server(squad).value();
  os::Connection server = *listener->accept(10'000).value();

  Result<Json> ask(const std::string& verb, ContentSource* content = nullptr, const ProgressReport& progress = {}) {
    return call_server(client, Json{{"verb", verb}, {"arguments", Json::object()}}, content, progress);
  }
};

TEST_F(PlayedServer, AnAnswerThatNeverComesIsAnUnknownEffectOfAChangeAndNoneOfALook) {
  for (const auto& [verb, effect] : {std::pair{"release", Effect::unknown}, std::pair{"leases", Effect::none}}) {
    os::Connection asking = os::connect_to_server(squad).value();
    os::Connection dying = *listener->accept(10'000).value();
    std::thread gone([&] {
      EXPECT_TRUE(receive_document(dying).value().has_value());
      dying.shut_down();
    });
    const auto answer = call_server(asking, Json{{"verb", verb}, {"arguments", Json::object()}});
    gone.join();
    EXPECT_TRUE(refused_with(answer, Code::server_answer_lost));
    EXPECT_EQ(answer.refusal().effect(), effect) << verb;
  }
}

TEST_F(PlayedServer, AServerThatDiesBeforeTheContentIsWholeHasChangedNothing) {
  std::thread gone([&] {
    EXPECT_TRUE(receive_document(server).value().has_value());
    EXPECT_TRUE(server.receive().value().has_value());
    { const os::Connection dropped = std::move(server); }
  });
  TextContent content(std::string(50'000'000, 'x'));
  const auto answer = ask("write", &content);
  gone.join();
  EXPECT_TRUE(refused_with(answer, Code::server_unreachable));
  EXPECT_EQ(answer.refusal().effect(), Effect::none);
}

TEST_F(PlayedServer, AnAnswerGivenBeforeTheServerClosedIsFoundInsteadOfABrokenPipe) {
  std::thread gone([&] {
    EXPECT_TRUE(receive_document(server).value().has_value());
    EXPECT_TRUE(granted(send_document(server, Refusal(Code::lease_expired, "over").to_json())));
    { const os::Connection dropped = std::move(server); }
  });
  TextContent content(std::string(50'000'000, 'x'));
  const auto answer = ask("write", &content);
  gone.join();
  EXPECT_TRUE(refused_with(answer, Code::lease_expired));
}

TEST_F(PlayedServer, ProgressIsPassedOnAndALongAnswerIsPutTogether) {
  const std::string text(3'000'000, 'y');
  std::thread answering([&] {
    EXPECT_TRUE(receive_document(server).value().has_value());
    for (const char* report : {"{\"done\":5}", "no json", "{\"done\":-1}", "[]"})
      EXPECT_TRUE(granted(server.send('P', report)));
    EXPECT_TRUE(granted(send_document(server, Json{{"text", text}})));
  });
  std::vector<Json> reports;
  const auto answer = ask("leases", nullptr, [&](const Json& report) { reports.push_back(report); });
  answering.join();
  ASSERT_TRUE(granted(answer));
  EXPECT_EQ(answer->at("text"), text);
  EXPECT_EQ(reports.at(0), Json({{"done", 5}}));
  EXPECT_EQ(reports.size(), 2U);  // what is no object of JSON is no report
}

TEST_F(PlayedServer, ARequestLongerThanAFrameArrivesWhole) {
  const Json request = {{"verb", "edit"}, {"arguments", {{"text", std::string(2'500'000, 'z')}}}};
  std::thread asking([&] { EXPECT_FALSE(call_server(client, request).ok()); });
  EXPECT_EQ(receive_document(server).value(), request);
  server.shut_down();
  asking.join();
}

}  // namespace
}  // namespace holdfast
