#include "holdfast/command.h"

#include <gtest/gtest.h>

#include "base/base64.h"
#include "base/json.h"

namespace holdfast {
namespace {

Command whole() {
  return {"op-1", "file://project:/out", "write", "reversible", "ada", "build", 18446744073709551615ULL,
          3,      {"ws-1", "local"},     "abc",   std::nullopt, "f00d"};
}

TEST(Command, ComesBackTheSameFromEachOfItsForms) {
  Command command = whole();
  command.parent_operation_id = "op-0";
  EXPECT_EQ(*command_from_json(command.to_json()), command);
  EXPECT_EQ(*command_from_header(command.header()), command);
  EXPECT_EQ(*command_from_environment(command.environment()), command);
  command.precondition.reset();
  EXPECT_EQ(*command_from_json(command.to_json()), command);
}

TEST(Command, HasOneCanonicalFormWithNumbersThatNoDoubleRounds) {
  EXPECT_EQ(whole().canonical(), dump_canonical(whole().to_json()));
  EXPECT_EQ(whole().to_json()["generation"], "18446744073709551615");
}

TEST(Command, IsRefusedWhereAMemberIsMissingEmptyOrUnknown) {
  const Json all = whole().to_json();
  for (const auto& [name, value] : all.items()) {
    Json without = all;
    without.erase(name);
    const auto read = command_from_json(without);
    if (name == "precondition") {
      EXPECT_TRUE(read.ok());
      continue;
    }
    ASSERT_FALSE(read.ok()) << name;
    const bool is_order = name == "generation" || name == "control_epoch";
    EXPECT_EQ(read.refusal().code(), is_order ? Code::generation_incomparable : Code::request_malformed) << name;
    Json emptied = all;
    emptied[name] = "";
    EXPECT_FALSE(command_from_json(emptied).ok()) << name;
  }
  Json more = whole().to_json();
  more["priority"] = "high";
  EXPECT_FALSE(command_from_json(more).ok());
  for (const Json& no_object : {Json(), Json("x"), Json::array()}) EXPECT_FALSE(command_from_json(no_object).ok());
}

TEST(Command, OfAChildCarriesNoMoreThanItsParent) {
  Command parent = whole();
  parent.resource = "file://project:/out";
  const auto below = parent.delegated({"op-2", "file://project:/out/a", std::nullopt, "beef"});
  ASSERT_TRUE(below.ok());
  EXPECT_EQ(below->parent_operation_id, "op-1");
  EXPECT_EQ(below->generation, parent.generation);
  EXPECT_EQ(below->owner, parent.owner);
  EXPECT_EQ(below->payload_sha256, "beef");
  for (const char* wider : {"file://project:/", "file://project:/outside", "session://x/y", "nonsense"}) {
    EXPECT_FALSE(parent.delegated({"op-2", wider, std::nullopt, "beef"}).ok()) << wider;
  }
  EXPECT_FALSE(parent.delegated({"op-1", parent.resource, std::nullopt, "beef"}).ok());
}

TEST(Command, OfAnEnvironmentThatContradictsItselfIsRefused) {
  auto environment = whole().environment();
  environment["HOLDFAST_GENERATION"] = "7";
  EXPECT_FALSE(command_from_environment(environment).ok());
  EXPECT_FALSE(command_from_environment({}).ok());
  EXPECT_FALSE(command_from_header("no base64!").ok());
  EXPECT_FALSE(command_from_header(base64_encode("[]")).ok());
}

}  // namespace
}  // namespace holdfast
