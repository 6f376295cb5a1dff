#include "engine/authorisation.h"

#include <algorithm>

#include "base/json.h"

namespace holdfast::engine {
namespace {
constexpr const char* kPath = "control/lock-release.json";

Refusal not_authorised(const std::string& why) {
  return Refusal(Code::force_release_not_authorized, "force_release_not_authorized: " + why,
                 Json{{"path", kPath}, {"why", why}});
}

Result<std::vector<std::string>> texts(const Json& document, const char* name) {
  const Json list = document.value(name, Json());
  if (!list.is_array() || list.empty()) return not_authorised(std::string(name) + " is no list of texts");
  std::vector<std::string> found;
  for (const Json& entry : list) {
    if (!entry.is_string() || entry.get<std::string>().empty()) {
      return not_authorised(std::string(name) + " has an entry that is no text");
    }
    found.push_back(entry.get<std::string>());
  }
  return found;
}

bool covers(const std::string& listed, const Scope& scope) {
  std::string full = listed;
  if (full.find("://") == std::string::npos)
    full = full.starts_with("project:/") ? "file://" + full : "file://project:/" + full;
  const auto parsed = parse_canonical_scope(full);
  return parsed.ok() && (*parsed == scope || is_below(scope, *parsed));
}
}  // namespace

Result<Json> owner_authorisation(Context& context, const std::string& owner, const Scope& scope, const Instant& now) {
  HF_TRY(const auto bytes, context.files->read(kPath));
  if (!bytes) return not_authorised("no owner has written an authorisation");
  JsonProblem problem;
  const auto document = parse_json(*bytes, &problem);
  if (!document || !document->is_object()) return not_authorised("the authorisation is malformed");
  HF_TRY(const auto owners, texts(*document, "authorized_owners"));
  HF_TRY(const auto scopes, texts(*document, "scopes"));
  for (const char* name : {"set_by", "reason"}) {
    if (text_member(*document, name).empty()) return not_authorised(std::string(name) + " is missing");
  }
  if (std::find(owners.begin(), owners.end(), owner) == owners.end()) {
    return not_authorised(owner + " is not among the authorised owners");
  }
  if (std::none_of(scopes.begin(), scopes.end(), [&](const std::string& listed) { return covers(listed, scope); })) {
    return not_authorised("the authorisation does not cover " + scope.full());
  }
  if (document->contains("expires_at")) {
    std::int64_t until = 0;
    if (!parse_wall(text_member(*document, "expires_at"), until)) return not_authorised("expires_at is no time");
    // A person set a date; it is the one place where the wall clock is asked.
    if (until <= now.wall_us) return not_authorised("the authorisation has expired");
  }
  return *document;
}

}  // namespace holdfast::engine
