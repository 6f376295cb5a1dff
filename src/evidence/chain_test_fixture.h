// What the tests of the evidence chain share: a chain in memory, and what is on its disk.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/json.h"
#include "evidence/chain.h"
#include "os/fake/control_folder.h"
#include "support/refused_with.h"

namespace holdfast::evidence {

using support::granted;
using support::refused_with;

constexpr const char* kFirst = "evidence/log-000001.jsonl";
constexpr const char* kSecond = "evidence/log-000002.jsonl";
const Instant kNow{1000, 1793469600123456, "boot"};

inline Event event_of(const std::string& kind, std::uint64_t generation = 0, std::vector<std::string> parents = {}) {
  Event event;
  event.kind = kind;
  event.scope = "file://project:/a";
  event.generation = Generation{generation};
  event.parents = std::move(parents);
  event.facts = {{"owner", "somebody"}};
  return event;
}

inline Event large_event() {
  Event event = event_of("large");
  event.facts["text"] = std::string(1'500'000, 'x');
  return event;
}

class ChainTest : public testing::Test {
 protected:
  os::FakeControlFolder files;
  Chain chain{files};

  std::string add(const std::string& kind, std::uint64_t generation = 0, std::vector<std::string> parents = {}) {
    return chain.append({event_of(kind, generation, std::move(parents))}, kNow).value().at(0);
  }
  std::string text(const std::string& path = kFirst) { return files.read(path).value().value_or("(none)"); }
  std::vector<std::string> lines(const std::string& path = kFirst) {
    std::vector<std::string> found;
    const std::string all = text(path);
    for (std::size_t at = 0, end = 0; (end = all.find('\n', at)) != std::string::npos; at = end + 1) {
      found.push_back(all.substr(at, end - at));
    }
    return found;
  }
  Verification verified() { return Chain(files).verify().value(); }
  std::vector<Json> events() {
    std::vector<Json> found;
    EXPECT_TRUE(granted(Chain(files).each([&](const Json& event) { return found.push_back(event), true; })));
    return found;
  }
  void expect_broken(std::uint64_t line, std::uint64_t seq, const std::string& what, const std::string& path = kFirst) {
    const Verification found = verified();
    ASSERT_TRUE(found.first_break.has_value()) << what;
    EXPECT_EQ(found.first_break->line, line) << what << ": " << found.first_break->reason;
    EXPECT_EQ(found.first_break->seq, seq) << what << ": " << found.first_break->reason;
    EXPECT_EQ("evidence/" + found.first_break->segment, path);
    EXPECT_FALSE(found.first_break->reason.empty());
  }
  static std::string joined(const std::vector<std::string>& lines) {
    std::string all;
    for (const std::string& line : lines) all += line + "\n";
    return all;
  }
};

}  // namespace holdfast::evidence
