#include <cerrno>
#include <fstream>
#include <iterator>

#include "base/digest.h"
#include "evidence/chain_test_fixture.h"

namespace holdfast::evidence {
namespace {

// Counts what a call costs.
class CountingFolder : public os::ControlFolder {
 public:
  explicit CountingFolder(os::ControlFolder& inner) : inner_(inner) {}
  int sizes = 0, lists = 0, reads = 0, appends = 0, others = 0;
  std::uint64_t bytes_read = 0;

  Result<std::optional<std::string>> read(const std::string& path) override { return ++reads, inner_.read(path); }
  Result<std::string> read_from(const std::string& path, std::uint64_t offset) override {
    ++reads;
    auto bytes = inner_.read_from(path, offset);
    if (bytes) bytes_read += bytes->size();
    return bytes;
  }
  Result<std::optional<std::uint64_t>> size(const std::string& path) override { return ++sizes, inner_.size(path); }
  Result<std::vector<std::string>> list(const std::string& folder) override { return ++lists, inner_.list(folder); }
  Result<void> publish(const std::string& path, std::string_view bytes, os::NameFlush flush) override {
    return ++others, inner_.publish(path, bytes, flush);
  }
  Result<void> publish_under_two_names(const std::string& path, const std::string& second,
                                       std::string_view bytes) override {
    return ++others, inner_.publish_under_two_names(path, second, bytes);
  }
  Result<void> stage(const std::string& path, std::string_view bytes) override { return inner_.stage(path, bytes); }
  Result<void> stage_together(const std::vector<os::Staged>& files) override { return inner_.stage_together(files); }
  Result<void> append_and_stage(const std::string& path, std::string_view bytes,
                                const std::vector<os::Staged>& files) override {
    return ++appends, inner_.append_and_stage(path, bytes, files);
  }
  Result<void> rename(const std::string& from, const std::string& to, os::NameFlush flush) override {
    return inner_.rename(from, to, flush);
  }
  Result<void> remove(const std::string& path, os::NameFlush flush) override {
    return ++others, inner_.remove(path, flush);
  }
  Result<void> append(const std::string& path, std::string_view bytes) override {
    return ++appends, inner_.append(path, bytes);
  }
  Result<void> truncate(const std::string& path, std::uint64_t length) override {
    return ++others, inner_.truncate(path, length);
  }
  Result<void> make_folder(const std::string& path) override { return inner_.make_folder(path); }

 private:
  os::ControlFolder& inner_;
};

TEST_F(ChainTest, StartsEmptyAndVerifies) {
  const Marks marks = chain.marks().value();
  EXPECT_EQ(marks.seq, 0U);
  EXPECT_EQ(marks.head, std::string(64, '0'));
  EXPECT_FALSE(verified().first_break.has_value());
  EXPECT_EQ(files.list("evidence").value().size(), 0U);
}

TEST_F(ChainTest, WritesCanonicalLinesThatAScriptCanCheck) {
  add("one", 3);
  add("two", 2);
  std::string before(64, '0');
  for (const std::string& line : lines()) {
    Json event = *parse_json(line);
    EXPECT_EQ(dump_canonical(event), line);
    EXPECT_EQ(event["prev"], before);
    before = event["hash"];
    event.erase("hash");
    EXPECT_EQ(sha256_hex(dump_canonical(event)), before);
  }
  EXPECT_EQ(lines().size(), 2U);
}

TEST_F(ChainTest, CarriesTheLargestGenerationAndEpochInTheLastLine) {
  Event event = event_of("epoch", UINT64_MAX);
  event.epoch = Epoch{7};
  ASSERT_TRUE(granted(chain.append({event}, kNow)));
  add("later", 4);
  const Marks marks = Chain(files).marks().value();
  EXPECT_EQ(marks.high_water.value, UINT64_MAX);
  EXPECT_EQ(marks.control_epoch.value, 7U);
  EXPECT_EQ(marks.seq, 2U);
  EXPECT_EQ(parse_json(lines()[1])->at("high_water"), "18446744073709551615");
}

TEST_F(ChainTest, AppendsABatchWithOneAppend) {
  CountingFolder counting(files);
  Chain counted(counting);
  Event first = event_of("first");
  first.id = new_event_id();
  const auto ids = counted.append({first, event_of("second", 1, {first.id}), event_of("third")}, kNow);
  ASSERT_EQ(ids.value().size(), 3U);
  EXPECT_EQ(ids.value()[0], first.id);
  EXPECT_EQ(counting.appends, 1);
  EXPECT_EQ(verified().events, 3U);
}

TEST_F(ChainTest, FindsItsEndFromTheTailAloneAndAsksOnlyForTheSizeAfterwards) {
  for (int number = 0; number < 1000; ++number) add("event", static_cast<std::uint64_t>(number));
  ASSERT_GT(text().size(), 200'000U);
  CountingFolder counting(files);
  Chain counted(counting);
  EXPECT_EQ(counted.marks().value().seq, 1000U);
  EXPECT_LE(counting.bytes_read, 65536U);
  EXPECT_EQ(counting.reads, 1);
  counting.sizes = counting.lists = counting.reads = 0;
  EXPECT_EQ(counted.marks().value().high_water.value, 999U);
  EXPECT_EQ(counting.sizes, 1);
  EXPECT_EQ(counting.lists + counting.reads, 0);
}

TEST_F(ChainTest, FindsALastLineLongerThanTheTail) {
  ASSERT_TRUE(granted(chain.append({event_of("short"), large_event()}, kNow)));
  EXPECT_EQ(Chain(files).marks().value().seq, 2U);
}

TEST_F(ChainTest, GoesOnFromWhatAnotherProcessAppended) {
  add("one", 1);
  Chain other(files);
  ASSERT_TRUE(granted(other.append({event_of("two", 9)}, kNow)));
  EXPECT_EQ(chain.marks().value().high_water.value, 9U);
  add("three");
  ASSERT_TRUE(granted(other.append({event_of("four")}, kNow)));
  EXPECT_EQ(verified().events, 4U);
  EXPECT_FALSE(verified().first_break.has_value());
}

TEST_F(ChainTest, BeginsANewSegmentAtFourMebibytesAndOtherProcessesSeeIt) {
  Chain other(files);
  for (int number = 0; number < 3; ++number) ASSERT_TRUE(granted(chain.append({large_event()}, kNow)));
  EXPECT_EQ(other.marks().value().seq, 3U);
  EXPECT_EQ(text(kSecond), "(none)");
  add("four", 4);
  EXPECT_EQ(lines(kSecond).size(), 1U);
  EXPECT_EQ(other.marks().value().seq, 4U);
  EXPECT_EQ(other.marks().value().high_water.value, 4U);
  ASSERT_TRUE(granted(other.append({event_of("five")}, kNow)));
  EXPECT_EQ(verified().events, 5U);
  EXPECT_FALSE(verified().first_break.has_value());
}

TEST_F(ChainTest, GoesOnInASegmentThatACrashLeftEmpty) {
  add("one", 5);
  files.plant(kSecond, "");
  EXPECT_EQ(Chain(files).marks().value().high_water.value, 5U);
  Chain after(files);
  ASSERT_TRUE(granted(after.append({event_of("two")}, kNow)));
  EXPECT_EQ(verified().events, 2U);
  EXPECT_FALSE(verified().first_break.has_value());
}

TEST_F(ChainTest, ShowsAnEventWithItsChildren) {
  const std::string parent = add("parent");
  const std::string child = add("child", 0, {parent});
  add("other");
  const Json shown = chain.show(parent).value();
  EXPECT_EQ(shown["kind"], "parent");
  EXPECT_EQ(shown["children"], Json::array({child}));
  EXPECT_EQ(chain.show(child).value()["children"], Json::array());
  EXPECT_TRUE(refused_with(chain.show("ev-none"), Code::not_found));
  EXPECT_TRUE(Chain(files).contains(child).value());
  EXPECT_FALSE(Chain(files).contains("ev-none").value());
}

TEST_F(ChainTest, GivesItsSegmentsForAPackage) {
  add("one");
  files.plant("evidence/torn-1-1", "x");
  const auto segments = chain.segments().value();
  ASSERT_EQ(segments.size(), 1U);
  EXPECT_EQ(segments[0].first, "log-000001.jsonl");
  EXPECT_EQ(segments[0].second, text());
  EXPECT_FALSE(Chain::verify_lines(segments).value().first_break.has_value());
}

TEST_F(ChainTest, StopsWhereTheVisitorHasSeenEnough) {
  for (int number = 0; number < 5; ++number) add("event");
  int seen = 0;
  ASSERT_TRUE(granted(chain.each([&](const Json&) { return ++seen < 2; })));
  EXPECT_EQ(seen, 2);
}

TEST_F(ChainTest, KeepsAParentThatNobodyHasOutOfTheChain) {
  const std::string known = add("one");
  // The text of an id within the facts of an event is no event.
  Event fake = event_of("fake");
  fake.facts = {{"high_water", "1"}, {"id", "ev-planted"}, {"kind", "x"}};
  ASSERT_TRUE(granted(chain.append({fake}, kNow)));
  Chain fresh(files);
  ASSERT_TRUE(granted(fresh.append({event_of("two", 0, {"ev-nowhere", known, "ev-planted"})}, kNow)));
  EXPECT_FALSE(verified().first_break.has_value());
  const Json event = events().back();
  EXPECT_EQ(event["parents"], Json::array({known}));
  EXPECT_EQ(event["facts"]["unknown_parents"], Json::array({"ev-nowhere", "ev-planted"}));
}

TEST_F(ChainTest, FindsAParentInAnEarlierSegment) {
  const std::string old = add("old");
  for (int number = 0; number < 3; ++number) ASSERT_TRUE(granted(chain.append({large_event()}, kNow)));
  add("new segment");
  Chain fresh(files);
  ASSERT_TRUE(granted(fresh.append({event_of("child", 0, {old})}, kNow)));
  EXPECT_EQ(events().back()["parents"], Json::array({old}));
}

TEST_F(ChainTest, RefusesAnIdThatWasUsed) {
  Event event = event_of("one");
  event.id = "ev-0000000000000001";
  ASSERT_TRUE(granted(chain.append({event}, kNow)));
  EXPECT_TRUE(refused_with(chain.append({event}, kNow), Code::request_malformed));
  EXPECT_TRUE(refused_with(Chain(files).append({event, event}, kNow), Code::request_malformed));
  EXPECT_EQ(verified().events, 1U);
}

TEST_F(ChainTest, NeverWritesALineThatItWouldNotRead) {
  Event deep = event_of("deep");
  for (int level = 0; level < 100; ++level) deep.facts = Json{{"in", deep.facts}};
  Event foreign = event_of("foreign \xFF");
  foreign.facts = {{"bytes", "a\xFF\n"}, {"number", 1e300}, {"large", UINT64_MAX}};
  foreign.scope = "session://\xE2\x80\xA8";
  Event text_only = event_of("no object");
  text_only.facts = "text";
  text_only.parents = {"ev-nowhere"};
  ASSERT_TRUE(granted(chain.append({deep, foreign, text_only}, kNow)));
  EXPECT_EQ(verified().events, 3U);
  EXPECT_FALSE(verified().first_break.has_value());
  EXPECT_EQ(Chain(files).marks().value().seq, 3U);
}

// --- torn by a crash

TEST_F(ChainTest, NamesATornLastLineUntilItIsSetAside) {
  add("one");
  files.plant(kFirst, text() + "{\"at\":\"20");
  expect_broken(2, 2, "a torn line");
  Chain after(files);
  ASSERT_TRUE(granted(after.append({}, kNow)));
  EXPECT_FALSE(verified().first_break.has_value());
  EXPECT_EQ(text("evidence/torn-2-1"), "{\"at\":\"20");
  const std::vector<Json> seen = events();
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[1]["kind"], "evidence_tail_set_aside");
  EXPECT_EQ(seen[1]["facts"]["segment"], "log-000001.jsonl");
  EXPECT_EQ(seen[1]["facts"]["files"][0],
            (Json{{"path", "evidence/torn-2-1"}, {"byte_count", 9}, {"sha256", sha256_hex("{\"at\":\"20")}}));
}

TEST_F(ChainTest, SetsAWholeLineWithoutItsNewlineAsideToo) {
  add("one");
  const std::string line = lines()[0];
  files.plant(kFirst, line);
  Chain after(files);
  const auto ids = after.append({event_of("two")}, kNow);
  ASSERT_EQ(ids.value().size(), 1U);
  EXPECT_EQ(text("evidence/torn-1-1"), line);
  EXPECT_EQ(events().size(), 2U);
  EXPECT_EQ(events()[1]["id"], ids.value()[0]);
  EXPECT_FALSE(verified().first_break.has_value());
}

TEST_F(ChainTest, TellsOfTornBytesThatAnEarlierProcessSetAsideAndNeverTold) {
  add("one");
  files.plant("evidence/torn-2-1", "bytes");
  ASSERT_TRUE(granted(Chain(files).append({event_of("two")}, kNow)));
  EXPECT_EQ(events()[1]["kind"], "evidence_tail_set_aside");
  ASSERT_TRUE(granted(Chain(files).append({event_of("three")}, kNow)));
  EXPECT_EQ(events().size(), 4U);  // told once
}

TEST_F(ChainTest, DoesNothingWithoutEventsWhereNothingIsTorn) {
  add("one");
  const std::string before = text();
  ASSERT_TRUE(granted(Chain(files).append({}, kNow)));
  EXPECT_EQ(text(), before);
}

TEST_F(ChainTest, IsAsLongAsBeforeWhereAnAppendFails) {
  add("one");
  const std::string before = text();
  for (int step = 1; step <= 2; ++step) {  // the write, the flush
    files.fail_at(step, ENOSPC);
    EXPECT_TRUE(refused_with(chain.append({event_of("two")}, kNow), Code::state_persist_failed));
    EXPECT_EQ(text(), before);
  }
  add("three");
  EXPECT_EQ(verified().events, 2U);
  EXPECT_FALSE(verified().first_break.has_value());
}

TEST_F(ChainTest, NeverFollowsALink) {
  files.plant_link(kFirst);
  EXPECT_TRUE(refused_with(chain.append({event_of("one")}, kNow), Code::workspace_insecure));
  EXPECT_TRUE(refused_with(chain.verify(), Code::workspace_insecure));
}

// --- the document

TEST(EvidenceDocument, HasAnExampleThatVerifies) {
  std::ifstream file(std::string(HOLDFAST_SOURCE_DIR) + "/docs/formats/evidence.md");
  const std::string document((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const std::string fence = "```jsonl\n";
  const std::size_t begin = document.find(fence);
  ASSERT_NE(begin, std::string::npos);
  const std::size_t end = document.find("```", begin + fence.size());
  const auto found =
      Chain::verify_lines({{"log-000001.jsonl", document.substr(begin + fence.size(), end - begin - fence.size())}});
  EXPECT_FALSE(found.value().first_break.has_value()) << found.value().to_json();
  EXPECT_EQ(found.value().events, 3U);
  EXPECT_NE(document.find(found.value().head), std::string::npos);
}

}  // namespace
}  // namespace holdfast::evidence
