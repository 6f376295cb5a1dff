// The anchor: a rollback of the whole snapshot, consistent in itself, is seen from outside (05-C03's ceiling; B52).
#include <gtest/gtest.h>

#include <filesystem>

#include "support/workbench.h"

namespace holdfast {
namespace {

using support::Workbench;

TEST(Anchor, ShowsARollbackOfTheWholeSnapshot) {
  Workbench bench;
  support::TemporaryFolder elsewhere;
  ASSERT_TRUE(bench.run({"init", "--anchor", elsewhere.at("anchor.json")}).ok());
  bench.acquire("a.txt");
  namespace fs = std::filesystem;
  const support::TemporaryFolder copy;
  for (const char* name : {"generations.json", ".generations-initialized", "evidence", "locks", "resources"}) {
    fs::copy(bench.at(std::string(".squad/") + name), copy.at(name), fs::copy_options::recursive);
  }
  std::uint64_t last = 0;
  for (const char* name : {"b", "c"}) last = bench.acquire(name).generation();
  // Everything of the workspace that knows a number goes back together.
  for (const char* name : {"generations.json", ".generations-initialized", "evidence", "locks", "resources"}) {
    fs::remove_all(bench.at(std::string(".squad/") + name));
    fs::copy(copy.at(name), bench.at(std::string(".squad/") + name), fs::copy_options::recursive);
  }
  EXPECT_EQ(bench.run({"acquire", "d", "--owner", "o", "--task", "t"}).code(), "generation_anchor_rollback");
  EXPECT_EQ(bench.run({"generations", "verify"}).code(), "generation_anchor_rollback");
  ASSERT_TRUE(bench.run({"generations", "repair", "--reason", "a snapshot was restored"}).ok());
  EXPECT_GT(bench.acquire("d").generation(), last);
}

TEST(Anchor, ThatIsGoneOrForeignRefusesRatherThanStartsAnew) {
  Workbench bench;
  support::TemporaryFolder elsewhere;
  ASSERT_TRUE(bench.run({"init", "--anchor", elsewhere.at("anchor.json")}).ok());
  const std::string good = elsewhere.read("anchor.json");
  for (const std::string& bytes : {std::string(), std::string("{}"), good.substr(0, 20)}) {
    elsewhere.write("anchor.json", bytes);
    EXPECT_EQ(bench.run({"acquire", "a", "--owner", "o", "--task", "t"}).code(), "generation_anchor_rollback");
    EXPECT_EQ(elsewhere.read("anchor.json"), bytes);
  }
  std::filesystem::remove(elsewhere.at("anchor.json"));
  EXPECT_EQ(bench.run({"acquire", "a", "--owner", "o", "--task", "t"}).code(), "generation_anchor_rollback");
  Workbench other;
  elsewhere.write("anchor.json", good);
  EXPECT_EQ(other.run({"init", "--anchor", elsewhere.at("anchor.json")}).code(), "generation_anchor_rollback");
}

}  // namespace
}  // namespace holdfast
