// Progress notifications: only where asked for, and only growing.
#include "surfaces/mcp/progress.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/json.h"

namespace holdfast::mcp {
namespace {

struct Told {
  std::vector<Json> messages;
  Progress progress;
  explicit Told(const Json& params) : progress(params, [this](const Json& message) { messages.push_back(message); }) {}
};

TEST(Progress, IsSilentWithoutAToken) {
  for (const Json& meta :
       {Json(), Json(7), Json::object(), Json{{"progressToken", nullptr}}, Json{{"progressToken", 1.5}},
        Json{{"progressToken", Json::array()}}, Json{{"progressToken", std::string(100'000, 't')}}}) {
    Told told(Json{{"_meta", meta}});
    EXPECT_FALSE(told.progress.report()) << meta.dump().substr(0, 100);
  }
}

TEST(Progress, OnlyGrowsWhateverIsReported) {
  Told told(Json{{"_meta", {{"progressToken", "t"}}}});
  const ProgressReport report = told.progress.report();
  ASSERT_TRUE(report);
  const Json waiting = {{"place", 1}, {"holders", {{{"owner", "bob"}, {"task_id", "build"}, {"until", "noon"}}}}};
  for (const int done : {10, 10, 5, 11, 11}) report(Json{{"done", done}});
  report(Json{{"waiting", waiting}});
  report(Json{{"waiting", waiting}});
  report(Json{{"done", 12}});
  report(Json{{"done", 0}});
  std::vector<std::uint64_t> values;
  for (const Json& message : told.messages) values.push_back(message["params"]["progress"]);
  EXPECT_EQ(values, (std::vector<std::uint64_t>{10, 11, 12, 13}));
  EXPECT_EQ(told.messages[2]["params"]["message"], "waits for bob (task build) until noon; place 1");
}

TEST(Progress, CarriesTheTokenAsItWasSent) {
  for (const Json& token : {Json("5"), Json(5), Json(9007199254740993), Json("")}) {
    Told told(Json{{"_meta", {{"progressToken", token}}}});
    told.progress.report()(Json{{"done", 1}});
    ASSERT_EQ(told.messages.size(), 1U);
    EXPECT_EQ(told.messages[0]["params"]["progressToken"], token);
    EXPECT_EQ(told.messages[0]["method"], "notifications/progress");
    EXPECT_FALSE(told.messages[0].contains("id"));
  }
}

}  // namespace
}  // namespace holdfast::mcp
