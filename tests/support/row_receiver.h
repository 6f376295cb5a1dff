// The fixture of the suite of the receivers: a receiver of the table accounts with the mark 5, on each database of
// row_databases.h, and commands for its row 7. HOLDFAST_EVERY_ROW_DATABASE(Suite) runs a suite on all of them.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/json.h"
#include "receivers/receiver.h"
#include "support/refused_with.h"
#include "support/row_databases.h"

namespace holdfast::support {

inline const std::string kAccounts = "session://rows.records/accounts";

class RowReceiverTest : public testing::TestWithParam<RowDatabaseKind> {
 protected:
  using Command = holdfast::Command;
  void SetUp() override {
    ASSERT_EQ(GetParam().why_not(), "");
    database_ = GetParam().make();
    receiver_ = opened("accounts", {"id"});
    ASSERT_TRUE(receiver_);
    ASSERT_TRUE(granted(receivers::make_mark(*receiver_, kAccounts, Generation{5})));
  }

  std::unique_ptr<receivers::Receiver> opened(const std::string& table, const std::vector<std::string>& key) {
    auto receiver = open_row_receiver(database_->config(), table, key);
    EXPECT_TRUE(granted(receiver));
    return receiver.ok() ? std::move(*receiver) : nullptr;
  }

  static Command command(const std::string& id, std::uint64_t generation, const std::string& version,
                         const std::string& payload) {
    return {id,           kAccounts,          "act", "reversible",      "ada",
            "task",       generation,         1,     {"ws-1", "local"}, version,
            std::nullopt, sha256_hex(payload)};
  }
  static receivers::Current at_mark(std::uint64_t mark) {
    receivers::Current current;
    current.issuer = {"ws-1", "local"};
    current.workspace_mark = Generation{mark};
    return current;
  }
  static std::string payload_of(const Json& key, const Json& set) {
    return dump_canonical(Json{{"key", key}, {"set", set}});
  }
  static std::string state_set(const std::string& state) {
    return payload_of({{"id", {{"integer", "7"}}}}, {{"state", {{"text", state}}}});
  }
  static std::string paid() { return state_set("paid"); }

  receivers::Delivery sent(const Json& command, const std::string& payload, const receivers::Current& current) {
    auto delivery = receivers::deliver(*receiver_, command, payload, current);
    EXPECT_TRUE(granted(delivery));
    return delivery.ok() ? std::move(*delivery) : receivers::Delivery{};
  }
  std::string decided(const Json& command, const std::string& payload, const receivers::Current& current) {
    return sent(command, payload, current).decision.decision;
  }
  std::string state() { return database_->ask("SELECT state FROM accounts WHERE id=7"); }
  std::string version() { return database_->ask("SELECT version FROM accounts WHERE id=7"); }
  std::string operations() { return database_->ask("SELECT count(*) FROM holdfast_operations"); }
  void expect_untouched() {
    EXPECT_EQ(state(), "new");
    EXPECT_EQ(version(), "1");
    EXPECT_EQ(operations(), "0");
  }

  std::unique_ptr<RowDatabase> database_;
  std::unique_ptr<receivers::Receiver> receiver_;
};

}  // namespace holdfast::support

#define HOLDFAST_EVERY_ROW_DATABASE(suite)                                                           \
  INSTANTIATE_TEST_SUITE_P(Every, suite, testing::ValuesIn(holdfast::support::every_row_database()), \
                           [](const auto& tested) { return std::string(tested.param.name); })
