#include "server/adoption_errors.h"

#include <gtest/gtest.h>

#include <set>

namespace holdfast {
namespace {

TEST(AdoptionErrors, ArePositiveAndEachHasANumberOfItsOwn) {
  std::set<int> numbers;
  for (const AdoptionError& error : adoption_errors()) {
    EXPECT_GT(error.number, 0);
    EXPECT_TRUE(numbers.insert(error.number).second);
    EXPECT_EQ(adoption_error(Refusal(error.code, "why")).at("code"), error.number);
  }
}

TEST(AdoptionErrors, CarryTheRefusalAndAnUnforeseenOneToo) {
  const Json error = adoption_error(Refusal(Code::os_failed, "no descriptor is left"));
  EXPECT_GT(error.at("code"), 0);
  EXPECT_EQ(error.at("message"), "no descriptor is left");
  EXPECT_EQ(error.at("data").at("error").at("code"), "os_failed");
}

TEST(AdoptionErrors, SayThatNobodyIsExpected) {
  EXPECT_EQ(adoption_not_expected().at("code"), 4102);
  EXPECT_EQ(adoption_not_expected().at("data").at("error").at("code"), "adoption_not_expected");
}

}  // namespace
}  // namespace holdfast
