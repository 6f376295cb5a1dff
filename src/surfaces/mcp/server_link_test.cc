// Asking the server: what is asked again, and what a cancelled request leaves behind (field report M25). The server is
// a stand-in that answers as each test says.
#include "surfaces/mcp/server_link.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>

#include "server/exchange.h"
#include "server/server_lock.h"
#include "support/refused_with.h"
#include "support/temporary_folder.h"

namespace holdfast::mcp {
namespace {

using support::granted;
using support::refused_with;

class Link : public testing::Test {
 protected:
  using Serve = std::function<void(os::Connection&, const Json& request)>;

  Link() : own_(new ServerLink([this] { return Result<std::string>(folder_.path()); }, "/")), link_(*own_) {
    EXPECT_TRUE(os::make_squad(folder_.path()).ok());
    folder_.make_folder(".squad/servers");
  }
  ~Link() override {
    own_.reset();  // with the connections that it keeps
    if (listener_) listener_->close();
    if (server_.joinable()) server_.join();
  }
  // Each connection is served until its peer ends it.
  void serve(Serve serve) {
    auto workspace = os::open_workspace(folder_.path());
    auto listener = os::Listener::open(workspace->squad);
    ASSERT_TRUE(granted(listener));
    lock_.emplace(open_server_lock(workspace->squad).value());  // as a server that lives
    ASSERT_TRUE(lock_->try_lock(os::LockMode::exclusive).value());
    listener_ = std::move(listener).value();
    server_ = std::thread([this, serve = std::move(serve)] {
      for (;;) {
        auto connection = listener_->accept(-1);
        if (!connection.ok() || !connection->has_value()) return;
        for (;;) {
          auto request = receive_document(**connection);
          if (!request.ok() || !request->has_value()) break;
          requests_.push_back(**request);
          ++count_;
          if (closes_after_request_ > 0) {
            --closes_after_request_;
            break;
          }
          serve(**connection, **request);
        }
      }
    });
  }
  static void answer(os::Connection& connection, const Json& document) {
    static_cast<void>(send_document(connection, document));
  }
  Json granted_lease() const {
    return Json{{"leases",
                 {{{"namespace", "file"},
                   {"resource_id", "project:/a"},
                   {"owner", "o"},
                   {"task_id", "t"},
                   {"generation", "7"},
                   {"started_at", "s"}}}},
                {"granted", "new"},
                {"granted_scopes", {"file://project:/a"}}};
  }

  support::TemporaryFolder folder_;
  std::unique_ptr<ServerLink> own_;
  ServerLink& link_;
  Cancellation cancellation_;
  std::optional<os::LockFile> lock_;
  std::unique_ptr<os::Listener> listener_;
  std::thread server_;
  std::atomic<int> closes_after_request_ = 0;
  std::atomic<int> count_ = 0;
  std::vector<Json> requests_;  // of the server's thread; read once it has answered
};

TEST_F(Link, SaysThatItIsABridgeAndWhereItStands) {
  serve([](os::Connection& connection, const Json&) { answer(connection, Json{{"leases", Json::array()}}); });
  ASSERT_TRUE(granted(link_.ask("leases", Json::object(), Repeat::safe, cancellation_)));
  EXPECT_EQ(requests_.at(0)["client"]["bridge"], true);
  EXPECT_EQ(requests_.at(0)["arguments"]["cwd"], "/");
}

TEST_F(Link, RefusesWithoutAWorkspaceAndFindsOneThatIsMadeLater) {
  bool is_made = false;
  own_ = std::make_unique<ServerLink>(
      [&]() -> Result<std::string> {
        if (!is_made) return Refusal(Code::workspace_not_found, "none");
        return folder_.path();
      },
      "/");
  serve([](os::Connection& connection, const Json&) { answer(connection, Json::object()); });
  EXPECT_TRUE(refused_with(own_->ask("leases", {}, Repeat::safe, cancellation_), Code::workspace_not_found));
  is_made = true;
  EXPECT_TRUE(granted(own_->ask("leases", Json::object(), Repeat::safe, cancellation_)));
}

TEST_F(Link, AsksAgainOnlyWhatMayBeAskedTwice) {
  serve([](os::Connection& connection, const Json&) { answer(connection, Json::object()); });
  closes_after_request_ = 1;
  EXPECT_TRUE(granted(link_.ask("heartbeat", Json::object(), Repeat::safe, cancellation_)));
  EXPECT_EQ(count_, 2);
  closes_after_request_ = 1;
  const auto lost = link_.ask("release", Json::object(), Repeat::only_if_not_begun, cancellation_);
  ASSERT_TRUE(refused_with(lost, Code::server_answer_lost));
  EXPECT_EQ(lost.refusal().effect(), Effect::unknown);
  EXPECT_EQ(count_, 3);
}

TEST_F(Link, KeepsAConnectionForTheNextRequest) {
  serve([](os::Connection& connection, const Json&) { answer(connection, Json::object()); });
  for (int round = 0; round < 3; ++round) {
    Cancellation cancellation;
    ASSERT_TRUE(granted(link_.ask("leases", Json::object(), Repeat::safe, cancellation)));
  }
  EXPECT_EQ(count_, 3);
}

TEST_F(Link, M25CancelledBeforeItBeganAsksNobody) {
  serve([](os::Connection& connection, const Json&) { answer(connection, Json::object()); });
  cancellation_.cancel();
  EXPECT_FALSE(link_.ask("acquire", Json::object(), Repeat::safe, cancellation_).ok());
  EXPECT_EQ(count_, 0);
}

TEST_F(Link, M25CancelWakesARequestThatNobodyAnswers) {
  serve([](os::Connection& connection, const Json&) { connection.wait_until_gone(20'000); });
  std::thread canceller([&] {
    while (count_ == 0) std::this_thread::yield();
    cancellation_.cancel();
  });
  EXPECT_FALSE(link_.ask("acquire", Json::object(), Repeat::safe, cancellation_).ok());
  canceller.join();
  EXPECT_EQ(count_, 1) << "and it is not asked again";
}

// The answer was on its way when the request was cancelled: the client hears nothing, so the lease goes back.
TEST_F(Link, M25AGrantThatCrossedTheCancelIsGivenBack) {
  std::atomic<bool> sent = false;
  serve([&](os::Connection& connection, const Json& request) {
    if (request["verb"] == "acquire") static_cast<void>(connection.send('P', R"({"waiting":{"place":1}})"));
    answer(connection, request["verb"] == "acquire" ? granted_lease() : Json{{"content_mismatch", false}});
    sent = true;
  });
  const auto cancel_once_the_answer_waits = [&](const Json&) {
    while (!sent) std::this_thread::yield();
    cancellation_.cancel();
  };
  EXPECT_FALSE(
      link_.ask("acquire", Json::object(), Repeat::safe, cancellation_, nullptr, cancel_once_the_answer_waits).ok());
  ASSERT_EQ(count_, 2);
  EXPECT_EQ(requests_.at(1)["verb"], "release");
  EXPECT_EQ(requests_.at(1)["arguments"]["generation"], "7");
  EXPECT_EQ(requests_.at(1)["arguments"]["scope"], "file://project:/a");
}

TEST_F(Link, M25ALeaseThatWasHeldBeforeIsNotGivenBack) {
  Json answer = granted_lease();
  answer["granted"] = "existing";
  answer["granted_scopes"] = Json::array();
  link_.give_back(answer);
  EXPECT_EQ(count_, 0);
}

TEST_F(Link, M25OnceTheAnswerIsThereNothingIsCancelledAnyMore) {
  serve([&](os::Connection& connection, const Json&) { answer(connection, granted_lease()); });
  ASSERT_TRUE(granted(link_.ask("acquire", Json::object(), Repeat::safe, cancellation_)));
  cancellation_.cancel();
  EXPECT_FALSE(cancellation_.is_cancelled());
  EXPECT_EQ(count_, 1);
}

TEST_F(Link, ARefusalLeavesTheConnectionInUse) {
  serve([&](os::Connection& connection, const Json&) {
    answer(connection, Refusal(Code::stale_lease_generation, "stale").to_json());
  });
  for (int round = 0; round < 2; ++round) {
    Cancellation cancellation;
    EXPECT_TRUE(
        refused_with(link_.ask("heartbeat", Json::object(), Repeat::safe, cancellation), Code::stale_lease_generation));
  }
}

}  // namespace
}  // namespace holdfast::mcp
