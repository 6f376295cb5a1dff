// Three writers that never asked open, truncate and append in a loop while 200 guarded replacements happen: no foreign
// byte is ever under the leased name, and what they wrote is in the vault within the stated bounds, else counted.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "base/digest.h"
#include "base/json.h"
#include "support/workbench.h"

namespace holdfast {
namespace {

using support::Answer;
using support::Child;
using support::Lease;
using support::Workbench;

constexpr int kReplacements = 200;
constexpr auto kHostileFor = std::chrono::seconds(10);

std::vector<Child> hostile_writers(const std::string& path) {
  std::vector<Child> writers;
  const std::vector<std::string> idioms = {"while :; do echo EVIL-open > \"$1\"; done 2>/dev/null",
                                           "while :; do truncate -s 3 \"$1\"; done 2>/dev/null",
                                           "while :; do echo EVIL-append >> \"$1\"; done 2>/dev/null"};
  for (const std::string& idiom : idioms) writers.push_back(support::spawn({"sh", "-c", idiom, "sh", path}));
  return writers;
}

TEST(HostileWriters, NeverPutAByteUnderTheLeasedName) {
  Workbench bench;
  bench.put("a.txt", "generation of good bytes 0\n");
  bench.serve();
  const Lease lease = bench.acquire("a.txt");
  ASSERT_EQ(lease.record["os_lock"]["enforced"], true);
  std::atomic<bool> stop{false};
  std::atomic<int> foreign{0};
  std::atomic<int> reads{0};
  // Only what bore the name while it was read counts: a reader that opened before a divert stays on the old object,
  // which has lost its name by the time the writer gets to it (docs/guarantees.md).
  std::thread reader([&] {
    while (!stop) {
      const int file = ::open(bench.at("a.txt").c_str(), O_RDONLY | O_CLOEXEC);
      if (file < 0) {
        ++foreign;
        continue;
      }
      char bytes[256];
      const ssize_t count = ::read(file, bytes, sizeof bytes);
      struct stat after {};
      const bool still_named = ::fstat(file, &after) == 0 && after.st_nlink > 0;
      ::close(file);
      const std::string seen(bytes, static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
      if (!still_named) continue;
      ++reads;
      if (!seen.starts_with("generation of good bytes ") || seen.back() != '\n') ++foreign;
    }
  });
  auto writers = hostile_writers(bench.at("a.txt"));
  const auto begun = std::chrono::steady_clock::now();
  for (int number = 1; number <= kReplacements; ++number) {
    const Answer written = bench.write(lease, "generation of good bytes " + std::to_string(number) + "\n");
    ASSERT_TRUE(written.ok()) << number << ": " << written.text;
  }
  while (std::chrono::steady_clock::now() - begun < kHostileFor) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  for (Child& writer : writers) writer.kill();
  stop = true;
  reader.join();
  EXPECT_EQ(foreign, 0) << "of " << reads << " reads";
  EXPECT_EQ(bench.get("a.txt"), "generation of good bytes " + std::to_string(kReplacements) + "\n");
  const Answer released = bench.release(lease);
  EXPECT_TRUE(released.ok()) << released.text;
  EXPECT_EQ(released.document["content_mismatch"], false) << released.text;
  // Every capture is in the vault under its digest; what went beyond the bounds was counted.
  int captured = 0;
  const auto evil = [&] {
    captured = 0;
    const Answer listed = bench.run({"quarantine", "list"});
    for (const Json& entry : listed.at("quarantine")) {
      if (entry["kind"] != "diverted_write") continue;
      ++captured;
      const std::string digest = text_member(entry, "sha256");
      EXPECT_EQ(sha256_hex(bench.get(".squad/vault/amber/" + digest)), digest);
    }
    return captured > 0;
  };
  EXPECT_TRUE(support::eventually(evil)) << "no diverted bytes were kept";
  EXPECT_LE(captured, 1000);
  EXPECT_NE(bench.log().find("write_diverted"), std::string::npos);
  EXPECT_TRUE(bench.evidence_verifies());
  EXPECT_EQ(bench.listing(), support::Words{"a.txt"});
}

}  // namespace
}  // namespace holdfast
