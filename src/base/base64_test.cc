#include "base/base64.h"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

TEST(Base64, GivesTheVectorsOfTheStandard) {
  const std::pair<const char*, const char*> vectors[] = {{"", ""},
                                                         {"f", "Zg=="},
                                                         {"fo", "Zm8="},
                                                         {"foo", "Zm9v"},
                                                         {"foob", "Zm9vYg=="},
                                                         {"fooba", "Zm9vYmE="},
                                                         {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : vectors) {
    EXPECT_EQ(base64_encode(bytes), text);
    EXPECT_EQ(base64_decode(text), bytes);
  }
}

TEST(Base64, CarriesEveryByte) {
  std::string bytes;
  for (int value = 0; value < 256; ++value) bytes += static_cast<char>(value);
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    EXPECT_EQ(base64_decode(base64_encode(bytes.substr(0, size))), bytes.substr(0, size));
  }
}

TEST(Base64, RefusesWhatIsNotOfTheStandardAlphabetOrLength) {
  for (const char* text :
       {"Z", "Zg", "Zg=", "Zg===", "=Zg=", "Z===", "====", "Zm9v\n", "Zm 9v", "Zm9-", "Zm9_", "Zg==Zg=="}) {
    EXPECT_FALSE(base64_decode(text).has_value()) << text;
  }
}

// Two texts for the same bytes would give one content two names.
TEST(Base64, RefusesBitsBeyondTheLastByte) {
  EXPECT_FALSE(base64_decode("Zh==").has_value());
  EXPECT_FALSE(base64_decode("Zm9=").has_value());
}

}  // namespace
}  // namespace holdfast
