// The arguments of one request, read with types. A missing or mistyped argument is a `usage` refusal that names it.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "holdfast/result.h"
#include "lease/tenancy.h"

namespace holdfast::engine {

class Arguments {
 public:
  explicit Arguments(const Json& arguments) : json_(arguments) {}

  Result<std::string> text(const char* name) const;  // required, UTF-8, not empty, no control character
  Result<std::optional<std::string>> optional_text(const char* name) const;
  Result<bool> flag(const char* name) const;  // false where absent
  Result<std::optional<std::uint64_t>> number(const char* name) const;
  Result<std::string> scope() const;  // raw bytes, as typed
  Result<std::vector<std::string>> scopes() const;
  Result<std::string> current_folder() const;
  Result<TenancyKeys> keys() const;
  bool has(const char* name) const { return json_.contains(name); }
  const Json& json() const { return json_; }

 private:
  const Json& json_;
};

Refusal usage(const std::string& message);

}  // namespace holdfast::engine
