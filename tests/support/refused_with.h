// EXPECT_TRUE(refused_with(result, Code::x)): refusals are matched by code, never by message.
#pragma once
#include <gtest/gtest.h>

#include <string>

#include "holdfast/result.h"

namespace holdfast::support {

template <class T>
testing::AssertionResult refused_with(const Result<T>& result, Code code) {
  if (result.ok()) return testing::AssertionFailure() << "not refused; expected " << facts_of(code).name;
  if (result.refusal().code() == code) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "refused with " << result.refusal().code_name() << " ("
                                     << result.refusal().message() << "); expected " << facts_of(code).name;
}

template <class T>
testing::AssertionResult granted(const Result<T>& result) {
  if (result.ok()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "refused with " << result.refusal().code_name() << ": "
                                     << result.refusal().message();
}

}  // namespace holdfast::support
