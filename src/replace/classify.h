// What a crash in the middle of a replacement left: destination, staged name, displaced object, intent and vault,
// compared. Never a rollback; the verdict is a function of what was found, so that it can be tested row by row.
//
//   at the destination               at the temporary name     verdict
//   the preimage (or nothing, where  nothing or T              not_published
//   nothing was before)
//   T, planned bytes                 nothing or the preimage   published_unverified (then verified and closed)
//   planned bytes, another object    any                       published_unverified (a divert gave them a new object)
//   T, other bytes                   any                       destination_content_diverged
//   another object, other bytes      the preimage              destination_identity_changed (T was there, and was
//   replaced) another object, other bytes      nothing or T              destination_identity_changed (rename_completed
//   unknown → false) nothing, where there was a file  any                       destination_identity_changed cannot be
//   looked at              any                       destination_unverifiable
#pragma once
#include <optional>
#include <string>

#include "replace/intent.h"

namespace holdfast::replace {

struct Found {
  bool readable = true;                     // the place could be looked at
  std::optional<os::Identity> destination;  // nullopt: nothing bears the name
  std::string destination_sha256;
  std::optional<os::Identity> at_temporary;  // what bears the temporary name
};

struct Verdict {
  std::string kind;  // not_published published_unverified fault
  Code fault = Code::destination_unverifiable;
  std::string error;
  bool rename_completed = false;
};

Verdict classify(const Intent& intent, const Found& found);

}  // namespace holdfast::replace
