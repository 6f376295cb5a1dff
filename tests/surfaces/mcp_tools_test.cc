// What the tools answer: refusals that say who and what next, pages, and the agents' field reports (M01, M32, M39, M42,
// B103, B106, B112).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <set>

#include "base/base64.h"
#include "base/digest.h"
#include "base/json.h"
#include "support/mcp_client.h"

namespace holdfast {
namespace {

using support::Called;
using support::kModernVersion;
using support::McpClient;
using support::Workbench;

class ToolCalls : public testing::Test {
 protected:
  ToolCalls() {
    bench_.put("a.txt", "old");
    bench_.serve();
  }
  // Every page of a file, from the first to the last; the digest that each told.
  struct Pages {
    std::string bytes;
    std::vector<std::string> digests;
    int as_base64 = 0;
  };
  static Pages read_pages(McpClient& client, const std::string& scope, const Json& more = Json::object()) {
    Pages pages;
    for (Json offset = 0; !offset.is_null();) {
      Json arguments = {{"scope", scope}, {"offset", offset}};
      arguments.update(more);
      const Called page = client.call("file_read", arguments);
      if (page.is_error()) {
        ADD_FAILURE() << page.response.dump().substr(0, 300);
        return pages;
      }
      EXPECT_EQ(page.document["offset"], offset);
      EXPECT_NE(page.document.contains("content"), page.document.contains("content_base64"));
      if (page.document.contains("content_base64")) {
        ++pages.as_base64;
        pages.bytes += base64_decode(text_member(page.document, "content_base64")).value();
      } else {
        pages.bytes += page.document["content"].get<std::string>();
      }
      pages.digests.push_back(page.document["sha256"]);
      EXPECT_TRUE(page.document["next_offset"].is_null() || page.document["next_offset"] == pages.bytes.size());
      offset = page.document["next_offset"];
    }
    return pages;
  }
  Workbench bench_;
};

// B112: the second client learns who has it, instead of "in use".
TEST_F(ToolCalls, B112ARefusalSaysWhoHoldsItSinceWhenUntilWhenWhatForAndWhatNext) {
  for (const char* version : {"2025-06-18", "2025-11-25", kModernVersion}) {
    McpClient client(bench_, version);
    for (const char* scope : {"a.txt", "browser://profiles/main", "session://login"}) {
      const Json keys = client.lease(scope, "bob");
      const Called refused = client.call("lease_acquire", {{"scope", scope}, {"owner", "alice"}, {"task", "t"}});
      ASSERT_EQ(refused.code(), "lease_scope_conflict");
      EXPECT_TRUE(refused.is_error());
      const std::string message = refused.message();
      const Json lease = client.call("lease_list").document["leases"][0];
      for (const std::string& fact : {std::string("bob"), std::string("task-1"), text_member(lease, "expires_at")}) {
        EXPECT_NE(dump_ascii(refused.document).find(fact), std::string::npos) << fact << " in " << refused.document;
      }
      EXPECT_NE(message.find("bob"), std::string::npos) << message;
      EXPECT_NE(dump_ascii(refused.document).find(text_member(lease, "started_at").substr(0, 16)), std::string::npos);
      EXPECT_FALSE(text_member(refused.document["error"]["next"], "hint").empty());
      EXPECT_EQ(refused.document["error"]["effect"], "none");
      client.call("lease_release", keys);
    }
  }
}

TEST_F(ToolCalls, OfAnOlderRevisionCarryTheRefusalAsTextAlone) {
  McpClient client(bench_, "2024-11-05");
  const Json answer = client.request("tools/call", {{"name", "file_read"}, {"arguments", {{"scope", "../x"}}}});
  EXPECT_EQ(answer["result"]["isError"], true);
  EXPECT_FALSE(answer["result"].contains("structuredContent"));
  const auto document = parse_json(text_member(answer["result"]["content"][0], "text"));
  ASSERT_TRUE(document.has_value());
  EXPECT_EQ((*document)["error"]["code"], "scope_parent_traversal");
}

TEST_F(ToolCalls, AreListedAlikeOnEveryConnectionAndInBothEras) {
  Json first;
  for (const char* version : {"2025-11-25", "2025-11-25", kModernVersion}) {
    McpClient client(bench_, version);
    const Json tools = client.request("tools/list")["result"]["tools"];
    if (first.is_null()) first = tools;
    EXPECT_EQ(tools, first);
    EXPECT_EQ(tools.size(), 15U);
    EXPECT_EQ(client.request("tools/list", {{"cursor", "x"}})["error"]["code"], -32602);
  }
}

TEST_F(ToolCalls, ReadALargeTextInPagesThatCutNoCharacter) {
  std::string text;
  for (int number = 0; text.size() < 900'000; ++number)
    text += number % 3 == 0 ? "\u20ac" : number % 3 == 1 ? "\U0001F600" : "e\u0301";
  bench_.put("text.txt", text);
  McpClient client(bench_);
  for (const Json& more : {Json::object(), Json{{"limit", 100'003}}}) {
    const auto pages = read_pages(client, "text.txt", more);
    EXPECT_TRUE(pages.bytes == text);
    EXPECT_EQ(pages.as_base64, 0) << "a page ends between two characters";
    for (const std::string& digest : pages.digests) EXPECT_EQ(digest, sha256_hex(text));
  }
  // From the middle of a character on, and less than one.
  EXPECT_TRUE(client.call("file_read", {{"scope", "text.txt"}, {"offset", 1}, {"limit", 8}})
                  .document.contains("content_base64"));
  EXPECT_EQ(client.call("file_read", {{"scope", "text.txt"}, {"limit", 0}}).document["next_offset"], 1);
}

TEST_F(ToolCalls, ReadWhatIsNoTextInPagesAsBase64) {
  std::string bytes;
  std::uint32_t state = 1;
  while (bytes.size() < 700'001) bytes += static_cast<char>((state = state * 1664525U + 1013904223U) >> 24U);
  bench_.put("random.bin", bytes);
  McpClient client(bench_);
  const auto pages = read_pages(client, "random.bin");
  EXPECT_TRUE(pages.bytes == bytes);
  EXPECT_EQ(pages.as_base64, static_cast<int>(pages.digests.size()));
}

// Each byte takes up to thirteen in a reply: pages become shorter, replies stay under 1 MiB (receive() checks it).
TEST_F(ToolCalls, ReadWhatHasToBeEscapedInShorterPages) {
  for (const char* unit : {"\x01", "\"", "\\", "\n", "\u2028"}) {
    std::string text;
    while (text.size() < 300'000) text += unit;
    bench_.put("escaped.txt", text);
    McpClient client(bench_);
    EXPECT_TRUE(read_pages(client, "escaped.txt").bytes == text) << static_cast<int>(*unit);
  }
}

TEST_F(ToolCalls, ShowByTheDigestThatAFileChangedBetweenTwoPages) {
  bench_.put("big.txt", std::string(400'000, 'a'));
  McpClient client(bench_);
  const Json first = client.call("file_read", {{"scope", "big.txt"}}).document;
  bench_.put("big.txt", std::string(400'000, 'a') + "b");
  const Json second = client.call("file_read", {{"scope", "big.txt"}, {"offset", first["next_offset"]}}).document;
  EXPECT_NE(first["sha256"], second["sha256"]);
  const Json beyond = client.call("file_read", {{"scope", "big.txt"}, {"offset", 10'000'000}}).document;
  EXPECT_EQ(beyond["content"], "");
  EXPECT_TRUE(beyond["next_offset"].is_null());
}

TEST_F(ToolCalls, ListMoreLeasesThanAReplyCarriesInPages) {
  McpClient client(bench_);
  Json scopes = Json::array();
  for (int number = 0; number < 600; ++number) scopes.push_back("session://many/" + std::to_string(1000 + number));
  const Called got =
      client.call("lease_acquire", {{"scopes", scopes}, {"owner", "o"}, {"task", std::string(300, 't')}});
  ASSERT_EQ(got.code(), "") << got.message();
  EXPECT_EQ(got.document["leases"].size(), 600U);
  std::set<std::string> seen;
  int pages = 0;
  for (Json offset = 0; !offset.is_null(); ++pages) {
    const Json page = client.call("lease_list", {{"offset", offset}}).document;
    EXPECT_EQ(page["total"], 600);
    for (const Json& lease : page["leases"]) EXPECT_TRUE(seen.insert(lease["resource_id"]).second);
    offset = page["next_offset"];
  }
  EXPECT_EQ(seen.size(), 600U);
  EXPECT_GT(pages, 1);
  const Json resource = client.request("resources/read", {{"uri", "holdfast://leases"}});
  const auto document = parse_json(text_member(resource["result"]["contents"][0], "text"));
  ASSERT_TRUE(document.has_value());
  EXPECT_EQ((*document)["shortened"], true);
  // The keys of a shortened answer are whole.
  EXPECT_EQ(client.call("lease_release", support::keys_of_lease(got.document["leases"][599])).code(), "");
}

// What cannot be told is not kept: a lease that nobody knows would stand in everybody's way.
TEST_F(ToolCalls, GiveBackLeasesThatNoReplyCouldCarry) {
  McpClient client(bench_);
  Json scopes = Json::array();
  for (int number = 0; number < 80; ++number)
    scopes.push_back("session://" + std::string(3900, 'n') + std::to_string(number));
  const Called got = client.call("lease_acquire", {{"scopes", scopes}, {"owner", "o"}, {"task", "t"}});
  EXPECT_EQ(got.code(), "usage") << got.message();
  EXPECT_EQ(client.call("lease_list").document["total"], 0);
}

// M01, B102: a whole-file write from a stale read, by another agent.
TEST_F(ToolCalls, M01AWriteFromAStaleReadIsRefusedWithWhatIsThereNow) {
  McpClient one(bench_);
  McpClient two(bench_);
  const Json read = one.call("file_read", {{"scope", "a.txt"}}).document;
  const Json theirs = two.lease("a.txt", "bob");
  ASSERT_EQ(two.call("file_write", theirs, {{"content", "bob's"}}).code(), "");
  ASSERT_EQ(two.call("lease_release", theirs).code(), "");
  const Json mine = one.lease("a.txt");
  const Called stale = one.call("file_write", mine, {{"content", "mine"}, {"preimage_sha256", read["sha256"]}});
  EXPECT_EQ(stale.code(), "preimage_hash_mismatch");
  EXPECT_NE(dump_ascii(stale.document).find(sha256_hex("bob's")), std::string::npos);
  EXPECT_EQ(bench_.get("a.txt"), "bob's");
}

// M39: the holder slept past its deadline.
TEST_F(ToolCalls, M39ALeaseThatRanOutIsNeverRenewedWhetherOrNotSomebodyTookOver) {
  for (const bool is_taken_over : {false, true}) {
    McpClient client(bench_);
    const Json old = client.lease("a.txt", "alice", {{"ttl_seconds", 1}});
    client.bridge().stop();
    ::usleep(1'300'000);
    Json theirs;
    if (is_taken_over) {
      McpClient other(bench_);
      theirs = other.lease("a.txt", "bob");
      ASSERT_EQ(other.call("file_write", theirs, {{"content", "bob's"}}).code(), "");
    }
    client.bridge().cont();
    const std::string before = bench_.get("a.txt");
    const std::string code = is_taken_over ? "stale_lease_generation" : "lease_expired";
    EXPECT_EQ(client.call("lease_heartbeat", old).code(), code);
    EXPECT_EQ(client.call("file_write", old, {{"content", "stale"}}).code(), code);
    EXPECT_EQ(client.call("file_edit", old, {{"replacements", {{{"old", "o"}, {"new", "0"}}}}}).code(), code);
    EXPECT_EQ(client.call("lease_release", old).code(), code);
    EXPECT_EQ(bench_.get("a.txt"), before);
    if (is_taken_over) client.call("lease_release", theirs);
    const Json fresh = client.lease("a.txt");
    EXPECT_GT(std::stoull(fresh["generation"].get<std::string>()), std::stoull(old["generation"].get<std::string>()));
    client.call("lease_release", fresh);
  }
}

// M42: what is not enforced is said, and refused where enforcement was asked for.
TEST_F(ToolCalls, M42ALeaseNeverClaimsMoreThanTheKernelDoes) {
  bench_.put("linked.txt", "x");
  ASSERT_EQ(::link(bench_.at("linked.txt").c_str(), bench_.at("second.txt").c_str()), 0);
  McpClient client(bench_);
  for (const char* scope : {"absent.txt", "linked.txt", "session://s"}) {
    const Called asked =
        client.call("lease_acquire", {{"scope", scope}, {"owner", "o"}, {"task", "t"}, {"require", "enforced"}});
    EXPECT_TRUE(asked.is_error()) << scope;
    const Called got = client.call("lease_acquire", {{"scope", scope}, {"owner", "o"}, {"task", "t"}});
    ASSERT_EQ(got.code(), "") << scope;
    EXPECT_EQ(got.document["leases"][0]["os_lock"]["enforced"], false) << scope;
    EXPECT_FALSE(text_member(got.document["leases"][0]["os_lock"], "reason").empty()) << scope;
  }
  const Called guarded =
      client.call("lease_acquire", {{"scope", "a.txt"}, {"owner", "o"}, {"task", "t"}, {"require", "enforced"}});
  EXPECT_EQ(guarded.document["leases"][0]["os_lock"]["enforced"], true);
}

// B106: somebody has the file open for writing.
TEST_F(ToolCalls, B106AWriterThatHasItOpenAlreadyIsSaidBeforeAnyEffect) {
  const os::Handle open_elsewhere(::open(bench_.at("a.txt").c_str(), O_RDWR | O_CLOEXEC));
  McpClient client(bench_);
  const Called got = client.call("lease_acquire", {{"scope", "a.txt"}, {"owner", "o"}, {"task", "t"}});
  if (!got.is_error()) { EXPECT_EQ(got.document["leases"][0]["os_lock"]["enforced"], false) << got.document; }
  EXPECT_TRUE(
      client.call("lease_acquire", {{"scope", "a.txt"}, {"owner", "o2"}, {"task", "t"}, {"require", "enforced"}})
          .is_error());
}

}  // namespace
}  // namespace holdfast
