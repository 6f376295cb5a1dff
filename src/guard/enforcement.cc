// The words of an enforcement, and its JSON in a tenancy record (`os_lock`).
#include <array>

#include "base/json.h"
#include "guard/guard.h"

namespace holdfast::guard {
namespace {

constexpr std::array<std::string_view, 8> kOperationNames = {"open_write", "truncate", "rename",   "unlink",
                                                             "link",       "create",   "metadata", "mmap_store"};

Json names_of(const std::vector<Operation>& operations) {
  Json names = Json::array();
  for (const Operation operation : operations) names.push_back(name_of(operation));
  return names;
}

// A word that this version doesn't know is left out: an enforcement never says more than is known.
std::vector<Operation> operations_in(const Json& value, const char* member) {
  std::vector<Operation> operations;
  if (!value.is_object() || !value.contains(member) || !value[member].is_array()) return operations;
  for (const Json& word : value[member]) {
    for (std::size_t at = 0; at < kOperationNames.size(); ++at) {
      if (word == kOperationNames[at]) operations.push_back(static_cast<Operation>(at));
    }
  }
  return operations;
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

}  // namespace

std::string_view name_of(Operation operation) { return kOperationNames[static_cast<std::size_t>(operation)]; }

Json Enforcement::to_json() const {
  Json value = {{"enforced", enforced},         {"mechanism", mechanism},
                {"denies", names_of(denies)},   {"diverts", names_of(diverts)},
                {"detects", names_of(detects)}, {"preexisting_writers", preexisting_writers},
                {"fault", text_or_null(fault)}, {"reason", text_or_null(reason)}};
  if (divert_max_bytes != 0) value["divert_max_bytes"] = divert_max_bytes;
  return value;
}

Enforcement Enforcement::from_json(const Json& value) {
  Enforcement enforcement;
  if (!value.is_object()) return none("not_recorded");
  enforcement.enforced = value.contains("enforced") && value["enforced"] == true;
  if (const std::string word = text_member(value, "mechanism"); !word.empty()) enforcement.mechanism = word;
  enforcement.denies = operations_in(value, "denies");
  enforcement.diverts = operations_in(value, "diverts");
  enforcement.detects = operations_in(value, "detects");
  if (const std::string word = text_member(value, "preexisting_writers"); !word.empty()) {
    enforcement.preexisting_writers = word;
  }
  enforcement.fault = text_member(value, "fault");
  enforcement.reason = text_member(value, "reason");
  if (value.contains("divert_max_bytes")) {
    enforcement.divert_max_bytes = exact_u64(value["divert_max_bytes"]).value_or(0);
  }
  return enforcement;
}

Enforcement Enforcement::none(std::string reason) {
  Enforcement enforcement;
  enforcement.reason = std::move(reason);
  return enforcement;
}

}  // namespace holdfast::guard
