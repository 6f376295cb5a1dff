#include "base/digest.h"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

TEST(Sha256, GivesThePublishedVectors) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, IsTheSameInPieces) {
  const std::string bytes = std::string(1000, 'x') + std::string("\0\xFF", 2);
  for (const std::size_t size : {1U, 63U, 64U, 65U, 999U}) {
    Sha256 digest;
    for (std::size_t at = 0; at < bytes.size(); at += size) digest.add(std::string_view(bytes).substr(at, size));
    EXPECT_EQ(digest.hex(), sha256_hex(bytes));
  }
}

TEST(Fnv1a, GivesThePublishedVectors) {
  EXPECT_EQ(fnv1a_hex(""), "cbf29ce484222325");
  EXPECT_EQ(fnv1a_hex("a"), "af63dc4c8601ec8c");
  EXPECT_EQ(fnv1a_hex("foobar"), "85944171f73967e8");
}

TEST(Fnv1a, GivesTwoScopesOneKey) {
  EXPECT_EQ(fnv1a_hex("session://5333cdwg04qjm"), "319767235ce9c844");
  EXPECT_EQ(fnv1a_hex("session://pwdggxrazyohi"), "319767235ce9c844");
}

TEST(Fnv1a, CountsBytesOver127AsThemselves) { EXPECT_EQ(fnv1a_hex("\xFF"), "af64724c8602eb6e"); }

TEST(IsSha256Hex, AcceptsSixtyFourLowercaseDigitsOnly) {
  EXPECT_TRUE(is_sha256_hex(std::string(64, 'a')));
  EXPECT_FALSE(is_sha256_hex(std::string(63, 'a')));
  EXPECT_FALSE(is_sha256_hex(std::string(65, 'a')));
  EXPECT_FALSE(is_sha256_hex(std::string(64, 'A')));
  EXPECT_FALSE(is_sha256_hex(std::string(63, 'a') + "/"));
  EXPECT_FALSE(is_sha256_hex(""));
}

}  // namespace
}  // namespace holdfast
