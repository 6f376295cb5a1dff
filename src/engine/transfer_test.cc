#include "engine/engine.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "support/refused_with.h"
#include "support/temporary_folder.h"

namespace holdfast {
namespace {

using support::granted;
using support::refused_with;

class Transfer : public testing::Test {
 protected:
  Transfer() {
    EXPECT_TRUE(granted(Engine::initialise(folder_.path(), Json::object())));
    EngineOptions options;
    options.mode = EngineMode::server;
    options.session = "old";
    engine_ = std::move(Engine::open(folder_.path(), options)).value();
    for (const char* name : {"a", "b"}) {
      EXPECT_TRUE(
          granted(ask("acquire", Json{{"scopes", {name}}, {"owner", "o"}, {"task", "t"}, {"cwd", folder_.path()}})));
    }
  }
  Result<Json> ask(const std::string& verb, const Json& arguments) {
    return engine_->perform(Json{{"verb", verb}, {"arguments", arguments}}, Caller{.process = os::this_process()});
  }
  Json leases() { return ask("leases", Json::object())->at("leases"); }

  support::TemporaryFolder folder_;
  std::unique_ptr<Engine> engine_;
  os::ProcessIdentity successor_ = [] {
    os::ProcessIdentity identity = os::this_process();
    identity.pid = 1;
    return identity;
  }();
};

TEST_F(Transfer, MovesEveryHolderAndKeepsTheGenerations) {
  const Json before = leases();
  ASSERT_TRUE(granted(engine_->transfer_holder({"file://project:/a", "file://project:/b"}, successor_, "new")));
  const Json after = leases();
  for (std::size_t at = 0; at < 2; ++at) {
    EXPECT_EQ(after[at]["generation"], before[at]["generation"]);
    EXPECT_EQ(after[at]["started_at"], before[at]["started_at"]);
    EXPECT_EQ(after[at]["holder"]["session"], "new");
    EXPECT_EQ(after[at]["holder"]["pid"], 1);
  }
}

TEST_F(Transfer, MovesNoneWhereOneIsNotItsOwn) {
  EXPECT_TRUE(refused_with(engine_->transfer_holder({"file://project:/a", "file://project:/nobody"}, successor_, "new"),
                           Code::holder_not_current));
  for (const Json& lease : leases()) EXPECT_EQ(lease["holder"]["session"], "old");
  ASSERT_TRUE(granted(engine_->transfer_holder({"file://project:/a"}, successor_, "new")));
  EXPECT_TRUE(
      refused_with(engine_->transfer_holder({"file://project:/a"}, successor_, "newer"), Code::holder_not_current));
}

}  // namespace
}  // namespace holdfast
