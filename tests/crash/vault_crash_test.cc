// The process that stores an entry is killed before and after the entry gets its name. What has to hold: the vault has
// the whole entry or nothing, and the next one stores it.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "os/unnamed_file.h"
#include "support/child.h"
#include "support/refused_with.h"
#include "support/temporary_folder.h"
#include "vault/vault.h"

namespace holdfast::vault {
namespace {

using support::granted;
using support::TemporaryFolder;

const std::string kBytes(600'000, 'v');

os::Handle folder_at(const std::string& path) {
  return os::Handle(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

const support::RegisterRole kStorer("vault_storer", [](const std::vector<std::string>& arguments) {
  auto vault = Vault::open(folder_at(arguments.at(0))).value();
  return vault->store_bytes(Tier::amber, kBytes).ok() ? 0 : 1;
});

std::size_t entries(const TemporaryFolder& squad) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(squad.at("vault/amber")))
    count += entry.exists() ? 1 : 0;
  return count;
}

// Runs the storer with a fault; false where this build has no fault points (then it simply ends well).
bool was_killed_at(const std::string& point, const TemporaryFolder& squad) {
  support::SpawnOptions options;
  options.environment["HOLDFAST_FAULT"] = point + ":kill";
  const int status = support::spawn_as("vault_storer", {squad.path()}, options).wait();
  EXPECT_TRUE(status == -SIGKILL || status == 0) << status;
  return status == -SIGKILL;
}

void store_again(const TemporaryFolder& squad) {
  auto vault = Vault::open(squad.open()).value();
  ASSERT_TRUE(granted(vault->store_bytes(Tier::amber, kBytes)));
  EXPECT_TRUE(granted(vault->open_verified(Tier::amber, sha256_hex(kBytes))));
  EXPECT_EQ(entries(squad), 1U);
}

TEST(VaultCrash, LeavesNothingWhereItIsKilledBeforeTheEntryHasItsName) {
  TemporaryFolder squad;
  if (!was_killed_at("vault_before_link", squad)) GTEST_SKIP() << "built without HOLDFAST_FAULT_POINTS";
  EXPECT_EQ(entries(squad), 0U);
  store_again(squad);
}

TEST(VaultCrash, LeavesTheWholeEntryWhereItIsKilledAfterwards) {
  TemporaryFolder squad;
  if (!was_killed_at("vault_after_link", squad)) GTEST_SKIP() << "built without HOLDFAST_FAULT_POINTS";
  EXPECT_EQ(entries(squad), 1U);
  EXPECT_TRUE(granted(Vault::open(squad.open()).value()->open_verified(Tier::amber, sha256_hex(kBytes))));
  store_again(squad);
}

}  // namespace
}  // namespace holdfast::vault
