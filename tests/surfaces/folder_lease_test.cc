// A leased folder has a baseline, its manifest, and its end is checked against it: what no gated write made is named
// and kept, and nothing is restored (CONTRACT sections 3 and 6).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>

#include "base/digest.h"
#include "base/json.h"
#include "support/workbench.h"

namespace holdfast {
namespace {

namespace fs = std::filesystem;

using support::Answer;
using support::eventually;
using support::Lease;
using support::operator+;
using support::Words;
using support::Workbench;

class FolderLease : public testing::Test {
 protected:
  FolderLease() {
    for (const char* folder : {"d/sub", "outside"}) fs::create_directories(bench_.at(folder));
    bench_.put("d/a.txt", "a");
    bench_.put("d/b.txt", "b");
    bench_.put("d/sub/c.txt", "c");
    fs::create_symlink("a.txt", bench_.at("d/link"));
    bench_.put("outside/x", "x");
  }

  // "how path" of each change, sorted.
  static Words changes(const Json& check) {
    Words found;
    for (const Json& change : check.at("changed")) {
      found.push_back(change.at("how").get<std::string>() + " " + change.at("path").get<std::string>());
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  Answer released(const Lease& lease) const {
    Answer answer = bench_.release(lease);
    EXPECT_TRUE(answer.ok()) << answer.text;
    return answer;
  }
  // Leases the folder, lets something happen and releases it: what the check says changed.
  Words changed_by(const std::function<void()>& act) const {
    const Lease lease = bench_.acquire("d");
    act();
    const Answer answer = released(lease);
    const Json& check = answer.at("content_check");
    EXPECT_EQ(check.at("status"), check.at("changed").empty() ? "match" : "mismatch") << check;
    EXPECT_EQ(answer.at("content_mismatch"), !check.at("changed").empty());
    return changes(check);
  }

  std::string amber(const std::string& bytes) const { return bench_.get(".squad/vault/amber/" + sha256_hex(bytes)); }
  static bool is_stopped(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    const std::string stat((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    return stat.find(") T ") != std::string::npos;
  }
  Json quarantine(const std::string& id) const { return bench_.run({"quarantine", "show", id}).document; }
  // content_check of the end of this generation, from the evidence.
  std::optional<Json> end_of(const Lease& lease) const {
    const Answer log = bench_.run({"evidence", "log"});
    for (const Json& event : log.at("events")) {
      const std::string kind = text_member(event, "kind");
      if (kind != "tenancy_ended" && kind != "released_with_ungated_content") continue;
      if (event.at("facts").at("generation") == lease.record.at("generation")) return event.at("facts");
    }
    return std::nullopt;
  }

  // The record on disk, changed by hand (no server runs).
  void change_record(const std::function<void(Json&)>& change) const {
    for (const auto& file : fs::directory_iterator(bench_.at(".squad/locks/write"))) {
      const std::string path = ".squad/locks/write/" + file.path().filename().string();
      Json record = *parse_json(bench_.get(path));
      change(record);
      bench_.put(path, dump_pretty(record));
    }
  }

  Workbench bench_;
};

TEST_F(FolderLease, CapturesAManifestThatIsInThePrimaryVault) {
  bench_.serve();
  const Lease lease = bench_.acquire("d");
  const Json& before = lease.record.at("pre_write");
  EXPECT_EQ(before.at("kind"), "folder");
  EXPECT_EQ(before.at("exists"), true);
  const std::string text = bench_.get(".squad/vault/primary/" + before.at("sha256").get<std::string>());
  const Json manifest = *parse_json(text);
  EXPECT_EQ(before.at("byte_count"), text.size());
  EXPECT_EQ(before.at("fnv1a"), fnv1a_hex(text));
  EXPECT_EQ(manifest.at("entries").size(), 5U);
  EXPECT_EQ(manifest.at("entries").at("sub/c.txt").at("sha256"), sha256_hex("c"));
}

TEST_F(FolderLease, MatchesWhereNothingChanged) {
  bench_.serve();
  const Lease lease = bench_.acquire("d");
  bench_.put("outside/x", "not below it");
  const Answer answer = released(lease);
  const Json& check = answer.at("content_check");
  EXPECT_EQ(check.at("status"), "match");
  EXPECT_EQ(check.at("baseline_source"), "manifest");
  EXPECT_EQ(check.at("expected_sha256"), lease.record.at("pre_write").at("sha256"));
  EXPECT_EQ(check.at("actual_sha256"), check.at("expected_sha256"));
  EXPECT_EQ(check.at("entries"), 5);
  EXPECT_EQ(answer.at("amber_kind"), "post_edit");
  EXPECT_EQ(answer.at("quarantine_id"), nullptr);
}

TEST_F(FolderLease, NamesEachKindOfChange) {
  bench_.serve();
  EXPECT_EQ(changed_by([&] { bench_.put("d/a.txt", "A"); }), Words{"ungated a.txt"});
  EXPECT_EQ(changed_by([&] { bench_.put("d/sub/new", "n"); }), Words{"ungated sub/new"});
  EXPECT_EQ(changed_by([&] { fs::remove(bench_.at("d/sub/new")); }), Words{"ungated sub/new"});
  EXPECT_EQ(changed_by([&] { fs::rename(bench_.at("d/b.txt"), bench_.at("d/sub/z")); }),
            (Words{"ungated b.txt", "ungated sub/z"}));
  EXPECT_EQ(changed_by([&] {
              fs::remove(bench_.at("d/link"));
              fs::create_symlink("elsewhere", bench_.at("d/link"));
            }),
            Words{"ungated link"});
  EXPECT_EQ(changed_by([&] {
              fs::remove(bench_.at("d/a.txt"));
              fs::create_directory(bench_.at("d/a.txt"));
            }),
            Words{"ungated a.txt"});
  EXPECT_EQ(changed_by([&] { fs::rename(bench_.at("d/sub"), bench_.at("d/sup")); }),
            (Words{"ungated sub", "ungated sub/c.txt", "ungated sub/z", "ungated sup", "ungated sup/c.txt",
                   "ungated sup/z"}));
  EXPECT_EQ(changed_by([&] { ASSERT_EQ(0, ::chmod(bench_.at("d/sup/z").c_str(), 0777)); }), Words{});
  EXPECT_EQ(changed_by([&] {
              bench_.put("d/sup/z", "other");
              bench_.put("d/sup/z", "b");  // and back: the same bytes
            }),
            Words{});
  EXPECT_EQ(changed_by([&] { ASSERT_EQ(0, ::mkfifo(bench_.at("d/pipe").c_str(), 0600)); }), Words{"ungated pipe"});
  EXPECT_TRUE(bench_.evidence_verifies());
}

TEST_F(FolderLease, KeepsTheBytesOfEveryUngatedFileAndTheManifestAndRestoresNothing) {
  bench_.serve();
  const Lease lease = bench_.acquire("d");
  bench_.put("d/a.txt", "changed past the lease");
  bench_.put("d/sub/new", "made past the lease");
  fs::remove(bench_.at("d/b.txt"));
  const Answer answer = released(lease);
  EXPECT_EQ(answer.at("amber_kind"), "quarantine_ungated");
  EXPECT_NE(answer.at("warning"), "");
  EXPECT_EQ(answer.at("content_check").at("ungated"), 3);
  EXPECT_EQ(amber("changed past the lease"), "changed past the lease");
  EXPECT_EQ(amber("made past the lease"), "made past the lease");
  EXPECT_EQ(bench_.get("d/a.txt"), "changed past the lease");
  EXPECT_FALSE(fs::exists(bench_.at("d/b.txt")));
  const std::string id = answer.at("quarantine_id");
  const Json record = quarantine(id);
  EXPECT_EQ(record.at("kind"), "quarantine_ungated");
  EXPECT_EQ(record.at("files_total"), 2);
  EXPECT_EQ(record.at("files").at(0),
            (Json{{"path", "a.txt"}, {"sha256", sha256_hex("changed past the lease")}, {"byte_count", 22}}));
  EXPECT_EQ(record.at("files").at(1).at("path"), "sub/new");
  ASSERT_TRUE(bench_.run({"quarantine", "export", id, "--to", bench_.at("outside/kept")}).status == 0);
  EXPECT_EQ(sha256_hex(bench_.get("outside/kept")), answer.at("content_check").at("actual_sha256"));
  EXPECT_TRUE(end_of(lease)->at("content_check").at("ungated") == 3);
  // The next tenancy begins with what is there.
  EXPECT_EQ(changed_by([] {}), Words{});
}

TEST_F(FolderLease, AnswersForWhatGatedWritesBelowItMade) {
  bench_.serve();
  const Lease lease = bench_.acquire("d");
  const Lease nested = bench_.acquire("d/a.txt");
  ASSERT_TRUE(bench_.write(nested, "gated").ok());
  EXPECT_EQ(bench_.release(lease).code(), "nested_lease_held");
  released(nested);
  const Lease made = bench_.acquire("d/sub/made");
  ASSERT_TRUE(bench_.write(made, "made", {"--preimage", "absent"}).ok());
  released(made);
  const Answer answer = released(lease);
  const Json& check = answer.at("content_check");
  EXPECT_EQ(check.at("status"), "match") << check;
  EXPECT_EQ(changes(check), (Words{"gated a.txt", "gated sub/made"}));
  EXPECT_EQ(check.at("gated"), 2);
  EXPECT_EQ(answer.at("content_mismatch"), false);
}

TEST_F(FolderLease, DoesNotAnswerForAForeignWriteAfterAGatedOne) {
  bench_.serve();
  const Lease lease = bench_.acquire("d");
  const Lease nested = bench_.acquire("d/a.txt");
  ASSERT_TRUE(bench_.write(nested, "gated").ok());
  released(nested);
  bench_.put("d/a.txt", "foreign");
  const Answer answer = released(lease);
  EXPECT_EQ(changes(answer.at("content_check")), Words{"ungated a.txt"});
  EXPECT_EQ(amber("foreign"), "foreign");
}

TEST_F(FolderLease, RemembersAGatedWriteThroughALaterNestedLeaseThatWroteNothing) {
  bench_.serve();
  const Lease lease = bench_.acquire("d");
  const Lease writer = bench_.acquire("d/a.txt");
  ASSERT_TRUE(bench_.write(writer, "gated").ok());
  released(writer);
  released(bench_.acquire("d/a.txt"));
  // And what such a lease found there by another's hand is no gated write.
  bench_.put("d/b.txt", "foreign");
  released(bench_.acquire("d/b.txt"));
  EXPECT_EQ(changes(released(lease).at("content_check")), (Words{"gated a.txt", "ungated b.txt"}));
}

TEST_F(FolderLease, DoesNotTakeAnEarlierTenancysWriteForItsOwn) {
  bench_.serve();
  const Lease earlier = bench_.acquire("d/a.txt");
  ASSERT_TRUE(bench_.write(earlier, "written before the folder was leased").ok());
  released(earlier);
  bench_.put("d/a.txt", "a");
  EXPECT_EQ(changed_by([&] { bench_.put("d/a.txt", "written before the folder was leased"); }), Words{"ungated a.txt"});
}

TEST_F(FolderLease, IsCheckedAtItsDeadlineWhileANestedLeaseIsStillHeld) {
  bench_.serve();
  const Lease lease = bench_.acquire("d", "alice", {"--ttl", "3s"});
  const Lease nested = bench_.acquire("d/a.txt");
  ASSERT_TRUE(bench_.write(nested, "gated").ok());
  bench_.put("d/b.txt", "foreign");
  ASSERT_TRUE(eventually([&] { return end_of(lease).has_value(); }));
  const Json end = *end_of(lease);
  EXPECT_EQ(end.at("ended_by"), "expiry");
  EXPECT_EQ(changes(end.at("content_check")), (Words{"gated a.txt", "ungated b.txt"}));
  EXPECT_EQ(amber("foreign"), "foreign");
  EXPECT_TRUE(bench_.write(nested, "and on").ok());
}

TEST_F(FolderLease, IsCheckedBeforeSomebodyTakesItOver) {
  const Lease lease = bench_.acquire("d", "alice", {"--ttl", "1s"});  // no server: nobody ends it but the next
  bench_.put("d/sub/c.txt", "foreign");
  Answer taken;
  ASSERT_TRUE(eventually([&] {
    taken = bench_.run({"acquire", "d", "--owner", "bob", "--task", "t"});
    return taken.ok();
  }));
  EXPECT_EQ(changes(end_of(lease)->at("content_check")), Words{"ungated sub/c.txt"});
  EXPECT_EQ(amber("foreign"), "foreign");
  const Lease bobs{"file://project:/d", taken.at("leases").at(0)};
  EXPECT_EQ(released(bobs).at("content_check").at("status"), "match");
}

TEST_F(FolderLease, IsCheckedBeforeItIsGrantedAgain) {
  bench_.serve();
  const Lease lease = bench_.acquire("d");
  bench_.put("d/b.txt", "foreign");
  const Lease again = bench_.acquire("d", "alice", {"--fresh"});
  EXPECT_EQ(end_of(lease)->at("ended_by"), "regrant");
  EXPECT_EQ(changes(end_of(lease)->at("content_check")), Words{"ungated b.txt"});
  EXPECT_EQ(released(again).at("content_check").at("status"), "match");
}

TEST_F(FolderLease, SurvivesTheKillOfItsServerWhileItIsReleased) {
  bench_.serve({{"HOLDFAST_FAULT", "release_after_archive:kill"}});
  const Lease lease = bench_.acquire("d");
  bench_.put("d/a.txt", "foreign");
  EXPECT_FALSE(bench_.release(lease).ok());
  ASSERT_EQ(bench_.wait_for_server(), -9);
  bench_.kill_server();
  bench_.serve();
  const Answer recovered = bench_.run({"recover"});
  EXPECT_TRUE(recovered.ok()) << recovered.text;
  EXPECT_EQ(amber("foreign"), "foreign");
  const Answer again = released(lease);
  EXPECT_EQ(changes(again.at("content_check")), Words{"ungated a.txt"});
  EXPECT_TRUE(bench_.run({"leases"}).at("leases").empty());
  EXPECT_TRUE(bench_.evidence_verifies());
  EXPECT_TRUE(bench_.generations_verify());
}

TEST_F(FolderLease, FindsAChangeBetweenTheLookAndTheTransition) {
  bench_.serve({{"HOLDFAST_FAULT", "release_after_look:stop"}});
  const Lease lease = bench_.acquire("d");
  bench_.put("d/b.txt", "before the look");
  const auto client = bench_.start(Words{"release", lease.scope} + lease.keys());
  ASSERT_TRUE(eventually([&] { return is_stopped(bench_.server().pid()); }));
  bench_.put("d/a.txt", "A");
  fs::remove(bench_.at("d/sub/c.txt"));
  bench_.server().cont();
  const Answer answer = Workbench::answer_of(*client);
  ASSERT_TRUE(answer.ok()) << answer.text;
  EXPECT_EQ(changes(answer.at("content_check")), (Words{"ungated a.txt", "ungated b.txt", "ungated sub/c.txt"}));
  EXPECT_EQ(amber("A"), "A");
  EXPECT_EQ(amber("before the look"), "before the look");
}

TEST_F(FolderLease, CapturesWhatIsThereWhenItIsGranted) {
  bench_.serve({{"HOLDFAST_FAULT", "acquire_after_capture:stop"}});
  const auto client = bench_.start({"acquire", "d", "--owner", "alice", "--task", "t"});
  ASSERT_TRUE(eventually([&] { return is_stopped(bench_.server().pid()); }));
  bench_.put("d/a.txt", "changed between capture and grant");
  bench_.server().cont();
  const Answer granted = Workbench::answer_of(*client);
  ASSERT_TRUE(granted.ok()) << granted.text;
  const Lease lease{"file://project:/d", granted.at("leases").at(0)};
  EXPECT_EQ(released(lease).at("content_check").at("status"), "match");
}

TEST_F(FolderLease, OfTheWholeWorkspaceLeavesTheControlFolderOut) {
  bench_.serve();
  const Lease lease = bench_.acquire("project:/");
  const Lease nested = bench_.acquire("d/a.txt");
  ASSERT_TRUE(bench_.write(nested, "gated").ok());
  released(nested);
  bench_.put("outside/x", "foreign");
  const Answer answer = released(lease);
  EXPECT_EQ(changes(answer.at("content_check")), (Words{"gated d/a.txt", "ungated outside/x"}));
  EXPECT_EQ(answer.at("content_check").at("entries"), 8);
}

TEST_F(FolderLease, WhoseFolderIsGoneOrIsSomethingElseIsAMismatch) {
  bench_.serve();
  const std::vector<std::pair<const char*, std::function<void()>>> ends = {
      {"none", [] {}},
      {"file", [&] { bench_.put("d", "a file now"); }},
      {"fifo", [&] { ASSERT_EQ(0, ::mkfifo(bench_.at("d").c_str(), 0600)); }},
      {"link", [&] { fs::create_symlink("outside", bench_.at("d")); }}};
  for (const auto& [what, make] : ends) {
    fs::remove_all(bench_.at("d"));
    fs::create_directory(bench_.at("d"));
    bench_.put("d/a.txt", "a");
    const Lease lease = bench_.acquire("d");
    fs::remove_all(bench_.at("d"));
    make();
    const Answer answer = bench_.release(lease);
    ASSERT_TRUE(answer.ok()) << what << answer.text;
    EXPECT_EQ(answer.at("content_check").at("status"), "mismatch") << what;
    EXPECT_EQ(answer.at("content_check").at("actual_sha256"), nullptr) << what;
    EXPECT_EQ(changes(answer.at("content_check")), Words{"ungated "}) << what;
  }
  EXPECT_EQ(amber("a file now"), "a file now");
  EXPECT_EQ(bench_.get("outside/x"), "x");
}

TEST_F(FolderLease, FindsAFolderWhereNothingOrAFileWas) {
  bench_.serve();
  const Lease absent = bench_.acquire("later");
  const Lease file = bench_.acquire("outside/x");
  fs::create_directory(bench_.at("later"));
  bench_.put("later/f", "in the new folder");
  fs::remove(bench_.at("outside/x"));
  fs::create_directory(bench_.at("outside/x"));
  for (const Lease& lease : {absent, file}) {
    const Answer answer = released(lease);
    EXPECT_EQ(answer.at("content_mismatch"), true);
    const std::string manifest = answer.at("content_check").at("actual_manifest_sha256");
    EXPECT_EQ(sha256_hex(bench_.get(".squad/vault/amber/" + manifest)), manifest);
    EXPECT_EQ(quarantine(answer.at("quarantine_id")).at("sha256"), manifest);
  }
  EXPECT_EQ(amber("in the new folder"), "in the new folder");
}

TEST_F(FolderLease, OfAClientThatIsConfinedReportsItsChangesAndIsNoMismatch) {
  const Lease lease = bench_.acquire("d");
  EXPECT_EQ(lease.record.at("confined"), false);
  change_record([](Json& record) { record["confined"] = true; });
  bench_.put("d/a.txt", "by the confined client");
  const Answer answer = released(lease);
  EXPECT_EQ(changes(answer.at("content_check")), Words{"confined a.txt"});
  EXPECT_EQ(answer.at("content_check").at("status"), "match");
  EXPECT_EQ(answer.at("content_check").at("confined"), 1);
  EXPECT_EQ(answer.at("quarantine_id"), nullptr);
}

TEST_F(FolderLease, GrantedByAVersionWithoutManifestsIsUnchecked) {
  const Lease lease = bench_.acquire("d");
  change_record([](Json& record) {
    record["pre_write"]["sha256"] = "";
    record.erase("confined");
  });
  bench_.put("d/a.txt", "changed");
  const Answer answer = released(lease);
  EXPECT_EQ(answer.at("content_check").at("status"), "unchecked");
  EXPECT_EQ(answer.at("content_mismatch"), false);
}

TEST_F(FolderLease, ClaimsNothingWhereTheManifestIsGoneOrDamaged) {
  for (const bool damaged : {false, true}) {
    const Lease lease = bench_.acquire("d");
    const std::string path = ".squad/vault/primary/" + lease.record.at("pre_write").at("sha256").get<std::string>();
    fs::remove(bench_.at(path));
    if (damaged) bench_.put(path, R"({"protocol":"holdfast.manifest.1","entries":{}})");
    const Answer answer = released(lease);
    EXPECT_EQ(answer.at("content_check").at("status"), "unverifiable") << answer.text;
    EXPECT_EQ(answer.at("content_mismatch"), true);
    fs::remove(bench_.at(path));
  }
}

TEST_F(FolderLease, ClaimsNothingOfAPlaceThatItCannotRead) {
  os::Handle folder(::open(bench_.at("d/sub").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int depth = 0; depth < 1010; ++depth) {  // deeper than a walk goes
    ASSERT_EQ(0, ::mkdirat(folder.fd(), "f", 0700));
    folder = os::Handle(::openat(folder.fd(), "f", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  bench_.serve();
  const Lease quiet = bench_.acquire("d");
  const Answer unverifiable = released(quiet);
  EXPECT_EQ(unverifiable.at("content_check").at("status"), "unverifiable");
  EXPECT_EQ(unverifiable.at("content_check").at("unverifiable_total"), 1);
  EXPECT_EQ(unverifiable.at("content_mismatch"), true);
  EXPECT_NE(unverifiable.at("quarantine_id"), nullptr);
  const Lease lease = bench_.acquire("d");
  bench_.put("d/a.txt", "foreign");
  const Answer both = released(lease);
  EXPECT_EQ(both.at("content_check").at("status"), "mismatch");
  EXPECT_EQ(changes(both.at("content_check")), Words{"ungated a.txt"});
  support::spawn({"rm", "-rf", bench_.at("d/sub")}).wait();
}

// As a user who may not read everything: the program is copied to where that user gets at it.
TEST(FolderLeaseWithoutRights, IsRefusedWhereTheFolderItselfMayNotBeReadAndUnverifiableBelow) {
  Workbench bench(false);
  for (const char* folder : {"d/closed", "shut"}) fs::create_directories(bench.at(folder));
  bench.put("d/a.txt", "a");
  bench.put("d/secret", "s");
  bench.put("d/closed/x", "x");
  fs::copy_file(HOLDFAST_PROGRAM, bench.at("program"));
  for (const char* name : {"", "d", "d/a.txt"}) ASSERT_EQ(0, ::chown(bench.at(name).c_str(), 65534, 65534));
  ASSERT_EQ(0, ::chmod(bench.at("program").c_str(), 0755));
  for (const char* name : {"d/secret", "d/closed", "shut"}) ASSERT_EQ(0, ::chmod(bench.at(name).c_str(), 0700));
  const auto as_nobody = [&](const Words& words) {
    support::Child child = support::spawn(Words{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                                                bench.at("program"), "--workspace", bench.root(), "--json"} +
                                              words,
                                          {bench.root(), {}, false});
    return Workbench::answer_of(child);
  };
  ASSERT_TRUE(as_nobody({"init"}).ok());
  EXPECT_EQ(as_nobody({"acquire", "shut", "--owner", "o", "--task", "t"}).code(), "file_unreadable");
  const Answer acquired = as_nobody({"acquire", "d", "--owner", "o", "--task", "t"});
  ASSERT_TRUE(acquired.ok()) << acquired.text;
  const Lease lease{"file://project:/d", acquired.at("leases").at(0)};
  const Answer released = as_nobody(Words{"release", "d"} + lease.keys());
  ASSERT_TRUE(released.ok()) << released.text;
  EXPECT_EQ(released.at("content_check").at("status"), "unverifiable");
  EXPECT_EQ(released.at("content_check").at("unverifiable"), (Json{"closed", "secret"}));
  EXPECT_EQ(released.at("content_check").at("ungated"), 0);
}

TEST_F(FolderLease, TakesHostileNamesAndObjects) {
  bench_.serve();
  ASSERT_EQ(0, ::mkfifo(bench_.at("d/fifo").c_str(), 0600));
  fs::create_symlink("loop", bench_.at("d/loop"));
  fs::create_symlink("nothing", bench_.at("d/dangling"));
  fs::create_symlink("/", bench_.at("d/top"));
  for (const char* name : {"a b", "n\nl", "..a", "\xff", "\\xff", "end.", "co:lon"})
    bench_.put(std::string("d/") + name, "x");
  EXPECT_EQ(changed_by([] {}), Words{});
  EXPECT_EQ(changed_by([&] {
              for (const char* name : {"n\nl", "..a", "\xff", "end.", "co:lon"})
                bench_.put(std::string("d/") + name, "y");
            }),
            (Words{"ungated ..a", "ungated \\xff", "ungated co:lon", "ungated end.", "ungated n\nl"}));
}

TEST_F(FolderLease, OfManyFilesFindsTheOneThatChanged) {
  for (int number = 0; number < 5000; ++number) {
    const std::string folder = "d/many/" + std::to_string(number % 50);
    if (number < 50) fs::create_directories(bench_.at(folder));
    bench_.put(folder + "/" + std::to_string(number), std::to_string(number));
  }
  bench_.serve();
  EXPECT_EQ(changed_by([&] { bench_.put("d/many/21/4321", "foreign"); }), Words{"ungated many/21/4321"});
}

TEST_F(FolderLease, OfManyChangesNamesAHundredAndCountsTheRest) {
  bench_.serve();
  const Lease lease = bench_.acquire("d");
  const Lease nested = bench_.acquire("d/a.txt");
  ASSERT_TRUE(bench_.write(nested, "gated").ok());
  released(nested);
  for (int number = 0; number < 250; ++number) bench_.put("d/n" + std::to_string(number), "same bytes");
  const Answer answer = released(lease);
  const Json& check = answer.at("content_check");
  EXPECT_EQ(check.at("changed").size(), 100U);
  EXPECT_EQ(check.at("changed_total"), 251);
  EXPECT_EQ(check.at("gated"), 1);
  EXPECT_EQ(check.at("ungated"), 250);
  EXPECT_EQ(quarantine(answer.at("quarantine_id")).at("files").size(), 250U);
  const Answer listed = bench_.run({"quarantine", "list"});
  EXPECT_FALSE(listed.at("quarantine").at(0).contains("files"));
}

}  // namespace
}  // namespace holdfast
