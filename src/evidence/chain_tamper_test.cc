// Attacks on the evidence chain: every one is found, named by its place, and left as it is.
#include <functional>

#include "base/digest.h"
#include "evidence/chain_test_fixture.h"

namespace holdfast::evidence {
namespace {

TEST_F(ChainTest, FindsEveryChangedByteAndNamesItsLine) {
  for (int number = 0; number < 3; ++number) add("event", static_cast<std::uint64_t>(number));
  const std::string good = text();
  std::uint64_t line = 1;
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    const auto found = Chain::verify_lines({{"log-000001.jsonl", bad}}).value();
    ASSERT_TRUE(found.first_break.has_value()) << "byte " << at;
    EXPECT_EQ(found.first_break->line, line) << "byte " << at << ": " << found.first_break->reason;
    if (good[at] == '\n') ++line;
  }
}

TEST_F(ChainTest, FindsEveryByteTakenOutOrPutIn) {
  for (int number = 0; number < 3; ++number) add("event");
  const std::string good = text();
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string less = good;
    less.erase(at, 1);
    EXPECT_TRUE(Chain::verify_lines({{"log-000001.jsonl", less}}).value().first_break.has_value()) << at;
    for (const char byte : {' ', '\n', '0', '\0'}) {
      std::string more = good;
      more.insert(at, 1, byte);
      EXPECT_TRUE(Chain::verify_lines({{"log-000001.jsonl", more}}).value().first_break.has_value()) << at;
    }
  }
}

TEST_F(ChainTest, FindsRemovedExchangedAndRepeatedLines) {
  for (int number = 0; number < 5; ++number) add("event");
  const std::vector<std::string> good = lines();
  auto bad = good;
  bad.erase(bad.begin() + 2);
  files.plant(kFirst, joined(bad));
  expect_broken(3, 3, "a removed line");
  bad = good;
  std::swap(bad[2], bad[3]);
  files.plant(kFirst, joined(bad));
  expect_broken(3, 3, "two lines exchanged");
  bad = good;
  bad.insert(bad.begin() + 2, good[1]);
  files.plant(kFirst, joined(bad));
  expect_broken(3, 3, "a repeated line");
  bad = good;
  bad.erase(bad.begin());
  files.plant(kFirst, joined(bad));
  expect_broken(1, 1, "the first line removed");
}

// Rewrites one line with a right hash of its own: only its relation to the others is wrong.
class RewrittenChainTest : public ChainTest {
 protected:
  void SetUp() override {
    ids = {add("one", 5), add("two", 6), add("three", 7)};
    good = lines();
  }
  void rewrite(const std::function<void(Json&)>& change, const std::string& what) {
    Json event = *parse_json(good[1]);
    change(event);
    event.erase("hash");
    event["hash"] = sha256_hex(dump_canonical(event));
    files.plant(kFirst, good[0] + "\n" + dump_canonical(event) + "\n" + good[2] + "\n");
    expect_broken(2, 2, what);
  }
  std::vector<std::string> ids;
  std::vector<std::string> good;
};

TEST_F(RewrittenChainTest, FindsWhatContradictsTheLinesBefore) {
  rewrite([](Json& event) { event["seq"] = 3; }, "seq");
  rewrite([](Json& event) { event["prev"] = std::string(64, 'a'); }, "prev");
  rewrite([](Json& event) { event["high_water"] = "4"; }, "high water");
  rewrite([&](Json& event) { event["id"] = ids[0]; }, "id");
  rewrite([&](Json& event) { event["parents"] = Json::array({ids[2]}); }, "a parent that comes later");
  rewrite([&](Json& event) { event["parents"] = Json::array({ids[1]}); }, "its own parent");
}

TEST_F(RewrittenChainTest, FindsWhatIsNotOfTheGrammar) {
  rewrite([](Json& event) { event["more"] = 1; }, "an extra member");
  rewrite([](Json& event) { event.erase("scope"); }, "a missing member");
  rewrite([](Json& event) { event["seq"] = "2"; }, "a seq as text");
  rewrite([](Json& event) { event["seq"] = 2.0; }, "a seq as a fraction");
  rewrite([](Json& event) { event["high_water"] = 6; }, "a number");
  rewrite([](Json& event) { event["high_water"] = "06"; }, "a leading zero");
  rewrite([](Json& event) { event["high_water"] = "18446744073709551616"; }, "2^64");
  rewrite([](Json& event) { event["facts"] = Json::array(); }, "facts");
  rewrite([](Json& event) { event["parents"] = Json::array({1}); }, "parents");
  rewrite([](Json& event) { event["id"] = ""; }, "an empty id");
  rewrite([](Json& event) { event["prev"] = "x"; }, "prev");
}

TEST_F(RewrittenChainTest, FindsALineThatSaysTheSameInOtherWords) {
  for (const std::string& other : {" " + good[1], good[1] + "\r", good[1] + " ", "{\"a\":1," + good[1].substr(1)}) {
    files.plant(kFirst, good[0] + "\n" + other + "\n" + good[2] + "\n");
    expect_broken(2, 2, "not canonical");
  }
  std::string twice = good[1];
  twice.insert(twice.size() - 1, ",\"seq\":2");
  files.plant(kFirst, good[0] + "\n" + twice + "\n" + good[2] + "\n");
  expect_broken(2, 2, "a duplicate key");
  EXPECT_NE(verified().first_break->reason.find("duplicate"), std::string::npos);
}

TEST_F(RewrittenChainTest, FindsTheNextLineWhereOneWasRewrittenWhole) {
  Json event = *parse_json(good[1]);
  event["facts"]["owner"] = "somebody else";
  event.erase("hash");
  event["hash"] = sha256_hex(dump_canonical(event));
  files.plant(kFirst, good[0] + "\n" + dump_canonical(event) + "\n" + good[2] + "\n");
  expect_broken(3, 3, "the line after");
}

TEST_F(ChainTest, FindsAMissingARenamedAndAnExtraSegment) {
  for (int number = 0; number < 3; ++number) add("event");
  const std::string first = lines()[0] + "\n", second = lines()[1] + "\n", third = lines()[2] + "\n";
  const auto breaks = [](const std::vector<std::pair<std::string, std::string>>& segments) {
    return Chain::verify_lines(segments).value().first_break.has_value();
  };
  EXPECT_FALSE(breaks({{"log-000001.jsonl", first}, {"log-000002.jsonl", second}, {"log-000003.jsonl", third}}));
  EXPECT_TRUE(breaks({{"log-000002.jsonl", second}, {"log-000003.jsonl", third}}));
  EXPECT_TRUE(breaks({{"log-000001.jsonl", first}, {"log-000003.jsonl", third}}));
  EXPECT_TRUE(breaks({{"log-000001.jsonl", first}, {"log-000002.jsonl", third}}));
  EXPECT_TRUE(breaks({{"log-000001.jsonl", first}, {"log-000002.jsonl", ""}, {"log-000003.jsonl", third}}));
  EXPECT_TRUE(breaks({{"log-000001.jsonl", first}, {"log-2.jsonl", second}}));
  EXPECT_TRUE(breaks({{"log-000001.jsonl", first + "torn"}, {"log-000002.jsonl", second}}));
  files.plant(kFirst, first);
  files.plant("evidence/log-000003.jsonl", third);
  expect_broken(1, 2, "a missing segment", "evidence/log-000003.jsonl");
}

TEST_F(ChainTest, LeavesABrokenLogAsItIsAndShowsTheRest) {
  for (int number = 0; number < 3; ++number) add("event");
  std::vector<std::string> bad = lines();
  bad[1][5] = 'X';
  files.plant(kFirst, joined(bad) + "torn");
  const std::string before = text();
  EXPECT_TRUE(verified().first_break.has_value());
  const std::vector<Json> seen = events();
  ASSERT_EQ(seen.size(), 4U);
  EXPECT_EQ(seen[1], (Json{{"unreadable", true}, {"segment", "log-000001.jsonl"}, {"line", 2}}));
  EXPECT_EQ(seen[3].value("torn", false), true);
  EXPECT_EQ(text(), before);
  EXPECT_EQ(files.list("evidence").value().size(), 1U);
}

TEST_F(ChainTest, SaysWhereItBreaksInTheRefusal) {
  add("event");
  files.plant(kFirst, "x" + text());
  const Refusal refusal = refusal_of(verified());
  EXPECT_EQ(refusal.code(), Code::evidence_chain_broken);
  EXPECT_EQ(refusal.details()["first_break"]["line"], 1);
  EXPECT_EQ(refusal.details()["verified"], false);
}

TEST_F(ChainTest, GoesOnAfterATamperedLastLineAndNamesTheBreakForEver) {
  for (int number = 0; number < 3; ++number) add("event", 8);
  std::string bad = text();
  bad[bad.rfind("somebody")] = 'S';
  files.plant(kFirst, bad);
  for (int number = 0; number < 3; ++number) add("later");
  expect_broken(3, 3, "the tampered line");
  EXPECT_EQ(text().substr(0, bad.size()), bad);
  EXPECT_EQ(Chain(files).marks().value().high_water.value, 8U);
  // A new line continues from the stored hash, so that nothing but the tampered line is wrong.
  EXPECT_EQ(parse_json(lines()[3])->at("prev"), parse_json(lines()[2])->at("hash"));
}

TEST_F(ChainTest, GoesOnAfterALastLineThatCannotBeRead) {
  for (int number = 0; number < 3; ++number) add("event", 8);
  std::vector<std::string> bad = lines();
  bad[1] = "{}";
  bad[2][0] = '[';
  files.plant(kFirst, joined(bad));
  const Marks marks = Chain(files).marks().value();
  EXPECT_EQ(marks.seq, 3U);
  EXPECT_EQ(marks.high_water.value, 8U);
  EXPECT_EQ(marks.head, sha256_hex(bad[2]));
  add("later");
  expect_broken(2, 2, "the first unreadable line");
  EXPECT_EQ(parse_json(lines()[3])->at("seq"), 4);
}

}  // namespace
}  // namespace holdfast::evidence
