// Every field of an act that is shown, changed in every way: refused, named, and nothing applied (first seed, section
// 8: "the worker cannot substitute a different row or revive an older generation").
#include <gtest/gtest.h>

#include <set>

#include "base/base64.h"
#include "support/row_bench.h"

namespace holdfast {
namespace {

using support::Answer;
using support::details_of;
using support::kRows;
using support::Lease;
using support::RowBench;
using support::Words;
using support::operator+;

const std::set<std::string> kBinding = {"typed_key", "prepared_version", "payload_sha256", "byte_count",
                                        "payload_base64"};

struct Mutation {
  std::string what;
  std::string differing;  // the member that has to be named
  Json shown;
};

// Another value of the same type, and one of each other type.
std::vector<Json> others(const Json& value) {
  std::vector<Json> all = {nullptr, true, 7, 1.5, Json::array(), Json::array({value}), Json::object(), ""};
  if (value.is_string()) {
    const std::string text = value.get<std::string>();
    all.insert(all.end(), {text + " ", text + "x", text.substr(0, text.size() - 1)});
    if (text.find_first_not_of("0123456789") == std::string::npos) {
      all.insert(all.end(), {std::to_string(std::stoull(text) + 1), "0" + text, Json(std::stoull(text))});
    }
  }
  if (value.is_number_integer()) all.insert(all.end(), {value.get<std::int64_t>() + 1, Json(value.dump())});
  if (value.is_object() && !value.empty()) {
    Json more = value;
    more["extra"] = 1;
    Json less = value;
    less.erase(less.begin());
    Json other = value;
    other.begin().value() = "another";
    all.insert(all.end(), {more, less, other});
  }
  std::erase_if(all, [&](const Json& one) { return one == value && one.type() == value.type(); });
  return all;
}

// Of one object within the act: every member changed, taken away, and one more.
void mutate(const Json& act, const Json::json_pointer& object, const std::string& named, std::vector<Mutation>& all) {
  const Json members = act[object];
  for (const auto& [name, value] : members.items()) {
    // The command's members are changed by themselves; how far an act is may have changed since it was shown.
    if (object.empty() && !kBinding.contains(name)) continue;
    const std::string told = named.empty() ? name : named;
    for (const Json& other : others(value)) {
      Mutation one{(object / name).to_string() + " = " + other.dump(), told, act};
      one.shown[object / name] = other;
      all.push_back(std::move(one));
    }
    if (name == "payload_base64") continue;  // whoever approves need not show the bytes
    Mutation missing{(object / name).to_string() + " missing", told, act};
    missing.shown[object].erase(name);
    all.push_back(std::move(missing));
  }
  Mutation extra{object.to_string() + " with one more", named.empty() ? "more" : named, act};
  extra.shown[object]["more"] = "x";
  all.push_back(std::move(extra));
}

std::vector<Mutation> mutations_of(const Json& act) {
  std::vector<Mutation> all;
  mutate(act, Json::json_pointer(""), "", all);
  mutate(act, Json::json_pointer("/command"), "", all);
  mutate(act, Json::json_pointer("/command/issuer"), "issuer", all);
  mutate(act, Json::json_pointer("/typed_key"), "typed_key", all);
  return all;
}

// A process for each: what a person would run.
class ActMutation : public testing::Test {
 protected:
  void refuse_every_change(const Words& verb, const Json& act) {
    const auto all = mutations_of(act);
    EXPECT_GT(all.size(), 150U);
    for (const Mutation& mutation : all) {
      const Answer answer = bench_.with_act(verb, mutation.shown);
      ASSERT_EQ(answer.code(), "act_mismatch") << mutation.what << answer.text;
      EXPECT_NE(details_of(answer)["differing"].dump().find("\"" + mutation.differing + "\""), std::string::npos)
          << mutation.what << answer.text;
    }
  }
  RowBench bench_;
};

TEST_F(ActMutation, OfARowIsRefusedAtApprovalAndAtCommitAndTheUnchangedOneIsTaken) {
  const Lease lease = bench_.acquire(kRows);
  ASSERT_TRUE(bench_.prepare_row(lease, "op-1", "paid", "1").ok());
  Json act = bench_.act("op-1");
  const std::string payload = bench_.get(".squad/vault/primary/" + text_member(act, "payload_sha256"));
  act["payload_base64"] = base64_encode(payload);
  refuse_every_change({"act", "approve", "op-1"}, act);
  EXPECT_EQ(text_member(bench_.act("op-1"), "state"), "prepared");
  for (const Json& shown : {act, Json{{"act", act}}, Json(act["command"])}) {
    for (const int indent : {-1, 0, 7}) {
      EXPECT_TRUE(bench_.with_act({"act", "approve", "op-1"}, shown, indent).ok()) << shown;
    }
  }
  refuse_every_change(Words{"act", "commit", "op-1"} + lease.keys(), act);
  EXPECT_EQ(bench_.row(), "new 1");
  EXPECT_EQ(text_member(bench_.act("op-1"), "state"), "approved");
  EXPECT_TRUE(bench_.with_act(Words{"act", "commit", "op-1"} + lease.keys(), act, 3).ok());
  EXPECT_EQ(bench_.row(), "paid 2");
}

TEST_F(ActMutation, OfAFileIsRefusedAtCommitAndTheUnchangedOneIsTakenInAnyOrderOfItsKeys) {
  bench_.put("a.txt", "old");
  const Lease lease = bench_.acquire("a.txt");
  ASSERT_TRUE(bench_.prepare_file(lease, "op-1", "new").ok());
  ASSERT_TRUE(bench_.approve("op-1").ok());
  Json act = bench_.act("op-1");
  act["payload_base64"] = base64_encode("new");
  refuse_every_change(Words{"act", "commit", "op-1"} + lease.keys(), act);
  EXPECT_EQ(bench_.get("a.txt"), "old");
  std::string backwards;  // keys from the last to the first, and white space wherever it may be
  for (const auto& [name, value] : act["command"].items()) {
    backwards = Json(name).dump() + " :\n\t" + value.dump() + (backwards.empty() ? "" : " , ") + backwards;
  }
  bench_.put("shown.json", "\r\n { \"act\" : {\"command\": {" + backwards +
                               "} , \"typed_key\": " + act["typed_key"].dump() +
                               ", \"byte_count\" : 3,\"prepared_version\":" + act["prepared_version"].dump() +
                               ",\"payload_sha256\":" + act["payload_sha256"].dump() + "} }  \n");
  const Answer taken =
      bench_.run(Words{"act", "commit", "op-1"} + lease.keys() + Words{"--act", bench_.at("shown.json")});
  EXPECT_TRUE(taken.ok()) << taken.text;
  EXPECT_EQ(bench_.get("a.txt"), "new");
}

TEST_F(ActMutation, ThatIsNoActAtAllIsAFaultOfUse) {
  const Lease lease = bench_.acquire(kRows);
  ASSERT_TRUE(bench_.prepare_row(lease, "op-1", "paid", "1").ok());
  for (const Json& none : {Json(1), Json("act"), Json::array(), Json(nullptr), Json{{"command", 1}}}) {
    EXPECT_EQ(bench_.with_act({"act", "approve", "op-1"}, none).code(), "usage") << none;
  }
  EXPECT_EQ(bench_.with_act({"act", "approve", "op-1"}, Json::object()).code(), "act_mismatch");
  bench_.put("shown.json", "{");
  EXPECT_EQ(bench_.run({"act", "approve", "op-1", "--act", bench_.at("shown.json")}).code(), "usage");
  EXPECT_EQ(text_member(bench_.act("op-1"), "state"), "prepared");
}

}  // namespace
}  // namespace holdfast
