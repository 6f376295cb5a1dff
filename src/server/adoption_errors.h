// The positive error codes of `squad/lease_adopt` (JSON-RPC), the request by which a new image of the server
// authenticates (docs/formats/handoff.md). Wherever the method is known and nobody is expected to adopt, a bridge for
// one, it is answered with adoption_not_expected.
#pragma once
#include <span>
#include <string_view>

#include "holdfast/refusal.h"

namespace holdfast {

inline constexpr char kLeaseAdopt[] = "squad/lease_adopt";

struct AdoptionError {
  int number;  // the JSON-RPC code
  Code code;
};
std::span<const AdoptionError> adoption_errors();

// {"code":4101,"message":…,"data":{"error":{…}}}; 4100 for a refusal that has no number of its own.
Json adoption_error(const Refusal& refusal);
// The member `error` of the answer to a `squad/lease_adopt` that nobody expects: 4102.
Json adoption_not_expected();

}  // namespace holdfast
