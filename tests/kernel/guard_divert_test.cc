// Writers that are diverted: each attack of the table in docs/guarantees.md that rung kernel_lease answers.
#include <sys/mount.h>

#include "guard_ground.h"

namespace holdfast::guard {
namespace {

struct Attack {
  std::string name;
  std::string shell;  // with $F the guarded path and $D a folder outside
  std::string role;   // or a role of this program
};

class Diverted : public ::testing::TestWithParam<std::tuple<Ground::On, Attack>> {};

std::string attack_name(const ::testing::TestParamInfo<Diverted::ParamType>& parameters) {
  return std::get<1>(parameters.param).name +
         (std::get<0>(parameters.param) == Ground::On::disk ? "OnDisk" : "OnTmpfs");
}

// Field report B110: whatever idiom the writer uses, the leased name keeps its bytes.
TEST_P(Diverted, WriterNeverChangesTheBytesAtTheName) {
  const auto& [on, attack] = GetParam();
  Ground ground(on);
  const std::string path = ground.path("f");
  put_bytes(path, "guarded");
  const auto guard = ground.take("f");
  ASSERT_TRUE(guard->enforcement().enforced) << guard->enforcement().to_json();
  const os::Identity before = guard->identity();
  const auto token = guard->content_token();

  if (attack.role.empty()) {
    EXPECT_EQ(0, run_shell("F=" + path + "; D=" + ground.root() + "; " + attack.shell));
  } else {
    EXPECT_EQ(0, Process(role_command(path), role_environment(attack.role)).wait());
  }

  EXPECT_EQ("guarded", bytes_of(path));
  const auto diverted = ground.observed("write_diverted");
  ASSERT_TRUE(diverted.has_value());
  EXPECT_EQ(before.to_json(), diverted->facts["from"]);
  const auto captured = ground.observed("diverted_bytes_captured");
  ASSERT_TRUE(captured.has_value());
  ASSERT_NE(nullptr, captured->bytes);
  EXPECT_NE("guarded", text_of(*captured->bytes));

  EXPECT_TRUE(guard->check().ok());
  EXPECT_EQ(identity_of(path), guard->identity());
  EXPECT_NE(before, guard->identity());
  EXPECT_EQ(token, guard->content_token());
  EXPECT_TRUE(guard->enforcement().enforced) << guard->enforcement().to_json();
  EXPECT_TRUE(ground.leftovers().empty());
}

INSTANTIATE_TEST_SUITE_P(
    OfEachKind, Diverted,
    ::testing::Combine(::testing::Values(Ground::On::disk, Ground::On::memory),
                       ::testing::Values(Attack{"OpenWrite", "printf FOREIGN | dd of=$F conv=notrunc status=none", ""},
                                         Attack{"Truncating", "printf FOREIGN > $F", ""},
                                         Attack{"Appending", "printf FOREIGN >> $F", ""},
                                         Attack{"ReadWrite", "printf FOREIGN 1<> $F", ""},
                                         Attack{"ThroughHardLink", "ln $F $D/other; printf FOREIGN >> $D/other", ""},
                                         Attack{"ThroughSymlink", "ln -s $F $D/s; printf FOREIGN >> $D/s", ""},
                                         Attack{"ThroughProcFd", "exec 3< $F; printf FOREIGN >> /proc/self/fd/3", ""},
                                         Attack{"TruncateCall", "", "truncate"},
                                         Attack{"MappedStore", "", "map_and_store"})),
    attack_name);

TEST(Divert, NamesTheProcessThatTheKernelKeptWaiting) {
  Ground ground;
  put_bytes(ground.path("f"), "guarded");
  const auto guard = ground.take("f");
  Process writer(Process::shell("printf FOREIGN >> " + ground.path("f")));
  const pid_t pid = writer.pid();
  const auto diverted = ground.observed("write_diverted");
  ASSERT_TRUE(diverted.has_value());
  ASSERT_TRUE(diverted->who.is_object());
  EXPECT_EQ(pid, diverted->who["pid"]);
  EXPECT_EQ(0, writer.wait());
}

TEST(Divert, FollowsAnOpenThatDoesNotWait) {
  Ground ground;
  put_bytes(ground.path("f"), "guarded");
  const auto guard = ground.take("f");
  EXPECT_EQ(EAGAIN, Process(role_command(ground.path("f")), role_environment("open_without_waiting")).wait());
  ASSERT_TRUE(ground.observed("write_diverted").has_value());
  EXPECT_TRUE(guard->check().ok());
  EXPECT_EQ("guarded", bytes_of(ground.path("f")));
  EXPECT_TRUE(ground.never_observed("diverted_bytes_captured"));
}

TEST(Divert, DropsAnOrphanThatNobodyWroteTo) {
  Ground ground;
  put_bytes(ground.path("f"), "guarded");
  const auto guard = ground.take("f");
  EXPECT_EQ(0, run_shell(": >> " + ground.path("f")));
  ASSERT_TRUE(ground.observed("write_diverted").has_value());
  EXPECT_EQ(0, run_shell("printf x >> " + ground.path("f")));
  const auto captured = ground.observed("diverted_bytes_captured");
  ASSERT_TRUE(captured.has_value());
  EXPECT_EQ("guardedx", text_of(*captured->bytes));
  EXPECT_TRUE(ground.never_observed("diverted_bytes_captured"));
}

TEST(Divert, WaitsForTheDivertedWriterToFinish) {
  Ground ground;
  put_bytes(ground.path("f"), "guarded");
  const auto guard = ground.take("f");
  Process writer(Process::shell("exec 3>> " + ground.path("f") + "; printf a >&3; echo open; read x; printf b >&3"));
  EXPECT_EQ("open", writer.line());
  ASSERT_TRUE(ground.observed("write_diverted").has_value());
  EXPECT_TRUE(ground.never_observed("diverted_bytes_captured"));
  writer.say("go\n");
  const auto captured = ground.observed("diverted_bytes_captured");
  ASSERT_TRUE(captured.has_value());
  EXPECT_EQ("guardedab", text_of(*captured->bytes));
}

TEST(Divert, KeepsWhatAWriterThatNeverFinishesHasWrittenSoFar) {
  Ground ground;
  ground.limits.capture_wait_ms = 100;
  put_bytes(ground.path("f"), "guarded");
  const auto guard = ground.take("f");
  Process writer(Process::shell("exec 3>> " + ground.path("f") + "; printf abc >&3; echo open; read x"));
  EXPECT_EQ("open", writer.line());
  const auto captured = ground.observed("diverted_bytes_captured");
  ASSERT_TRUE(captured.has_value());
  EXPECT_EQ("writer_did_not_finish", captured->facts["unfinished"]);
  EXPECT_EQ(10, captured->facts["byte_count"]);
}

TEST(Divert, OnlyCountsBytesBeyondTheLimits) {
  Ground ground;
  ground.limits.capture_max_bytes = 100;
  ground.limits.capture_max_count = 1;
  put_bytes(ground.path("f"), "guarded");
  const auto guard = ground.take("f");
  EXPECT_EQ(0, run_shell("printf '%0101d' 7 >> " + ground.path("f")));
  auto counted = ground.observed("diverted_bytes_counted");
  ASSERT_TRUE(counted.has_value());
  EXPECT_EQ("larger_than_one_capture", counted->facts["reason"]);
  EXPECT_EQ(0, run_shell("printf a >> " + ground.path("f") + "; printf b >> " + ground.path("f")));
  counted = ground.observed("diverted_bytes_counted");
  ASSERT_TRUE(counted.has_value());
  EXPECT_EQ("more_than_one_lease_may_capture", counted->facts["reason"]);
  EXPECT_TRUE(ground.observed("diverted_bytes_captured").has_value());
}

// Found under hammers: a digest taken through W, or of what verify() found, must not see the diverted writer's bytes.
TEST(Divert, KeepsTheWriterWaitingWhileThePreimageIsRead) {
  Ground ground;
  put_bytes(ground.path("f"), "guarded");
  const auto guard = ground.take("f");
  std::optional<os::Handle> preimage = guard->open_preimage().value();
  os::Handle verified = std::move(guard->verify(guard->identity())->object);
  Process writer(Process::shell("printf FOREIGN >> " + ground.path("f")));
  ASSERT_TRUE(ground.observed("write_diverted").has_value());
  EXPECT_TRUE(guard->check().ok());
  EXPECT_EQ(-1, writer.wait(50));
  EXPECT_EQ("guarded", text_of(*preimage));
  preimage.reset();
  EXPECT_EQ(-1, writer.wait(50));
  EXPECT_EQ("guarded", text_of(verified));
  verified.reset();
  EXPECT_EQ(0, writer.wait());
  EXPECT_EQ("guarded", bytes_of(ground.path("f")));
  EXPECT_TRUE(ground.observed("diverted_bytes_captured").has_value());
}

TEST(Divert, LeavesAReaderThatIsAlreadyThereAlone) {
  Ground ground;
  put_bytes(ground.path("f"), "guarded");
  Process reader(Process::shell("exec 3< " + ground.path("f") + "; echo open; read x; cat <&3; echo"));
  EXPECT_EQ("open", reader.line());
  const auto guard = ground.take("f");
  EXPECT_TRUE(guard->enforcement().enforced);
  reader.say("go\n");
  EXPECT_EQ("guarded", reader.line());
  EXPECT_EQ("guarded", bytes_of(ground.path("f")));
  EXPECT_TRUE(ground.never_observed("write_diverted"));
}

TEST(Divert, WorksForTheLongestLeafName) {
  Ground ground;
  const std::string leaf(255, 'n');
  put_bytes(ground.path(leaf), "guarded");
  const auto guard = ground.take(leaf);
  EXPECT_EQ(0, run_shell("printf FOREIGN >> " + ground.path(leaf)));
  EXPECT_TRUE(ground.observed("write_diverted").has_value());
  EXPECT_EQ("guarded", bytes_of(ground.path(leaf)));
  ASSERT_TRUE(replace_with(*guard, "next").ok());
  EXPECT_EQ("next", bytes_of(ground.path(leaf)));
}

TEST(Divert, AnswersWhereTheSignalQueueIsFull) {
  Ground ground;
  put_bytes(ground.path("f"), "guarded");
  Process guarding(role_command(ground.root(), "f"), role_environment("guard_without_signal_queue"));
  EXPECT_EQ(true, Json::parse(guarding.line())["enforced"]);
  EXPECT_EQ(0, run_shell("printf FOREIGN >> " + ground.path("f")));
  EXPECT_EQ("write_diverted ", guarding.line());
  EXPECT_EQ("guarded", bytes_of(ground.path("f")));
}

TEST(Divert, NeedsNoPrivilegeForOnesOwnFiles) {
  if (::geteuid() != 0) GTEST_SKIP() << "root is needed to become somebody else";
  Ground ground;
  ASSERT_EQ(0, ::chown(ground.folder().c_str(), 65534, 65534));
  put_bytes(ground.path("own"), "guarded");
  ASSERT_EQ(0, ::chown(ground.path("own").c_str(), 65534, 65534));
  Process guarding(role_command(ground.root(), "own"), role_environment("guard_as_nobody"));
  EXPECT_EQ(true, Json::parse(guarding.line())["enforced"]);
  EXPECT_EQ(0, run_shell("printf FOREIGN >> " + ground.path("own")));
  EXPECT_EQ("write_diverted ", guarding.line());
  EXPECT_EQ("diverted_bytes_captured ", guarding.line());
  EXPECT_EQ("guarded", bytes_of(ground.path("own")));
  guarding.close_input();
  EXPECT_EQ(0, guarding.wait());
}

// Hostile loops while replacements go on: a reader who finds the same object at the name before and after reading never
// sees a foreign byte, every replacement succeeds, and descriptors stay bounded.
class UnderHammers : public ::testing::TestWithParam<Ground::On> {};

TEST_P(UnderHammers, TheNameNeverHoldsAForeignByte) {
  Ground ground(GetParam());
  ground.limits.orphans_open_max = 32;
  const std::string path = ground.path("f");
  put_bytes(path, "published");
  const auto guard = ground.take("f");
  std::vector<std::unique_ptr<Process>> hammers;
  for (const char* role : {"hammer_open", "hammer_append", "hammer_truncate"}) {
    hammers.push_back(std::make_unique<Process>(role_command(path), role_environment(role)));
    EXPECT_EQ("ready", hammers.back()->line());
  }
  const std::size_t descriptors_before = open_descriptors();
  std::atomic<int> reads{0}, foreign{0};
  std::jthread reader([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const os::Handle object = open_path(path, O_RDONLY);
      if (!object) continue;
      const std::string text = text_of(object);
      if (os::facts_of_open(object).value().identity != identity_of(path)) continue;
      ++reads;
      if (text.rfind("published", 0) != 0 || text.find("FOREIGN") != std::string::npos) ++foreign;
    }
  });
  std::uint64_t diverts = 0, captured = 0, counted = 0;
  int replacements = 0;
  std::size_t descriptors_most = 0;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(3);
  while (std::chrono::steady_clock::now() < until) {
    const auto exchanged = replace_with(*guard, "published " + std::to_string(replacements));
    ASSERT_TRUE(exchanged.ok()) << exchanged.refusal().message();
    EXPECT_TRUE(exchanged->displaced_was_guarded);
    const auto verified = guard->verify(exchanged->published);
    ASSERT_TRUE(verified.ok());
    EXPECT_TRUE(verified->guard_identity_matches_published && verified->guard_resolved_path_matches_scope);
    EXPECT_EQ("published " + std::to_string(replacements), text_of(verified->object));
    EXPECT_TRUE(guard->drop_displaced(*exchanged).ok());
    ++replacements;
    for (const auto& seen : ground.guards().wait_for_observations(0)) {
      EXPECT_EQ("", seen.fault) << seen.facts;
      if (seen.what == "write_diverted") diverts += seen.facts["count"].get<std::uint64_t>();
      if (seen.what == "diverted_bytes_captured") ++captured;
      if (seen.what == "diverted_bytes_counted") counted += seen.facts["count"].get<std::uint64_t>();
    }
    descriptors_most = std::max(descriptors_most, open_descriptors());
  }
  hammers.clear();
  reader.request_stop();
  reader.join();
  EXPECT_EQ(0, foreign);
  EXPECT_GT(reads, 0);
  EXPECT_GT(diverts, 0U);
  EXPECT_GT(captured, 0U);
  EXPECT_LT(descriptors_most, descriptors_before + 32 + 40);
  EXPECT_TRUE(guard->check().ok());
  EXPECT_TRUE(guard->enforcement().enforced);
  EXPECT_TRUE(ground.leftovers().empty());
  RecordProperty("diverts", static_cast<int>(diverts));
  RecordProperty("replacements", replacements);
  std::printf("%d replacements, %d reads, %llu diverts, %llu captured, %llu counted, %zu descriptors at most\n",
              replacements, reads.load(), static_cast<unsigned long long>(diverts),
              static_cast<unsigned long long>(captured), static_cast<unsigned long long>(counted), descriptors_most);
}

INSTANTIATE_TEST_SUITE_P(OnEachFileSystem, UnderHammers, ::testing::Values(Ground::On::disk, Ground::On::memory),
                         [](const auto& parameters) {
                           return parameters.param == Ground::On::disk ? "Disk" : "Tmpfs";
                         });

}  // namespace
}  // namespace holdfast::guard
