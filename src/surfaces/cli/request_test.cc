#include "surfaces/cli/request.h"

#include <gtest/gtest.h>

#include <map>

#include "support/refused_with.h"
#include "surfaces/cli/lease_keys.h"

namespace holdfast::cli {
namespace {

using support::granted;
using support::refused_with;
using Words = std::vector<std::string>;

Json record(const std::string& resource, const std::string& generation) {
  return Json{{"namespace", "file"}, {"resource_id", resource},        {"owner", "me"},
              {"task_id", "t"},      {"started_at", "2026-01-01T00Z"}, {"generation", generation}};
}

// A process with the files and variables that a test gives it.
struct Stage {
  std::map<std::string, std::string> files;
  std::map<std::string, std::string> variables;
  std::string folder = "/home/me";

  Surroundings surroundings() const {
    return {.current_folder = folder,
            .environment = [this](const char* name) -> std::optional<std::string> {
              const auto found = variables.find(name);
              if (found == variables.end()) return std::nullopt;
              return found->second;
            },
            .read_file = [this](const std::string& path) -> Result<std::string> {
              const auto found = files.find(path);
              if (found == files.end()) return Refusal(Code::lease_file_invalid, "no file");
              return found->second;
            },
            .canonical = [](const std::string& scope) -> Result<Json> {
              return Json{{"namespace", "file"}, {"resource_id", "project:/" + scope}};
            }};
  }
  Result<Json> request(const Words& words) const {
    HF_TRY(const Invocation invocation, parse_words(words));
    return request_of(invocation, surroundings());
  }
};

const Words kKeys = {"--owner", "me", "--task", "t", "--generation", "7", "--started-at", "then"};
Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(Request, OfAnAcquireCarriesEveryOption) {
  const auto request =
      Stage{}.request({"acquire", "a", "b", "--owner", "me", "--task", "t", "--ttl", "10m", "--fresh", "--no-guard",
                       "--require", "bpf_lsm", "--reason", "r", "--family", "f", "--consequence", "c"});
  ASSERT_TRUE(granted(request));
  EXPECT_EQ(*request, (Json{{"verb", "acquire"},
                            {"arguments",
                             {{"scopes", {"a", "b"}},
                              {"cwd", "/home/me"},
                              {"owner", "me"},
                              {"task", "t"},
                              {"ttl", "10m"},
                              {"fresh", true},
                              {"no_guard", true},
                              {"require", "bpf_lsm"},
                              {"reason", "r"},
                              {"family", "f"},
                              {"consequence", "c"}}}}));
}

TEST(Request, LeavesOutWhatWasNotSaid) {
  const auto request = Stage{}.request({"status"});
  ASSERT_TRUE(granted(request));
  EXPECT_EQ(*request, (Json{{"verb", "status"}, {"arguments", Json::object()}}));
}

TEST(Request, CarriesScopesThatAreNoTextAsBase64) {
  const auto one = Stage{}.request({"scope", "bad-\xff\xfe"});
  ASSERT_TRUE(granted(one));
  EXPECT_EQ((*one)["arguments"], (Json{{"scope_base64", "YmFkLf/+"}, {"cwd", "/home/me"}}));
  const auto several = Stage{}.request({"acquire", "a", "\xff", "--owner", "o", "--task", "t"});
  ASSERT_TRUE(granted(several));
  EXPECT_EQ((*several)["arguments"]["scopes"], (Json{"a", {{"base64", "/w=="}}}));
}

TEST(Request, CarriesACurrentFolderThatIsNoTextAsBase64) {
  Stage stage;
  stage.folder = "/\xff";
  const auto request = stage.request({"scope", "a"});
  ASSERT_TRUE(granted(request));
  EXPECT_EQ((*request)["arguments"], (Json{{"scope", "a"}, {"cwd_base64", "L/8="}}));
}

TEST(Request, RefusesOtherTextThatIsNotUtf8) {
  for (const Words& words :
       {Words{"acquire", "a", "--owner", "\xff", "--task", "t"},
        Words{"acquire", "a", "--owner", "o", "--task", "\xff"}, Words{"epoch", "advance", "--reason", "\xff"},
        Words{"quarantine", "show", "\xff"}, Words{"release", "a", "--force", "--owner", "\xff"},
        with({"heartbeat", "a"}, {"--owner", "\xff", "--task", "t", "--generation", "1", "--started-at", "s"})}) {
    EXPECT_TRUE(refused_with(Stage{}.request(words), Code::usage)) << testing::PrintToString(words);
  }
}

TEST(Request, OfAnEditCarriesItsTextsAsBytes) {
  const auto request = Stage{}.request(with({"edit", "a", "--replace", "old", "\xff", "--replace", "-x", ""}, kKeys));
  ASSERT_TRUE(granted(request));
  EXPECT_EQ((*request)["arguments"]["replacements"],
            (Json{{{"old_base64", "b2xk"}, {"new_base64", "/w=="}}, {{"old_base64", "LXg="}, {"new_base64", ""}}}));
}

TEST(Request, OfAForcedReleaseNeedsNoKeyButTheOwner) {
  Stage stage;
  stage.variables = {{"HOLDFAST_OWNER", "x"}, {"HOLDFAST_TASK", "y"}, {"HOLDFAST_GENERATION", "1"}};
  const auto request = stage.request({"release", "a", "--force", "--owner", "boss"});
  ASSERT_TRUE(granted(request));
  EXPECT_EQ((*request)["arguments"], (Json{{"scope", "a"}, {"cwd", "/home/me"}, {"force", true}, {"owner", "boss"}}));
  EXPECT_TRUE(refused_with(stage.request({"release", "a", "--force"}), Code::usage));
  EXPECT_TRUE(refused_with(stage.request(with({"release", "a", "--force"}, kKeys)), Code::usage));
}

TEST(Request, OfAResolveNeedsOneDecisionAndForRestoreTheKeys) {
  const Stage stage;
  EXPECT_TRUE(refused_with(stage.request({"reconcile", "resolve", "r-1"}), Code::usage));
  EXPECT_TRUE(refused_with(stage.request({"reconcile", "resolve", "r-1", "--accept", "--restore"}), Code::usage));
  EXPECT_TRUE(refused_with(stage.request({"reconcile", "resolve", "r-1", "--restore"}), Code::usage));
  const auto accept = stage.request({"reconcile", "resolve", "r-1", "--accept"});
  ASSERT_TRUE(granted(accept));
  EXPECT_EQ((*accept)["arguments"], (Json{{"id", "r-1"}, {"decision", "accept"}}));
  EXPECT_TRUE(granted(stage.request(with({"reconcile", "resolve", "r-1", "--restore"}, kKeys))));
}

TEST(Request, OfTheEvidenceLogBoundsItself) {
  const auto request = Stage{}.request({"evidence", "log", "--limit", "20", "--scope", "a"});
  ASSERT_TRUE(granted(request));
  EXPECT_EQ((*request)["arguments"], (Json{{"limit", 20}, {"scope", "a"}, {"cwd", "/home/me"}}));
  for (const char* nonsense : {"0", "-1", "x", "1.5", ""}) {
    EXPECT_TRUE(refused_with(Stage{}.request({"evidence", "log", "--limit", nonsense}), Code::usage)) << nonsense;
  }
}

TEST(Request, OfAnAdoptionNeedsAReason) {
  EXPECT_TRUE(refused_with(Stage{}.request({"init", "--adopt"}), Code::usage));
  EXPECT_TRUE(refused_with(Stage{}.request({"init", "--adopt", "--new-id", "--reason", "r"}), Code::usage));
  EXPECT_TRUE(granted(Stage{}.request({"init", "--new-id", "--reason", "r"})));
}

Json keys_in(const Json& arguments) {
  return Json{arguments["owner"], arguments["task"], arguments["generation"], arguments["started_at"]};
}

TEST(LeaseKeys, ComeFromOptions) {
  const auto request = Stage{}.request(with({"heartbeat", "a"}, kKeys));
  ASSERT_TRUE(granted(request));
  EXPECT_EQ(keys_in((*request)["arguments"]), (Json{"me", "t", "7", "then"}));
}

TEST(LeaseKeys, ComeFromAFileAsAcquireOrHeartbeatPrintedItOrFromOneRecord) {
  const Json one = record("project:/a", "18446744073709551615");
  for (const Json& document :
       {Json{{"leases", {one}}, {"granted", "new"}}, Json{{"lease", one}, {"renewed", true}}, one}) {
    Stage stage;
    stage.files["f"] = document.dump();
    const auto request = stage.request({"heartbeat", "a", "--lease", "f"});
    ASSERT_TRUE(granted(request));
    EXPECT_EQ(keys_in((*request)["arguments"]), (Json{"me", "t", "18446744073709551615", "2026-01-01T00Z"}));
  }
}

TEST(LeaseKeys, OfSeveralLeasesAreThoseOfTheVerbsScope) {
  Stage stage;
  stage.files["f"] = Json{{"leases", {record("project:/a", "1"), record("project:/b", "2")}}}.dump();
  const auto request = stage.request({"heartbeat", "b", "--lease", "f"});
  ASSERT_TRUE(granted(request));
  EXPECT_EQ((*request)["arguments"]["generation"], "2");
  EXPECT_TRUE(refused_with(stage.request({"heartbeat", "c", "--lease", "f"}), Code::lease_file_invalid));
  EXPECT_TRUE(refused_with(stage.request({"reconcile", "resolve", "r", "--restore", "--lease", "f"}),
                           Code::lease_file_invalid));
}

TEST(LeaseKeys, OfAMalformedFileAreRefused) {
  Json no_owner = record("project:/a", "1");
  no_owner.erase("owner");
  Json rounded = record("project:/a", "1");
  rounded["generation"] = 1.5;
  for (const std::string& text :
       {std::string(), std::string("nonsense"), std::string("[]"), std::string("{}"), std::string("{\"leases\":[]}"),
        std::string("\xff"), no_owner.dump(), rounded.dump(), Json{{"leases", {no_owner}}}.dump(),
        std::string("{\"owner\":\"a\",\"owner\":\"b\"}"), Json{{"error", {{"code", "usage"}}}}.dump()}) {
    Stage stage;
    stage.files["f"] = text;
    EXPECT_TRUE(refused_with(stage.request({"heartbeat", "a", "--lease", "f"}), Code::lease_file_invalid)) << text;
  }
  EXPECT_TRUE(refused_with(Stage{}.request({"heartbeat", "a", "--lease", "absent"}), Code::lease_file_invalid));
  EXPECT_TRUE(refused_with(Stage{}.request({"heartbeat", "a", "--lease", "-"}), Code::usage));
}

TEST(LeaseKeys, AreNeverMixedFromTwoSources) {
  Stage stage;
  stage.files["f"] = record("project:/a", "1").dump();
  stage.variables = {
      {"HOLDFAST_OWNER", "e"}, {"HOLDFAST_TASK", "e"}, {"HOLDFAST_GENERATION", "9"}, {"HOLDFAST_STARTED_AT", "e"}};
  EXPECT_TRUE(refused_with(stage.request({"heartbeat", "a", "--lease", "f", "--owner", "me"}), Code::usage));
  EXPECT_TRUE(refused_with(stage.request({"heartbeat", "a", "--owner", "me"}), Code::usage));
}

TEST(LeaseKeys, ComeFromTheEnvironmentWhereNoOptionGivesAny) {
  Stage stage;
  stage.variables = {
      {"HOLDFAST_OWNER", "e"}, {"HOLDFAST_TASK", "u"}, {"HOLDFAST_GENERATION", "9"}, {"HOLDFAST_STARTED_AT", "s"}};
  const auto four = stage.request({"heartbeat", "a"});
  ASSERT_TRUE(granted(four));
  EXPECT_EQ(keys_in((*four)["arguments"]), (Json{"e", "u", "9", "s"}));
  stage.files["f"] = record("project:/a", "1").dump();
  stage.variables["HOLDFAST_LEASE_FILE"] = "f";
  const auto file = stage.request({"heartbeat", "a"});
  ASSERT_TRUE(granted(file));
  EXPECT_EQ((*file)["arguments"]["generation"], "1");
  stage.variables = {{"HOLDFAST_OWNER", "e"}};
  EXPECT_TRUE(refused_with(stage.request({"heartbeat", "a"}), Code::usage));
}

TEST(LeaseKeys, OfAnAcquireTravelAsTheWholeRecord) {
  Stage stage;
  stage.files["f"] = Json{{"leases", {record("project:/a", "3")}}}.dump();
  const auto request = stage.request({"acquire", "a", "--lease", "f"});
  ASSERT_TRUE(granted(request));
  EXPECT_EQ((*request)["arguments"]["keys"], record("project:/a", "3"));
  EXPECT_EQ((*request)["arguments"]["owner"], "me");
  EXPECT_EQ((*request)["arguments"]["task"], "t");
  EXPECT_TRUE(refused_with(stage.request({"acquire", "a", "b", "--lease", "f"}), Code::usage));
}

TEST(TransitionLimit, IsOnlyEverShortened) {
  Stage stage;
  for (const auto& [text, limit] : {std::pair<std::string, int>{"250", 250},
                                    {"0", 0},
                                    {"30001", 30'000},
                                    {"99999999999999999999", 30'000},
                                    {"-5", 30'000},
                                    {"1s", 30'000}}) {
    stage.variables["HOLDFAST_TRANSITION_TIMEOUT_MS"] = text;
    EXPECT_EQ(transition_limit_ms(stage.surroundings()), limit) << text;
  }
  EXPECT_EQ(transition_limit_ms(Stage{}.surroundings()), 30'000);
}

}  // namespace
}  // namespace holdfast::cli
