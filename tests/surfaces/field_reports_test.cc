// What people ran into elsewhere, tried against the whole program; the reports' numbers stand at each test. Kinds that
// one part alone answers are tested beside that part (docs/testing.md lists them all).
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "base/digest.h"
#include "base/json.h"
#include "support/workbench.h"

namespace holdfast {
namespace {

using support::Answer;
using support::Lease;
using support::Words;
using support::Workbench;
using support::operator+;

class FieldReport : public testing::Test {
 protected:
  void served(const std::string& bytes = "old") {
    bench_.put("a.txt", bytes);
    bench_.serve();
  }
  std::string message_of(const Answer& answer) { return text_member(answer.document["error"], "message"); }
  Workbench bench_;
};

// A --- who holds it

TEST_F(FieldReport, B15B36AKilledHoldersFileIsGrantedAgainWithoutWaitingForTheDeadline) {
  served();
  const Lease lease = bench_.acquire("a.txt");
  bench_.kill_server();
  bench_.serve();
  const Answer again = bench_.run({"acquire", "a.txt", "--owner", "alice", "--task", "task-1"});
  ASSERT_TRUE(again.ok()) << again.text;
  EXPECT_EQ(again.at("granted"), "regrant");
}

TEST_F(FieldReport, B16AHolderIsNeverReapedForItsAge) {
  served();
  const Lease lease = bench_.acquire("a.txt", "alice", {"--ttl", "2s"});
  for (int beat = 0; beat < 4; ++beat) {
    ::usleep(1'000'000);
    ASSERT_TRUE(bench_.heartbeat(lease, {"--ttl", "2s"}).ok());
  }
  EXPECT_EQ(bench_.run({"acquire", "a.txt", "--owner", "bob", "--task", "t"}).code(), "lease_scope_conflict");
}

TEST_F(FieldReport, B11OfManyWhoTakeOverOneExpiredLeaseOneWins) {
  served();
  bench_.acquire("a.txt", "alice", {"--ttl", "1s"});
  ::usleep(1'200'000);
  std::vector<std::unique_ptr<support::Child>> contenders;
  for (int number = 0; number < 12; ++number) {
    contenders.push_back(
        bench_.start({"acquire", "a.txt", "--owner", "owner-" + std::to_string(number), "--task", "t"}));
  }
  int winners = 0;
  for (auto& contender : contenders) winners += Workbench::answer_of(*contender).ok() ? 1 : 0;
  EXPECT_EQ(winners, 1);
}

TEST_F(FieldReport, B02ACutTenancyRecordIsNeverHeldAndNeverTwoHolders) {
  const Lease lease = bench_.acquire("a.txt");
  std::string name;
  for (const auto& entry : std::filesystem::directory_iterator(bench_.at(".squad/locks/write"))) {
    name = ".squad/locks/write/" + entry.path().filename().string();
  }
  const std::string whole = bench_.get(name);
  for (const std::size_t length : {std::size_t{0}, std::size_t{1}, whole.size() / 2, whole.size() - 2}) {
    bench_.put(name, whole.substr(0, length));
    EXPECT_EQ(bench_.run({"acquire", "a.txt", "--owner", "bob", "--task", "t"}).code(), "state_unreadable") << length;
  }
  // The way out keeps the cut record and gives a later generation.
  EXPECT_TRUE(bench_.run({"recover"}).ok());
  EXPECT_GT(bench_.acquire("a.txt", "bob").generation(), lease.generation());
  EXPECT_FALSE(std::filesystem::is_empty(bench_.at(".squad/evidence/set-aside")));
}

// C --- release

TEST_F(FieldReport, B42ADelayedReleaseDropsNobodyElsesLease) {
  served();
  const Lease old = bench_.acquire("a.txt", "alice");
  ASSERT_TRUE(bench_.release(old).ok());
  const Lease current = bench_.acquire("a.txt", "bob");
  EXPECT_EQ(bench_.release(old).code(), "stale_lease_generation");
  EXPECT_TRUE(bench_.heartbeat(current).ok());
  EXPECT_EQ(bench_.run({"acquire", "a.txt", "--owner", "carol", "--task", "t"}).code(), "lease_scope_conflict");
}

TEST_F(FieldReport, B46AForcedReleaseFencesTheHolderAndIsRecorded) {
  served();
  const Lease lease = bench_.acquire("a.txt");
  EXPECT_EQ(bench_.run({"release", "a.txt", "--force", "--owner", "boss"}).code(), "force_release_not_authorized");
  bench_.put(
      ".squad/control/lock-release.json",
      R"({"authorized_owners":["boss"],"scopes":["file://project:/a.txt"],"set_by":"the owner","reason":"stuck"})");
  EXPECT_TRUE(bench_.run({"release", "a.txt", "--force", "--owner", "boss"}).ok());
  EXPECT_EQ(bench_.write(lease, "late").code(), "stale_lease_generation");
  EXPECT_NE(bench_.log().find("lock_force_released_under_owner_authorization"), std::string::npos);
}

TEST_F(FieldReport, B49ARefusalSaysWhoHoldsItSinceWhenAndUntilWhen) {
  served();
  const Lease lease = bench_.acquire("a.txt");
  const Answer refused = bench_.run({"acquire", "a.txt", "--owner", "bob", "--task", "t"});
  const Json holder = refused.document["error"]["details"]["holders"][0];
  EXPECT_EQ(holder["owner"], "alice");
  EXPECT_EQ(holder["task_id"], "task-1");
  EXPECT_EQ(holder["generation"], lease.record["generation"]);
  EXPECT_EQ(holder["since"], lease.record["started_at"]);
  EXPECT_EQ(holder["until"], lease.record["expires_at"]);
  EXPECT_GT(holder["pid"].get<int>(), 1);
  EXPECT_FALSE(text_member(refused.document["error"]["next"], "hint").empty());
}

// D --- generations and rollback

// B50: elsewhere a key stood for each token that was ever given. Here a resource has one number and one record, however
// often it was leased, and its stale writers stay refused.
TEST_F(FieldReport, B50AResourceKeepsOneSmallRecordHoweverOftenItWasLeased) {
  Words all = {"acquire"};
  for (int number = 0; number < 400; ++number) all.push_back("session://b50/" + std::to_string(number));
  const auto round = [&](const std::string& task) {
    const Answer answer = bench_.run(all + Words{"--owner", "alice", "--task", task});
    EXPECT_TRUE(answer.ok()) << answer.text.substr(0, 300);
    EXPECT_TRUE(bench_.run({"epoch", "advance", "--reason", "round"}).ok());
    return Lease{all.back(), answer.at("leases").back()};
  };
  const auto kept = [&] {
    std::uintmax_t bytes = 0;
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(bench_.at(".squad"))) {
      const std::string path = entry.path().string();
      if (!entry.is_regular_file() || path.find("/evidence/") != std::string::npos) continue;
      bytes += entry.file_size();
      ++files;
    }
    return std::pair(bytes, files);
  };
  bench_.serve();
  const Lease oldest = round("task-0");
  const auto [bytes, files] = kept();
  for (int more = 1; more < 4; ++more) round("task-" + std::to_string(more));
  const auto [bytes_then, files_then] = kept();
  EXPECT_LE(files_then, files + 2);
  EXPECT_LE(bytes_then, bytes + bytes / 5);
  EXPECT_LT(bytes / 400, 4096U);
  EXPECT_EQ(bench_.heartbeat(oldest).code(), "stale_lease_generation");
  EXPECT_EQ(bench_.release(oldest).code(), "stale_lease_generation");
}

TEST_F(FieldReport, B52ARestoredStoreIsRefusedUntilItIsRebasedAboveEveryNumberKnown) {
  bench_.acquire("a.txt");
  const std::string store = bench_.get(".squad/generations.json");
  const std::string marker = bench_.get(".squad/.generations-initialized");
  std::uint64_t last = 0;
  for (const char* name : {"b", "c", "d"}) last = bench_.acquire(name).generation();
  bench_.put(".squad/generations.json", store);
  bench_.put(".squad/.generations-initialized", marker);
  EXPECT_EQ(bench_.run({"acquire", "e", "--owner", "o", "--task", "t"}).code(), "generation_checkpoint_mismatch");
  ASSERT_TRUE(bench_.run({"generations", "repair", "--reason", "restored"}).ok());
  EXPECT_GT(bench_.acquire("e").generation(), last);
}

TEST_F(FieldReport, B53ALeaseOfAnotherEpochIsRefusedWhateverItsNumberIs) {
  const Lease lease = bench_.acquire("a.txt");
  ASSERT_TRUE(bench_.run({"epoch", "advance", "--reason", "test"}).ok());
  EXPECT_EQ(bench_.heartbeat(lease).code(), "control_epoch_revoked");
}

TEST_F(FieldReport, B57AFileThatWasDeletedAndMadeAgainWithTheSameBytesIsAnotherObject) {
  served();
  const Lease lease = bench_.acquire("a.txt");
  std::filesystem::remove(bench_.at("a.txt"));
  bench_.put("a.txt", "old");
  const Answer refused = bench_.write(lease, "new", {"--preimage", sha256_hex("old")});
  EXPECT_EQ(refused.code(), "reconciliation_required") << refused.text;
  EXPECT_EQ(refused.at("error").at("details").at("reconcile").at("fault"), "destination_identity_changed");
  EXPECT_EQ(refused.status, 4);
  EXPECT_EQ(bench_.get("a.txt"), "old");
}

TEST_F(FieldReport, B58AnAnswerThatWasLostIsGivenAgainAndNothingHappensTwice) {
  served();
  const Lease lease = bench_.acquire("a.txt");
  const Words words = {"--preimage", sha256_hex("old"), "--operation-id", "op-1"};
  ASSERT_TRUE(bench_.write(lease, "new", words).ok());
  const Answer again = bench_.write(lease, "new", words);
  EXPECT_TRUE(again.ok()) << again.text;
  EXPECT_EQ(again.document["repeated"], true);
  EXPECT_EQ(bench_.write(lease, "other", words).code(), "operation_id_reused");
}

// E --- replacement

TEST_F(FieldReport, B68ALinkStaysALinkAndItsReferentIsReplaced) {
  bench_.put("real.txt", "old");
  std::filesystem::create_symlink("real.txt", bench_.at("link"));
  bench_.serve();
  const Lease lease = bench_.acquire("link");
  EXPECT_EQ(lease.scope, "file://project:/real.txt");
  ASSERT_TRUE(bench_.write(lease, "new").ok());
  EXPECT_TRUE(std::filesystem::is_symlink(bench_.at("link")));
  EXPECT_EQ(bench_.get("real.txt"), "new");
}

TEST_F(FieldReport, B69SeveralHardLinksAreNotPartedSilently) {
  served();
  std::filesystem::create_hard_link(bench_.at("a.txt"), bench_.at("twin.txt"));
  const Lease lease = bench_.acquire("a.txt");
  EXPECT_EQ(lease.record["os_lock"]["enforced"], false);
  EXPECT_EQ(bench_.write(lease, "new").code(), "destination_has_hard_links");
  EXPECT_EQ(bench_.get("twin.txt"), "old");
}

TEST_F(FieldReport, B70M08OwnerModeAndAttributesAreKept) {
  bench_.put("a.txt", "old");
  const std::string path = bench_.at("a.txt");
  ASSERT_EQ(::chown(path.c_str(), 12345, 23456), 0);
  ASSERT_EQ(::chmod(path.c_str(), 02751), 0);
  ASSERT_EQ(::setxattr(path.c_str(), "user.note", "kept", 4, 0), 0);
  bench_.serve();
  ASSERT_TRUE(bench_.write(bench_.acquire("a.txt"), "new").ok());
  struct stat found {};
  ASSERT_EQ(::stat(path.c_str(), &found), 0);
  EXPECT_EQ(found.st_uid, 12345U);
  EXPECT_EQ(found.st_gid, 23456U);
  EXPECT_EQ(found.st_mode & 07777U, 02751U);
  char value[8] = {};
  EXPECT_EQ(::getxattr(path.c_str(), "user.note", value, sizeof value), 4);
}

TEST_F(FieldReport, B75M09AMountPointIsRefusedAndNothingIsLeft) {
  bench_.put("elsewhere.txt", "elsewhere");
  served();
  ASSERT_EQ(::mount(bench_.at("elsewhere.txt").c_str(), bench_.at("a.txt").c_str(), nullptr, MS_BIND, nullptr), 0);
  const Lease lease = bench_.acquire("a.txt");
  EXPECT_EQ(lease.record["os_lock"]["enforced"], false);
  for (int attempt = 0; attempt < 10; ++attempt) {
    EXPECT_EQ(bench_.write(lease, "new").code(), "destination_is_mount_point");
  }
  ASSERT_EQ(::umount2(bench_.at("a.txt").c_str(), MNT_DETACH), 0);
  EXPECT_EQ(bench_.listing(), (Words{"a.txt", "elsewhere.txt"}));
}

TEST_F(FieldReport, B80TheLongestNamesCanBeReplaced) {
  bench_.serve();
  for (const std::size_t length : {243U, 255U}) {
    const std::string name(length, 'n');
    const Lease lease = bench_.acquire(name);
    ASSERT_TRUE(bench_.write(lease, "one").ok()) << length;
    ASSERT_TRUE(bench_.write(lease, "two").ok()) << length;
    EXPECT_EQ(bench_.get(name), "two");
  }
}

TEST_F(FieldReport, B95AReadOnlyFileSystemIsATypedFault) {
  std::filesystem::create_directory(bench_.at("disk"));
  ASSERT_EQ(::mount("tmpfs", bench_.at("disk").c_str(), "tmpfs", 0, "size=1m"), 0);
  bench_.put("disk/f.txt", "old");
  bench_.serve();
  const Lease lease = bench_.acquire("disk/f.txt");
  ASSERT_EQ(::mount("tmpfs", bench_.at("disk").c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr), 0);
  const Answer refused = bench_.write(lease, "new");
  EXPECT_EQ(refused.status, 5) << refused.text;
  EXPECT_EQ(bench_.get("disk/f.txt"), "old");
  bench_.kill_server();
  ::umount2(bench_.at("disk").c_str(), MNT_DETACH);
}

TEST_F(FieldReport, WhatOthersDoToTheFileIsSaidByTheNextHeartbeatWriteAndRelease) {
  served();
  const Lease lease = bench_.acquire("a.txt");
  ASSERT_EQ(::chmod(bench_.at("a.txt").c_str(), 0640), 0);
  const auto says = [](const Json& observed) { return observed.dump().find("metadata_changed") != std::string::npos; };
  EXPECT_TRUE(support::eventually([&] { return says(bench_.heartbeat(lease).at("lease").at("observed")); }));
  const Answer written = bench_.write(lease, "new");
  ASSERT_TRUE(written.ok()) << written.text;
  EXPECT_TRUE(says(written.document.value("observed", Json())));
  EXPECT_TRUE(says(bench_.release(lease).document.value("observed", Json())));
}

// F --- which file is it

TEST_F(FieldReport, B91B99AnEditOfEqualLengthWithItsTimesPutBackIsNoticed) {
  bench_.put("a.txt", "before\n");
  const Lease lease = bench_.acquire("a.txt");
  const auto times = std::filesystem::last_write_time(bench_.at("a.txt"));
  bench_.put("a.txt", "BEFORE\n");
  std::filesystem::last_write_time(bench_.at("a.txt"), times);
  EXPECT_EQ(bench_.release(lease).document["content_mismatch"], true);
}

TEST_F(FieldReport, B98M03ATouchedFileWithTheSameBytesIsStillAsPlanned) {
  served();
  const Lease lease = bench_.acquire("a.txt");
  std::filesystem::last_write_time(bench_.at("a.txt"), std::filesystem::file_time_type::clock::now());
  EXPECT_TRUE(bench_.write(lease, "new", {"--preimage", sha256_hex("old")}).ok());
}

TEST_F(FieldReport, B101OfParallelEditsEachSuccessIsInTheFile) {
  std::string content;
  for (int line = 0; line < 32; ++line) content += "line-" + std::to_string(line + 100) + "-old\n";
  served(content);
  const Lease lease = bench_.acquire("a.txt");
  std::vector<std::unique_ptr<support::Child>> editors;
  for (int line = 0; line < 32; ++line) {
    const std::string text = "line-" + std::to_string(line + 100);
    editors.push_back(
        bench_.start(Words{"edit", "a.txt"} + lease.keys() + Words{"--replace", text + "-old", text + "-new"}));
  }
  int succeeded = 0;
  for (int line = 0; line < 32; ++line) {
    const Answer answer = Workbench::answer_of(*editors[static_cast<std::size_t>(line)]);
    const bool in_file = bench_.get("a.txt").find("line-" + std::to_string(line + 100) + "-new") != std::string::npos;
    EXPECT_EQ(answer.ok(), in_file) << answer.text;
    succeeded += answer.ok() ? 1 : 0;
    if (!answer.ok()) { EXPECT_EQ(answer.code(), "preimage_hash_mismatch"); }
  }
  EXPECT_GE(succeeded, 1);
}

TEST_F(FieldReport, B102M01AWholeFileFromAStaleReadIsRefusedWithWhatIsThereNow) {
  served();
  const Lease lease = bench_.acquire("a.txt");
  ASSERT_TRUE(bench_.write(lease, "edited meanwhile").ok());
  const Answer refused = bench_.write(lease, "from a stale read", {"--preimage", sha256_hex("old")});
  EXPECT_EQ(refused.code(), "preimage_hash_mismatch");
  EXPECT_EQ(refused.document["error"]["details"]["current_sha256"], sha256_hex("edited meanwhile"));
}

TEST_F(FieldReport, B109M10AnEditChangesNoOtherByte) {
  const std::string before =
      "\xEF\xBB\xBF"
      "one\r\ntwo\nthree\rfour";
  served(before);
  const Lease lease = bench_.acquire("a.txt");
  ASSERT_TRUE(bench_.run(Words{"edit", "a.txt"} + lease.keys() + Words{"--replace", "two", "2"}).ok());
  EXPECT_EQ(bench_.get("a.txt"),
            "\xEF\xBB\xBF"
            "one\r\n2\nthree\rfour");
}

TEST_F(FieldReport, B119ALiveDatabaseIsNotReplaced) {
  bench_.put("live.db", std::string("SQLite format 3\0", 16) + "rest");
  bench_.put("live.db-wal", "journal");
  bench_.serve();
  const Lease lease = bench_.acquire("live.db");
  EXPECT_EQ(bench_.write(lease, "new").code(), "destination_is_live_database");
  EXPECT_EQ(bench_.get("live.db-wal"), "journal");
}

// The same with a database that SQLite has open, and whose log has content.
TEST_F(FieldReport, B119ADatabaseThatSqliteHasOpenStaysWhole) {
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open((bench_.at("live.db")).c_str(), &database), SQLITE_OK);
  const auto run = [&](const char* sql) {
    std::string value;
    const auto take = [](void* into, int count, char** values, char**) {
      if (count > 0 && values[0] != nullptr) *static_cast<std::string*>(into) = values[0];
      return 0;
    };
    EXPECT_EQ(sqlite3_exec(database, sql, take, &value, nullptr), SQLITE_OK) << sqlite3_errmsg(database);
    return value;
  };
  run("PRAGMA journal_mode=WAL; CREATE TABLE t(a); INSERT INTO t VALUES(1)");
  bench_.serve();
  const Lease lease = bench_.acquire("live.db");
  EXPECT_EQ(bench_.write(lease, "new").code(), "destination_is_live_database");
  run("INSERT INTO t VALUES(2)");
  EXPECT_EQ(run("PRAGMA integrity_check"), "ok");
  EXPECT_EQ(run("SELECT count(*) FROM t"), "2");
  sqlite3_close(database);
}

}  // namespace
}  // namespace holdfast
