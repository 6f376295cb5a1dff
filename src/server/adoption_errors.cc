#include "server/adoption_errors.h"

#include <algorithm>
#include <array>

namespace holdfast {
namespace {

constexpr int kOther = 4100;
constexpr std::array kErrors = {AdoptionError{4101, Code::adoption_secret_invalid},
                                AdoptionError{4102, Code::adoption_not_expected},
                                AdoptionError{4103, Code::handoff_refused}, AdoptionError{4104, Code::handoff_failed},
                                AdoptionError{4105, Code::handoff_in_progress}};

}  // namespace

std::span<const AdoptionError> adoption_errors() { return kErrors; }

Json adoption_error(const Refusal& refusal) {
  const auto found = std::find_if(kErrors.begin(), kErrors.end(),
                                  [&](const AdoptionError& error) { return error.code == refusal.code(); });
  return Json{{"code", found == kErrors.end() ? kOther : found->number},
              {"message", refusal.message()},
              {"data", refusal.to_json()}};
}

Json adoption_not_expected() {
  return adoption_error(Refusal(Code::adoption_not_expected, "nobody is expected to adopt leases here"));
}

}  // namespace holdfast
