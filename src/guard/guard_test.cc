#include "guard/guard.h"

#include <gtest/gtest.h>

namespace holdfast::guard {
namespace {

Enforcement example() {
  Enforcement enforcement;
  enforcement.enforced = true;
  enforcement.mechanism = "kernel_lease";
  enforcement.diverts = {Operation::open_write, Operation::truncate, Operation::mmap_store};
  enforcement.detects = {Operation::rename, Operation::metadata};
  enforcement.preexisting_writers = "excluded";
  enforcement.divert_max_bytes = 1U << 28U;
  return enforcement;
}

TEST(Enforcement, HasTheMembersOfATenancyRecord) {
  EXPECT_EQ(Json::parse(R"({"enforced":true,"mechanism":"kernel_lease","denies":[],
                            "diverts":["open_write","truncate","mmap_store"],"detects":["rename","metadata"],
                            "preexisting_writers":"excluded","fault":null,"reason":null,
                            "divert_max_bytes":268435456})"),
            example().to_json());
}

TEST(Enforcement, ComesBackFromItsOwnJson) {
  const Json once = example().to_json();
  EXPECT_EQ(once, Enforcement::from_json(once).to_json());
}

TEST(Enforcement, SaysNothingThatItDoesNotKnow) {
  const Enforcement read = Enforcement::from_json(
      Json{{"enforced", "yes"}, {"mechanism", 7}, {"diverts", {"open_write", "teleport", 3}}, {"detects", "all"}});
  EXPECT_FALSE(read.enforced);
  EXPECT_EQ("none", read.mechanism);
  EXPECT_EQ(std::vector<Operation>{Operation::open_write}, read.diverts);
  EXPECT_TRUE(read.detects.empty());
  EXPECT_EQ("unknown", read.preexisting_writers);
}

TEST(Enforcement, OfNothingIsNotEnforcedAndSaysWhy) {
  EXPECT_FALSE(Enforcement::from_json(Json(nullptr)).enforced);
  const Enforcement none = Enforcement::none("folder_needs_bpf_lsm");
  EXPECT_FALSE(none.enforced);
  EXPECT_EQ("folder_needs_bpf_lsm", none.to_json()["reason"]);
  EXPECT_FALSE(none.to_json().contains("divert_max_bytes"));
}

TEST(Operation, EachHasTheNameOfTheContract) {
  EXPECT_EQ("open_write", name_of(Operation::open_write));
  EXPECT_EQ("metadata", name_of(Operation::metadata));
  EXPECT_EQ("mmap_store", name_of(Operation::mmap_store));
}

}  // namespace
}  // namespace holdfast::guard
