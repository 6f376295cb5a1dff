// Row by row of the table in classify.h.
#include "replace/classify.h"

#include <gtest/gtest.h>

namespace holdfast::replace {
namespace {

const os::Identity kBefore{1, 10, 100};
const os::Identity kStaged{1, 11, 101};
const os::Identity kForeign{1, 12, 102};

Intent intent(bool existed) {
  Intent made;
  made.planned_sha256 = "planned";
  made.staged = kStaged;
  if (existed) made.preimage = {true, "before", 3, kBefore};
  return made;
}

Found found(std::optional<os::Identity> destination, const std::string& sha256 = "",
            std::optional<os::Identity> temporary = std::nullopt) {
  return Found{true, destination, sha256, temporary};
}

TEST(Classify, ThePreimageAtTheNameMeansNotPublished) {
  EXPECT_EQ(classify(intent(true), found(kBefore, "before")).kind, "not_published");
  EXPECT_EQ(classify(intent(true), found(kBefore, "before", kStaged)).kind, "not_published");
  EXPECT_EQ(classify(intent(false), found(std::nullopt)).kind, "not_published");
}

TEST(Classify, TheStagedObjectWithItsBytesIsPublished) {
  EXPECT_EQ(classify(intent(true), found(kStaged, "planned", kBefore)).kind, "published_unverified");
  EXPECT_EQ(classify(intent(false), found(kStaged, "planned")).kind, "published_unverified");
}

TEST(Classify, ADivertedTwinOfEitherSideCountsByItsBytes) {
  EXPECT_EQ(classify(intent(true), found(kForeign, "planned")).kind, "published_unverified");
  EXPECT_EQ(classify(intent(true), found(kForeign, "before")).kind, "not_published");
}

TEST(Classify, OtherBytesInTheStagedObjectAreDivergedContent) {
  const Verdict verdict = classify(intent(true), found(kStaged, "foreign"));
  EXPECT_EQ(verdict.kind, "fault");
  EXPECT_EQ(verdict.fault, Code::destination_content_diverged);
  EXPECT_TRUE(verdict.rename_completed);
}

TEST(Classify, AForeignObjectIsAChangedIdentityAndTheDisplacedPreimageTellsThatTheRenameHappened) {
  const Verdict after = classify(intent(true), found(kForeign, "foreign", kBefore));
  EXPECT_EQ(after.fault, Code::destination_identity_changed);
  EXPECT_TRUE(after.rename_completed);
  const Verdict before = classify(intent(true), found(kForeign, "foreign", kStaged));
  EXPECT_EQ(before.fault, Code::destination_identity_changed);
  EXPECT_FALSE(before.rename_completed);
  EXPECT_EQ(classify(intent(true), found(std::nullopt)).fault, Code::destination_identity_changed);
}

TEST(Classify, APlaceThatCannotBeLookedAtIsUnverifiableAndNeverASuccess) {
  Found nothing;
  nothing.readable = false;
  EXPECT_EQ(classify(intent(true), nothing).fault, Code::destination_unverifiable);
}

}  // namespace
}  // namespace holdfast::replace
