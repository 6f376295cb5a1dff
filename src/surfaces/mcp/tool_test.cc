// The tools as they are listed, and what their arguments may be (CONTRACT section 9; field report M32).
#include "surfaces/mcp/tool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/json.h"
#include "support/refused_with.h"
#include "support/schema.h"

namespace holdfast::mcp {
namespace {

using support::granted;
using support::refused_with;
using support::schema_problem;

Json value_of(ArgumentKind kind) {
  switch (kind) {
    case ArgumentKind::text: return "text";
    case ArgumentKind::number_text: return "14";
    case ArgumentKind::whole_number: return 0;
    case ArgumentKind::seconds: return 60;
    case ArgumentKind::boolean: return true;
    case ArgumentKind::text_list: return Json::array({"a"});
    case ArgumentKind::replacement_list: return Json::array({{{"old", "a"}, {"new", "b"}}});
  }
  return {};
}
Json all_arguments(const Tool& tool) {
  Json arguments = Json::object();
  for (const ArgumentSpec& spec : tool.arguments) arguments[std::string(spec.name)] = value_of(spec.kind);
  return arguments;
}

TEST(Tools, AreThoseOfTheContractInItsOrder) {
  std::vector<std::string> names;
  for (const Tool& tool : tools()) names.emplace_back(tool.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"lease_acquire", "lease_heartbeat", "lease_release", "lease_list", "file_read",
                                      "file_write", "file_edit", "act_prepare", "act_approve", "act_commit",
                                      "result_get", "handoff_status", "reconcile_list", "quarantine_list", "doctor"}));
  EXPECT_EQ(&tools(), &tools()) << "made once: the order cannot change while a bridge runs";
}

TEST(Tools, SayWhatTheyAreAndWhatTheyTakeAndGive) {
  for (const Tool& tool : tools()) {
    EXPECT_LE(tool.name.size(), 128U);
    EXPECT_EQ(tool.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string_view::npos) << tool.name;
    EXPECT_FALSE(tool.title.empty()) << tool.name;
    EXPECT_GT(tool.description.size(), 15U) << tool.name;
    EXPECT_FALSE(tool.hints.read_only && tool.hints.destructive) << tool.name;
    const Json input = input_schema(tool);
    EXPECT_EQ(input["type"], "object") << tool.name;
    EXPECT_EQ(input["additionalProperties"], false) << tool.name;
    for (const auto& [name, schema] : input["properties"].items()) {
      EXPECT_FALSE(text_member(schema, "description").empty()) << tool.name << " " << name;
    }
    EXPECT_EQ(output_schema(tool)["type"], "object") << tool.name;
    EXPECT_FALSE(tool.success.empty()) << tool.name;
    std::set<std::string_view> names;
    for (const ArgumentSpec& spec : tool.arguments) EXPECT_TRUE(names.insert(spec.name).second) << tool.name;
  }
}

TEST(Tools, AreFoundByTheirWholeNameOnly) {
  EXPECT_NE(find_tool("doctor"), nullptr);
  for (const char* name : {"", "doc", "doctor ", "Doctor", "no_such_tool"}) EXPECT_EQ(find_tool(name), nullptr) << name;
}

TEST(Arguments, ThatTheSchemaAllowsAreTaken) {
  for (const Tool& tool : tools()) {
    EXPECT_EQ(schema_problem(input_schema(tool), all_arguments(tool)), "") << tool.name;
    EXPECT_TRUE(granted(check_arguments(tool, all_arguments(tool)))) << tool.name;
  }
}

TEST(Arguments, ThatAreMissingOrUnknownAreNamed) {
  for (const Tool& tool : tools()) {
    for (const ArgumentSpec& spec : tool.arguments) {
      if (!spec.required) continue;
      Json arguments = all_arguments(tool);
      arguments.erase(std::string(spec.name));
      const auto checked = check_arguments(tool, arguments);
      ASSERT_TRUE(refused_with(checked, Code::usage)) << tool.name << " " << spec.name;
      EXPECT_EQ(checked.refusal().details()["argument"], spec.name);
      EXPECT_NE(schema_problem(input_schema(tool), arguments), "");
    }
    Json arguments = all_arguments(tool);
    arguments["no_such_argument"] = 1;
    EXPECT_TRUE(refused_with(check_arguments(tool, arguments), Code::usage)) << tool.name;
  }
}

// Each argument of each tool against each JSON type: what the check takes the schema takes, but for what is the
// engine's to judge (the digits of a number in text, and how long a lease may be).
TEST(Arguments, OfAnotherTypeAreRefusedAsTheSchemaSays) {
  const std::vector<Json> values = {nullptr,
                                    true,
                                    0,
                                    1,
                                    -1,
                                    1.5,
                                    -0.0,
                                    1e300,
                                    "",
                                    "1",
                                    "x",
                                    Json::array(),
                                    Json::array({1}),
                                    Json::array({"a"}),
                                    Json::array({Json::object()}),
                                    Json::object(),
                                    std::uint64_t{9007199254740992U},
                                    std::uint64_t{9007199254740993U},
                                    std::uint64_t{18446744073709551615U}};
  for (const Tool& tool : tools()) {
    for (const ArgumentSpec& spec : tool.arguments) {
      for (const Json& value : values) {
        Json arguments = all_arguments(tool);
        arguments[std::string(spec.name)] = value;
        const bool taken = check_arguments(tool, arguments).ok();
        const bool allowed = schema_problem(input_schema(tool), arguments).empty();
        const bool engine_judges = (spec.kind == ArgumentKind::number_text && value.is_string()) ||
                                   (spec.kind == ArgumentKind::seconds && value.is_number());
        if (!engine_judges) {
          EXPECT_EQ(taken, allowed) << tool.name << " " << spec.name << " " << value.dump();
        } else if (allowed) {
          EXPECT_TRUE(taken) << tool.name << " " << spec.name << " " << value.dump();
        }
      }
    }
  }
}

// M32: refused, not rounded.
TEST(Arguments, M32ANumberThatADoubleCannotCarryIsRefused) {
  const Tool& tool = *find_tool("lease_heartbeat");
  Json arguments = all_arguments(tool);
  for (const Json& generation : {Json("9007199254740993"), Json(std::uint64_t{9007199254740992U}), Json(0)}) {
    arguments["generation"] = generation;
    EXPECT_TRUE(granted(check_arguments(tool, arguments))) << generation;
  }
  for (const Json& generation : {Json(std::uint64_t{9007199254740993U}), Json(std::uint64_t{18446744073709551615U}),
                                 Json(18446744073709551616.0), Json(-1), Json(1.0), Json(1e15)}) {
    arguments["generation"] = generation;
    EXPECT_TRUE(refused_with(check_arguments(tool, arguments), Code::number_invalid)) << generation;
  }
}

TEST(Arguments, OfAnyLengthAreRefusedInAShortMessage) {
  Json arguments = all_arguments(*find_tool("lease_list"));
  arguments[std::string(4U << 20U, '\x01')] = 1;
  const auto checked = check_arguments(*find_tool("lease_list"), arguments);
  ASSERT_TRUE(refused_with(checked, Code::usage));
  EXPECT_LT(dump_ascii(checked.refusal().to_json()).size(), 4096U);
}

TEST(Arguments, OfMoreThanAThousandScopesAreRefused) {
  Json arguments = {{"owner", "o"}, {"task", "t"}, {"scopes", Json::array()}};
  for (int number = 0; number < 1000; ++number) arguments["scopes"].push_back("a");
  EXPECT_TRUE(granted(check_arguments(*find_tool("lease_acquire"), arguments)));
  arguments["scopes"].push_back("a");
  EXPECT_TRUE(refused_with(check_arguments(*find_tool("lease_acquire"), arguments), Code::usage));
}

TEST(OutputSchema, AllowsEachRefusalOfTheCatalogueAndNothingThatIsNeither) {
  const Tool& tool = *find_tool("file_write");
  for (std::size_t index = 0; index < code_count(); ++index) {
    EXPECT_EQ(schema_problem(output_schema(tool), Refusal(facts_at(index).code, "m").to_json()), "");
  }
  EXPECT_NE(schema_problem(output_schema(tool), Json::object()), "");
  EXPECT_NE(schema_problem(output_schema(tool), Json{{"scope", "s"}}), "");
  EXPECT_NE(schema_problem(output_schema(tool), Json{{"error", {{"code", "x"}}}}), "");
}

// The size is what the line will have, whatever has to be escaped: never less.
TEST(ReplySize, IsAtLeastThatOfTheLine) {
  for (const std::string& text :
       {std::string(5000, 'x'), std::string(5000, '"'), std::string(5000, '\\'), std::string(5000, '\n'),
        std::string(5000, '\x01'), std::string("\u2028\U0001F600")}) {
    const Json document = {{"content", text}, {"list", {1, nullptr, "\"\\\""}}};
    const Json result = {{"content", {{{"type", "text"}, {"text", dump_ascii(document)}}}},
                         {"structuredContent", document},
                         {"isError", true},
                         {"resultType", "complete"}};
    const Json line = {{"jsonrpc", "2.0"}, {"id", std::string(256, '\x01')}, {"result", result}};
    EXPECT_LE(dump_ascii(line).size(), reply_size(document));
  }
}

}  // namespace
}  // namespace holdfast::mcp
