#include "evidence/records.h"

#include <gtest/gtest.h>

#include <set>

#include "base/digest.h"
#include "base/json.h"
#include "os/fake/control_folder.h"
#include "support/refused_with.h"

namespace holdfast::evidence {
namespace {

using support::granted;
using support::refused_with;

constexpr auto kQuarantine = RecordKind::quarantine;
constexpr auto kReconcile = RecordKind::reconcile;

class RecordsTest : public testing::Test {
 protected:
  os::FakeControlFolder files;
  Records records{files};
  const std::string id = "q-0123456789abcdef";
};

TEST_F(RecordsTest, GivesBackWhatWasPut) {
  ASSERT_TRUE(granted(records.put(kQuarantine, id, {{"at", "2026"}, {"sha256", "x"}})));
  EXPECT_EQ(records.get(kQuarantine, id).value(), (Json{{"at", "2026"}, {"sha256", "x"}, {"id", id}}));
  ASSERT_TRUE(granted(records.put(kQuarantine, id, {{"at", "2027"}})));
  EXPECT_EQ(records.get(kQuarantine, id).value()["at"], "2027");
  EXPECT_EQ(records.all(kQuarantine).value().size(), 1U);
}

TEST_F(RecordsTest, KeepsTheTwoKindsApart) {
  ASSERT_TRUE(granted(records.put(kQuarantine, id, Json::object())));
  EXPECT_TRUE(refused_with(records.get(kReconcile, id), Code::not_found));
  EXPECT_TRUE(records.all(kReconcile).value().empty());
}

TEST_F(RecordsTest, MakesIdsThatItAcceptsAndThatDiffer) {
  std::set<std::string> seen;
  for (int number = 0; number < 100; ++number) {
    const std::string made = Records::new_id(kReconcile);
    EXPECT_TRUE(granted(records.put(kReconcile, made, Json::object())));
    EXPECT_TRUE(seen.insert(made).second);
  }
}

TEST_F(RecordsTest, NeverMakesAPathOfAForeignId) {
  for (const std::string& foreign :
       {std::string(), std::string("q-"), std::string("q-0123456789abcde"), std::string("q-0123456789ABCDEF"),
        std::string("r-0123456789abcdef"), std::string("q-../../../secrets"), std::string("../quarantine/") + id,
        id + "/", id + std::string("\0", 1)}) {
    EXPECT_TRUE(refused_with(records.get(kQuarantine, foreign), Code::not_found)) << foreign;
    EXPECT_TRUE(refused_with(records.put(kQuarantine, foreign, Json::object()), Code::request_malformed)) << foreign;
  }
  EXPECT_TRUE(refused_with(records.put(kQuarantine, id, Json::array()), Code::request_malformed));
}

TEST_F(RecordsTest, ListsOldestFirst) {
  ASSERT_TRUE(granted(records.put(kQuarantine, "q-000000000000000a", {{"at", "2026-03"}})));
  ASSERT_TRUE(granted(records.put(kQuarantine, "q-000000000000000b", {{"at", "2026-01"}})));
  ASSERT_TRUE(granted(records.put(kQuarantine, "q-000000000000000c", {{"at", "2026-02"}})));
  ASSERT_TRUE(granted(records.put(kQuarantine, "q-0000000000000001", {{"at", "2026-03"}})));
  const auto all = records.all(kQuarantine).value();
  std::string order;
  for (const Json& record : all) order += record["id"].get<std::string>().back();
  EXPECT_EQ(order, "bc1a");
}

TEST_F(RecordsTest, NamesARecordThatCannotBeRead) {
  ASSERT_TRUE(granted(records.put(kQuarantine, "q-000000000000000a", {{"at", "2026"}})));
  const std::pair<const char*, const char*> bad[] = {
      {"q-0000000000000001", "{\"id\":\"q-00000"},
      {"q-0000000000000002", "{\"id\":\"q-0000000000000002\",\"id\":\"q-0000000000000002\"}"},
      {"q-0000000000000003", "[]"},
      {"q-0000000000000004", "{\"id\":\"q-000000000000000a\"}"},
      {"q-0000000000000005", ""}};
  for (const auto& [name, text] : bad) {
    files.plant(std::string("evidence/quarantine/") + name + ".json", text);
    EXPECT_TRUE(refused_with(records.get(kQuarantine, name), Code::state_unreadable)) << text;
  }
  const auto all = records.all(kQuarantine).value();
  ASSERT_EQ(all.size(), 6U);
  EXPECT_EQ(all[0]["id"], "q-0000000000000001");
  EXPECT_EQ(all[0]["unreadable"], true);
  EXPECT_FALSE(all[0]["reason"].get<std::string>().empty());
  EXPECT_EQ(all[5]["at"], "2026");
}

TEST_F(RecordsTest, PassesOverFilesThatAreNoRecords) {
  files.plant("evidence/quarantine/notes.txt", "x");
  files.plant("evidence/quarantine/q-1.json", "{}");
  files.plant("evidence/quarantine/q-0123456789abcdef.json.staged", "{");
  EXPECT_TRUE(records.all(kQuarantine).value().empty());
}

TEST_F(RecordsTest, LeavesTheOldRecordOrTheNewOneWhereverItIsCut) {
  ASSERT_TRUE(granted(records.put(kQuarantine, id, {{"version", 1}})));
  const int before = files.steps();
  ASSERT_TRUE(granted(records.put(kQuarantine, id, {{"version", 1}})));
  const int steps = files.steps() - before;
  for (int step = 1; step <= steps; ++step) {
    for (const auto loss : os::FakeControlFolder::kEveryLoss) {
      os::FakeControlFolder machine;
      ASSERT_TRUE(granted(Records(machine).put(kQuarantine, id, {{"version", 1}})));
      machine.crash_at(step);
      EXPECT_FALSE(Records(machine).put(kQuarantine, id, {{"version", 2}}).ok());
      const auto after = machine.power_cut(loss);
      const auto all = Records(*after).all(kQuarantine).value();
      ASSERT_EQ(all.size(), 1U) << step;
      EXPECT_TRUE(all[0].value("version", 0) == 1 || all[0].value("version", 0) == 2) << all[0];
    }
  }
}

constexpr const char* kScope = "file://project:/a.txt";

Json record_of(const std::string& state, const std::string& scope = kScope) {
  return Json{{"at", "2026"}, {"scope", scope}, {"state", state}};
}
std::string id_number(int number) {
  std::string digits = std::to_string(number);
  return "r-" + std::string(16 - digits.size(), '0') + digits;
}
std::vector<std::string> open_on(Records& records, const std::string& scope = kScope) {
  const auto found = records.open_on(scope);
  EXPECT_TRUE(granted(found));
  std::vector<std::string> ids;
  for (const Json& record : found.ok() ? *found : std::vector<Json>()) ids.push_back(text_member(record, "id"));
  return ids;
}
using Ids = std::vector<std::string>;

TEST_F(RecordsTest, FindsWhatIsOpenOnAScopeUntilItIsResolved) {
  ASSERT_TRUE(granted(records.put(kReconcile, id_number(1), record_of("open"))));
  ASSERT_TRUE(granted(records.put(kReconcile, id_number(2), record_of("open", "file://project:/b.txt"))));
  ASSERT_TRUE(granted(records.put(kReconcile, id_number(3), record_of("open"))));
  EXPECT_EQ(open_on(records), (Ids{id_number(1), id_number(3)}));
  ASSERT_TRUE(granted(records.put(kReconcile, id_number(1), record_of("resolved"))));
  EXPECT_EQ(open_on(records), Ids{id_number(3)});
  ASSERT_TRUE(granted(records.put(kReconcile, id_number(3), record_of("resolved"))));
  EXPECT_EQ(open_on(records), Ids());
  EXPECT_EQ(open_on(records, "file://project:/b.txt"), Ids{id_number(2)});
  EXPECT_EQ(records.all(kReconcile).value().size(), 3U);
}

TEST_F(RecordsTest, ReadsNothingForAScopeWithoutOpenOnesHoweverManyAreResolved) {
  ASSERT_TRUE(granted(records.give_open_names()));
  for (int number = 0; number < 200; ++number) {
    const std::string scope = number % 2 == 0 ? kScope : "file://project:/other";
    ASSERT_TRUE(granted(records.put(kReconcile, id_number(number), record_of("open", scope))));
    ASSERT_TRUE(granted(records.put(kReconcile, id_number(number), record_of("resolved", scope))));
  }
  const int before = files.files_read();
  EXPECT_EQ(open_on(records), Ids());
  EXPECT_EQ(files.files_read(), before);
  ASSERT_TRUE(granted(records.put(kReconcile, id_number(999), record_of("open"))));
  const int later = files.files_read();
  EXPECT_EQ(open_on(records), Ids{id_number(999)});
  EXPECT_EQ(files.files_read() - later, 2) << "the list and the record";
}

TEST_F(RecordsTest, NoCrashLeavesAnOpenRecordUnlisted) {
  const auto act = [](os::ControlFolder& disk) -> Result<void> {
    Records on(disk);
    HF_CHECK(on.give_open_names());
    HF_CHECK(on.put(kReconcile, id_number(1), record_of("open")));
    HF_CHECK(on.put(kReconcile, id_number(2), record_of("open")));
    HF_CHECK(on.put(kReconcile, id_number(1), record_of("resolved")));
    return on.put(kReconcile, id_number(2), record_of("resolved"));
  };
  os::FakeControlFolder counted;
  ASSERT_TRUE(granted(act(counted)));
  for (int step = 1; step <= counted.steps() + 1; ++step) {
    for (const auto loss : os::FakeControlFolder::kEveryLoss) {
      SCOPED_TRACE("step " + std::to_string(step) + ", loss " + std::to_string(static_cast<int>(loss)));
      os::FakeControlFolder disk;
      disk.crash_at(step);
      (void)act(disk);
      const auto left = disk.power_cut(loss);
      Records after(*left);
      Ids open;
      const auto every = after.all(kReconcile);
      ASSERT_TRUE(granted(every));
      for (const Json& record : *every) {
        if (text_member(record, "state") == "open") open.push_back(text_member(record, "id"));
      }
      EXPECT_EQ(open_on(after), open);
    }
  }
}

TEST_F(RecordsTest, OfAnOlderWorkspaceListsWhatIsOpenOnce) {
  for (int number = 1; number <= 20; ++number) {
    Json record = record_of(number == 7 ? "open" : "resolved");
    record["id"] = id_number(number);
    files.plant("evidence/reconcile/" + id_number(number) + ".json", dump_canonical(record) + "\n");
  }
  EXPECT_EQ(open_on(records), Ids{id_number(7)});
  const int before = files.files_read();
  EXPECT_EQ(open_on(records), Ids{id_number(7)});
  EXPECT_EQ(files.files_read() - before, 2);
}

TEST_F(RecordsTest, OneThatCannotBeReadIsOpenWhereItIsListedAndEverywhereBeforeThereAreLists) {
  files.plant("evidence/reconcile/" + id_number(1) + ".json", "{");
  EXPECT_EQ(open_on(records), Ids{id_number(1)});
  EXPECT_EQ(records.open_on("file://project:/b.txt").value().front()["unreadable"], true);
  ASSERT_TRUE(granted(records.put(kReconcile, id_number(1), record_of("resolved"))));
  ASSERT_TRUE(granted(records.put(kReconcile, id_number(2), record_of("open"))));
  EXPECT_EQ(open_on(records), Ids{id_number(2)});
  files.plant("evidence/reconcile/" + id_number(2) + ".json", "{");
  EXPECT_EQ(records.open_on(kScope).value().front()["unreadable"], true);
  EXPECT_EQ(open_on(records, "file://project:/b.txt"), Ids());
}

TEST_F(RecordsTest, RefusesAnOpenListThatCannotBeRead) {
  ASSERT_TRUE(granted(records.put(kReconcile, id_number(1), record_of("open"))));
  for (const char* text :
       {"{", "[]", R"({"open":["../x"],"protocol":"holdfast.open-records.1","scope":"file://project:/a.txt"})",
        R"({"open":[],"protocol":"holdfast.open-records.1","scope":"file://project:/b.txt"})"}) {
    files.plant("evidence/reconcile/" + sha256_hex(kScope) + ".open", text);
    EXPECT_TRUE(refused_with(records.open_on(kScope), Code::state_unreadable)) << text;
  }
}

}  // namespace
}  // namespace holdfast::evidence
