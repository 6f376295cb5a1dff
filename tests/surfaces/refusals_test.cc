// Refusals that a whole workspace is needed for, each by its code, from the program.
#include <gtest/gtest.h>

#include <filesystem>

#include "os/workspace_folder.h"
#include "server/client.h"
#include "support/refused_with.h"
#include "support/text_content.h"
#include "support/workbench.h"

namespace holdfast {
namespace {

using support::Answer;
using support::Lease;
using support::Words;
using support::Workbench;
using support::operator+;

Words acquiring(const std::string& scope, const std::string& owner = "alice", const std::string& task = "task-1") {
  return {"acquire", scope, "--owner", owner, "--task", task};
}

TEST(Refusals, OfNumbersThatAreNone) {
  Workbench bench;
  const Lease lease = bench.acquire("a.txt");
  for (const char* number : {"abc", "1.5", "18446744073709551616", "0x1", "01"}) {
    Words keys = lease.keys();
    keys[5] = number;
    const Answer refused = bench.run(Words{"heartbeat", "a.txt"} + keys);
    EXPECT_TRUE(refused.code() == "number_invalid" || refused.code() == "usage") << refused.text;
  }
  EXPECT_TRUE(bench.heartbeat(lease).ok());
}

TEST(Refusals, OfAnotherTaskAndOfTheOwnersFolder) {
  Workbench bench;
  bench.put("a.txt", "old");
  std::filesystem::create_directory(bench.at("folder"));
  bench.put("folder/f.txt", "old");
  bench.serve();
  bench.acquire("a.txt");
  EXPECT_EQ(bench.run(acquiring("a.txt", "alice", "another")).code(), "lease_task_mismatch");
  const Lease folder = bench.acquire("folder");
  EXPECT_EQ(bench.run(Words{"write", "folder/f.txt"} + folder.keys() + Words{"--from", "-"}, "new").code(),
            "exact_lease_required");
  const Lease inner = bench.acquire("folder/f.txt");
  EXPECT_EQ(bench.release(folder).code(), "nested_lease_held");
  EXPECT_TRUE(bench.release(inner).ok());
  EXPECT_TRUE(bench.release(folder).ok());
}

TEST(Refusals, OfADeadServersUnenforcedTenancyUnlessEveryKeyIsShown) {
  Workbench bench;
  bench.serve();
  const Answer granted = bench.run(acquiring("session://s"));
  ASSERT_TRUE(granted.ok());
  bench.put("lease.json", granted.text);
  bench.kill_server();
  bench.serve();
  EXPECT_EQ(bench.run(acquiring("session://s")).code(), "dead_holder_not_proven");
  const Answer shown = bench.run({"acquire", "session://s", "--lease", bench.at("lease.json")});
  EXPECT_TRUE(shown.ok()) << shown.text;
  EXPECT_EQ(shown.document.value("granted", ""), "regrant");
}

TEST(Refusals, OfTheOperatorsControls) {
  Workbench bench;
  ASSERT_TRUE(bench.run({"epoch", "engage", "--reason", "test"}).ok());
  EXPECT_EQ(bench.run(acquiring("a.txt")).code(), "break_glass_engaged");
  ASSERT_TRUE(bench.run({"epoch", "disengage", "--reason", "test"}).ok());
  bench.put(".squad/control/exclusions.json", R"({"packages":["vendor"],"sources":["file://project:/law.txt"]})");
  EXPECT_EQ(bench.run(acquiring("vendor/x")).code(), "package_excluded");
  EXPECT_EQ(bench.run(acquiring("law.txt")).code(), "source_excluded");
  for (const char* bytes : {"", "[]", R"({"packages":"vendor"})", R"({"packages":[1]})"}) {
    bench.put(".squad/control/exclusions.json", bytes);
    EXPECT_EQ(bench.run(acquiring("a.txt")).code(), "exclusions_invalid") << bytes;
  }
  std::filesystem::remove(bench.at(".squad/control/exclusions.json"));
  std::filesystem::remove(bench.at(".squad/control/epoch.json"));
  EXPECT_EQ(bench.run(acquiring("a.txt")).code(), "control_epoch_rolled_back");
}

TEST(Refusals, OfLessEnforcementThanIsRequired) {
  Workbench bench;
  bench.put("a.txt", "old");
  bench.serve();
  EXPECT_EQ(bench.run(acquiring("a.txt") + Words{"--require", "bpf_lsm"}).code(), "enforcement_insufficient");
  EXPECT_EQ(bench.run(acquiring("absent.txt") + Words{"--require", "kernel_lease"}).code(), "enforcement_insufficient");
  EXPECT_EQ(bench.run({"leases"}).at("leases").size(), 0U);
  EXPECT_TRUE(bench.run(acquiring("a.txt") + Words{"--require", "kernel_lease"}).ok());
}

TEST(Refusals, OfBytesThatAreNotThoseThatWereAnnounced) {
  Workbench bench;
  bench.put("a.txt", "old");
  bench.serve();
  const Lease lease = bench.acquire("a.txt");
  auto folder = os::open_workspace(bench.root());
  ASSERT_TRUE(support::granted(folder));
  auto connection = os::connect_to_server(folder->squad);
  ASSERT_TRUE(support::granted(connection));
  support::TextContent content("these bytes");
  Json arguments = {{"scope", lease.scope},
                    {"cwd", "/"},
                    {"owner", "alice"},
                    {"task", "task-1"},
                    {"generation", lease.record["generation"]},
                    {"started_at", lease.record["started_at"]},
                    {"payload_sha256", std::string(64, '0')}};
  EXPECT_TRUE(
      support::refused_with(call_server(*connection, Json{{"verb", "write"}, {"arguments", arguments}}, &content),
                            Code::content_corrupted_in_transit));
  EXPECT_EQ(bench.get("a.txt"), "old");
  EXPECT_EQ(bench.listing(), Words{"a.txt"});
}

TEST(Refusals, OfACopiedWorkspaceUntilSomebodySaysWhatItIs) {
  Workbench bench;
  bench.acquire("a.txt");
  support::TemporaryFolder copy;
  std::filesystem::copy(bench.at(".squad"), copy.at(".squad"), std::filesystem::copy_options::recursive);
  std::filesystem::permissions(copy.at(".squad"), std::filesystem::perms::owner_all);
  const auto on_copy = [&](const Words& words) {
    support::Child child =
        support::spawn(Words{HOLDFAST_PROGRAM, "--workspace", copy.path(), "--json"} + words, {copy.path(), {}, false});
    child.close_input();
    return Workbench::answer_of(child);
  };
  EXPECT_EQ(on_copy(acquiring("b.txt")).code(), "workspace_copied");
  EXPECT_TRUE(on_copy({"init", "--new-id", "--reason", "a copy for a test"}).ok());
  EXPECT_TRUE(on_copy(acquiring("b.txt")).ok());
  EXPECT_NE(on_copy({"status"}).at("workspace_id"), bench.run({"status"}).at("workspace_id"));
}

TEST(Refusals, OfReadingWhatIsNoFile) {
  Workbench bench;
  std::filesystem::create_directory(bench.at("folder"));
  EXPECT_EQ(bench.run({"read", "folder"}).code(), "not_a_regular_file");
  EXPECT_EQ(bench.run({"read", "absent"}).code(), "file_absent");
}

}  // namespace
}  // namespace holdfast
