#include "surfaces/cli/print.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "surfaces/cli/text_layout.h"

namespace holdfast::cli {
namespace {

std::int64_t at(const std::string& wall) {
  std::int64_t wall_us = 0;
  EXPECT_TRUE(parse_wall(wall, wall_us));
  return wall_us;
}
const std::int64_t kNow = at("2026-10-31T18:00:00Z");

Json lease(const std::string& resource, bool enforced) {
  return Json{{"namespace", "file"},
              {"resource_id", resource},
              {"owner", "alice"},
              {"task_id", "task-1"},
              {"generation", "14"},
              {"started_at", "2026-10-31T17:59:50.000001Z"},
              {"expires_at", "2026-10-31T18:14:50.000001Z"},
              {"ttl_seconds", 900},
              {"liveness", "alive"},
              {"os_lock",
               {{"enforced", enforced},
                {"mechanism", enforced ? "kernel_lease" : "none"},
                {"denies", {"open_write", "truncate", "rename", "unlink", "link", "create", "metadata", "mmap_store"}},
                {"fault", nullptr},
                {"reason", enforced ? Json(nullptr) : Json("short_lived_process_cannot_hold_a_handle")}}}};
}

void expect_narrow(const std::string& text) {
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = text.find('\n', start);
    ASSERT_NE(end, std::string::npos) << "no newline at the end:\n" << text;
    EXPECT_LE(width_of(std::string_view(text).substr(start, end - start)), kColumns) << text;
    start = end + 1;
  }
}

TEST(HumanLeases, AreATableOfEightyColumns) {
  Json dead = lease("project:/very/deep/" + std::string(90, 'x') + "/b.txt", false);
  dead["liveness"] = {{"holder", "dead"}, {"client", nullptr}};
  dead["owner"] = std::string(60, 'o');
  dead["generation"] = "18446744073709551615";
  const std::string text = human_leases(Json{{"leases", {lease("project:/a.txt", true), dead}}}, kNow);
  expect_narrow(text);
  EXPECT_NE(text.find("SCOPE"), std::string::npos);
  EXPECT_NE(text.find("14m 50s"), std::string::npos);
  EXPECT_NE(text.find("kernel_lease"), std::string::npos);
  EXPECT_NE(text.find("proven dead"), std::string::npos);
  EXPECT_EQ(human_leases(Json{{"leases", Json::array()}}, kNow), "no leases\n");
}

TEST(HumanLeases, NeverCallDeadWhatIsUnknown) {
  Json unknown = lease("project:/a", true);
  unknown["liveness"] = "unknown";
  EXPECT_EQ(human_leases(Json{{"leases", {unknown}}}, kNow).find("dead"), std::string::npos);
  unknown.erase("liveness");
  EXPECT_NE(human_leases(Json{{"leases", {unknown}}}, kNow).find("unknown"), std::string::npos);
}

TEST(HumanLeases, ShowAFaultInsteadOfAGuard) {
  Json faulted = lease("project:/a", false);
  faulted["os_lock"]["fault"] = "destination_guard_lost";
  EXPECT_NE(human_leases(Json{{"leases", {faulted}}}, kNow).find("fault"), std::string::npos);
}

TEST(HumanLeases, SayWhatHasEndedAndWhatHasNoServer) {
  Json revoked = lease("project:/a", false);
  revoked["state"] = "revoked";
  revoked["liveness"] = {{"holder", "not_needed"}, {"client", nullptr}};
  const std::string text = human_leases(Json{{"leases", {revoked}}}, kNow);
  EXPECT_NE(text.find("revoked"), std::string::npos);
  EXPECT_NE(text.find("no server"), std::string::npos);
}

TEST(HumanStatus, ShowsTheWorkspaceAtAGlanceAndWhatIsNotSound) {
  const Json document = {
      {"workspace_id", "ws-1"},
      {"file_system", {{"name", "ext4"}, {"local", true}}},
      {"server", {{"process", {{"pid", 42}}}}},
      {"leases",
       {{"held", 1},
        {"live", 1},
        {"enforced", 0},
        {"holders",
         {{{"scope", "file://project:/a"},
           {"owner", "alice"},
           {"task_id", "t"},
           {"generation", "3"},
           {"remaining_seconds", 60},
           {"liveness", "alive"}}}}}},
      {"generations", {{"sound", false}, {"refusal", {{"code", "generation_store_missing"}, {"message", "gone"}}}}},
      {"epoch", {{"control_epoch", "2"}, {"break_glass", true}}},
      {"evidence", {{"events", "7"}}},
      {"waiting", {{"reconcile", 1}, {"quarantine", 2}}},
      {"anchor", "none: a rollback of the whole snapshot is not detected"}};
  const std::string text = human_status(document);
  expect_narrow(text);
  for (const char* part : {"pid 42", "generation_store_missing", "BREAK-GLASS ENGAGED",
                           "1 to reconcile, 2 in quarantine", "rollback", "project:/a"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(HumanAcquired, TellsWhatIsHeldHowLongHowWellAndTheKeysToSayAgain) {
  const std::string text = human_acquired(Json{{"leases", {lease("project:/a b", false)}}, {"granted", "new"}}, kNow);
  expect_narrow(text);
  EXPECT_NE(text.find("project:/a b"), std::string::npos);
  EXPECT_NE(text.find("in 14m 50s"), std::string::npos);
  EXPECT_NE(text.find("not enforced: short lived process"), std::string::npos);
  EXPECT_NE(text.find("--owner alice --task task-1 --generation 14"), std::string::npos);
  EXPECT_NE(text.find("--started-at 2026-10-31T17:59:50.000001Z"), std::string::npos);
}

TEST(HumanReleased, SaysLoudlyWhatWasKept) {
  const Json document = {{"released", "project:/a"},
                         {"content_mismatch", true},
                         {"amber_kind", "quarantine_ungated"},
                         {"quarantine_id", "q-1"},
                         {"content_check",
                          {{"status", "mismatch"},
                           {"baseline_source", "gated_write_post_sha256"},
                           {"expected_sha256", std::string(64, 'a')},
                           {"actual_sha256", std::string(64, 'b')}}},
                         {"warning", "Divergent bytes preserved in Amber and released_with_ungated_content recorded"}};
  const std::string text = human_released(document);
  expect_narrow(text);
  EXPECT_NE(text.find(std::string(64, 'b')), std::string::npos);
  EXPECT_NE(text.find("holdfast quarantine show q-1"), std::string::npos);
  EXPECT_NE(text.find("warning"), std::string::npos);
}

TEST(HumanReleased, NamesWhatChangedBelowAFolder) {
  Json changed = Json::array();
  for (int number = 0; number < 12; ++number) {
    changed.push_back({{"path", "f" + std::to_string(number)},
                       {"how", "ungated"},
                       {"expected", number == 0 ? Json() : Json{{"kind", "file"}}},
                       {"actual", number == 1 ? Json() : Json{{"kind", "file"}}}});
  }
  changed.push_back({{"path", "mine"}, {"how", "gated"}});
  const Json document = {
      {"released", "project:/d"},
      {"content_mismatch", true},
      {"content_check", {{"baseline_source", "manifest"}, {"changed", changed}, {"ungated", 12}, {"gated", 1}}}};
  const std::string text = human_released(document);
  expect_narrow(text);
  EXPECT_NE(text.find("f0 (new)"), std::string::npos) << text;
  EXPECT_NE(text.find("f1 (gone)"), std::string::npos);
  EXPECT_NE(text.find("12 in all"), std::string::npos) << text;
  EXPECT_EQ(text.find("f10"), std::string::npos);
  EXPECT_EQ(text.find("mine"), std::string::npos);
}

TEST(HumanTimeline, ShowsDayTimeKindScopeAndWhatMatters) {
  const Json events = {{{"id", "ev-1"},
                        {"at", "2026-10-31T18:00:01.5Z"},
                        {"kind", "lease_acquired"},
                        {"scope", "file://project:/a"},
                        {"facts", {{"owner", "alice"}, {"generation", "14"}}}},
                       {{"unreadable", true}, {"segment", "log-000001.jsonl"}, {"line", 2}}};
  const std::string text = human_timeline(Json{{"events", events}});
  expect_narrow(text);
  EXPECT_EQ(text.find("2026-10-31 (UTC)\n18:00:01  lease acquired  project:/a\n"), 0U) << text;
  EXPECT_NE(text.find("owner alice, generation 14"), std::string::npos);
  EXPECT_NE(text.find("unreadable line 2"), std::string::npos);
}

TEST(HumanLists, SayWhenThereIsNothing) {
  EXPECT_EQ(human_reconcile_list(Json{{"reconcile", Json::array()}}), "nothing waits for a decision\n");
  EXPECT_EQ(human_quarantine_list(Json{{"quarantine", Json::array()}}), "nothing is in quarantine\n");
}

TEST(HumanDocument, NestsByIndentationWithinEightyColumns) {
  const Json document = {{"workspace", std::string(200, 'w')},
                         {"server", {{"pid", 12}, {"enforces", {"a", "b"}}}},
                         {"leases", {{{"scope", "x"}}, {{"scope", "y"}}}},
                         {"nothing", nullptr}};
  const std::string text = human_document(document);
  expect_narrow(text);
  EXPECT_NE(text.find("server\n  enforces  a, b\n  pid       12\n"), std::string::npos) << text;
}

TEST(HumanRefusal, TellsWhoHoldsItAndWhatToDoNext) {
  const Refusal refusal(Code::lease_scope_conflict, "project:/a is held",
                        Json{{"holders",
                              {{{"scope", "file://project:/a"},
                                {"owner", "alice"},
                                {"task_id", "t"},
                                {"generation", "14"},
                                {"pid", 7},
                                {"since", "2026-10-31T18:00:00Z"},
                                {"until", "2026-10-31T18:15:00Z"}}}}});
  const std::string text = human_refusal(refusal);
  expect_narrow(text);
  EXPECT_EQ(text.find("refused: project:/a is held (lease_scope_conflict)\n"), 0U) << text;
  EXPECT_NE(text.find("held by project:/a: alice, task t, generation 14, pid 7"), std::string::npos) << text;
  EXPECT_NE(text.find("next: wait for the holder"), std::string::npos);
}

TEST(EveryPrinter, SurvivesADocumentOfAnotherShape) {
  for (const Json& odd :
       {Json(), Json::array(), Json("text"), Json{{"leases", 1}}, Json{{"leases", {1, nullptr, {{"a", 1}}}}},
        Json{{"events", {{{"facts", 3}}, 1}}}, Json{{"reconcile", {{{"id", {1, 2}}}, "x"}}},
        Json{{"quarantine", {{{"byte_count", -1}}}}}, Json{{"lease", "x"}, {"content_check", 1}},
        Json{{"leases", {{{"os_lock", {{"enforced", "yes"}}}, {"liveness", 4}, {"owner", {1}}}}}}}) {
    for (const char* verb : {"scope", "init", "acquire", "heartbeat", "release", "leases", "write", "edit", "status",
                             "reconcile_list", "quarantine_list", "evidence_log", "recover"}) {
      const std::string text = human_answer(verb, odd, kNow);
      EXPECT_LT(text.size(), 4'096U) << verb;
    }
  }
}

}  // namespace
}  // namespace holdfast::cli
