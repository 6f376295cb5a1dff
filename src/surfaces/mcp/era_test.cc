// Which era a request belongs to, and what its answer looks like there.
#include "surfaces/mcp/era.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace holdfast::mcp {
namespace {

constexpr const char* kVersionKey = "io.modelcontextprotocol/protocolVersion";
constexpr const char* kCapabilitiesKey = "io.modelcontextprotocol/clientCapabilities";

Message request(const std::string& method, const Json& meta = Json()) {
  Message message;
  message.kind = Message::Kind::request;
  message.id = 1;
  message.method = method;
  if (!meta.is_null()) message.params["_meta"] = meta;
  return message;
}
Json modern_meta(const Json& version = kModern) {
  return Json{{kVersionKey, version}, {kCapabilitiesKey, Json::object()}};
}
int code_of(const Message& message, const std::string& negotiated = "") {
  const auto form = form_of(message, negotiated);
  return std::holds_alternative<Problem>(form) ? std::get<Problem>(form).code : 0;
}

TEST(Era, IsJudgedRequestByRequest) {
  const auto modern = form_of(request("tools/list", modern_meta()), "2024-11-05");
  ASSERT_TRUE(std::holds_alternative<Form>(modern));
  EXPECT_TRUE(std::get<Form>(modern).is_modern);
  const auto legacy = form_of(request("tools/list"), "2024-11-05");
  ASSERT_TRUE(std::holds_alternative<Form>(legacy));
  EXPECT_FALSE(std::get<Form>(legacy).is_modern);
  EXPECT_EQ(std::get<Form>(legacy).version, "2024-11-05");
}

TEST(Era, OfARequestThatSaysNothingBeforeInitializeIsUnknown) {
  EXPECT_EQ(code_of(request("tools/list")), kInvalidParams);
  EXPECT_EQ(code_of(request("server/discover"), "2025-11-25"), kInvalidParams);
  EXPECT_EQ(code_of(request("initialize")), 0);
  EXPECT_EQ(code_of(request("ping")), 0);
}

TEST(Era, RefusesAVersionThatNobodySpeaksWithThoseThatAreSpoken) {
  const auto form = form_of(request("tools/list", modern_meta("2099-01-01")), "");
  ASSERT_TRUE(std::holds_alternative<Problem>(form));
  const Problem& problem = std::get<Problem>(form);
  EXPECT_EQ(problem.code, kUnsupportedVersion);
  EXPECT_EQ(problem.data, (Json{{"supported", {"2026-07-28"}}, {"requested", "2099-01-01"}}));
  EXPECT_EQ(code_of(request("tools/list", modern_meta("2025-11-25"))), kUnsupportedVersion);
}

TEST(Era, RefusesMetaThatIsHalfModern) {
  EXPECT_EQ(code_of(request("tools/list", Json{{kVersionKey, kModern}})), kInvalidParams);
  EXPECT_EQ(code_of(request("tools/list", Json{{kCapabilitiesKey, Json::object()}})), kInvalidParams);
  EXPECT_EQ(code_of(request("tools/list", modern_meta(20260728))), kInvalidParams);
  EXPECT_EQ(code_of(request("tools/list", Json{{kVersionKey, kModern}, {kCapabilitiesKey, 1}})), kInvalidParams);
  EXPECT_EQ(code_of(request("tools/list", Json::array()), "2025-11-25"), kInvalidParams);
  EXPECT_EQ(code_of(request("tools/list", Json{{"progressToken", 1}}), "2025-11-25"), 0) << "meta of the legacy era";
}

TEST(Era, ShapesAResultAsItsRevisionKnowsIt) {
  const Form modern{true, std::string(kModern)};
  const Json plain = {{"tools", Json::array()}};
  EXPECT_EQ(shaped(plain, Form{false, "2025-11-25"}, Caching::stable), plain);
  const Json list = shaped(plain, modern, Caching::stable);
  EXPECT_EQ(list["resultType"], "complete");
  EXPECT_GT(list["ttlMs"], 0);
  EXPECT_EQ(list["cacheScope"], "public");
  EXPECT_EQ(shaped(plain, modern, Caching::never)["ttlMs"], 0);
  EXPECT_FALSE(shaped(plain, modern, Caching::none).contains("ttlMs"));
  EXPECT_EQ(list["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "holdfast");
}

TEST(Era, ShowsAnOlderClientNothingThatCameLater) {
  EXPECT_FALSE((Form{false, "2024-11-05"}.has_annotations()));
  EXPECT_TRUE((Form{false, "2025-03-26"}.has_annotations()));
  EXPECT_FALSE((Form{false, "2025-03-26"}.has_structured_content()));
  EXPECT_TRUE((Form{false, "2025-06-18"}.has_structured_content()));
  EXPECT_TRUE((Form{true, std::string(kModern)}.has_titles()));
  EXPECT_TRUE(capabilities(false).contains("experimental"));
  EXPECT_FALSE(capabilities(false).contains("extensions"));
  EXPECT_TRUE(capabilities(true).contains("extensions"));
}

TEST(Era, KnowsTheFourLegacyRevisions) {
  for (const char* one : {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}) EXPECT_TRUE(is_legacy_revision(one));
  for (const char* one : {"", "2026-07-28", "1900-01-01", "2024-11-5"}) EXPECT_FALSE(is_legacy_revision(one)) << one;
}

}  // namespace
}  // namespace holdfast::mcp
