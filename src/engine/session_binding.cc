#include "engine/session_binding.h"

#include <algorithm>

#include "base/json.h"
#include "engine/receiver_registry.h"
#include "scope/resolve.h"

namespace holdfast::engine {
namespace {

// As far as they lie in the workspace: outside of it no file lease can be in the way.
std::vector<Scope> files_behind(Context& context, const Registered& registered) {
  std::vector<Scope> files;
  const std::string database = text_member(opening_config(context, registered), "database");
  if (database.empty()) return files;
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
    if (auto scope = resolve_scope(context.folder, database + suffix, "/"); scope.ok()) {
      files.push_back(std::move(*scope));
    }
  }
  return files;
}

}  // namespace

os::Identity database_identity(Context& context, const Scope& session) {
  if (session.ns != Namespace::session) return {};
  const auto registered = receiver_of(context, session.full());
  if (!registered.ok() || !*registered || (*registered)->kind != "sqlite") return {};
  const auto files = files_behind(context, **registered);
  if (files.empty()) return {};
  const auto place = pin_place(context.folder, files.front());
  return place.ok() && place->facts ? place->facts->identity : os::Identity{};
}

Result<void> SessionBindings::read() {
  if (all_) return {};
  HF_TRY(const auto registered, registered_receivers(context_));
  std::vector<Bound> all;
  for (const Registered& one : registered) {
    const auto session = parse_canonical_scope(one.resource);
    if (session.ok()) all.push_back({*session, files_behind(context_, one)});
  }
  all_ = std::move(all);
  return {};
}

Result<bool> SessionBindings::bound(const Scope& one, const Scope& other) {
  if (one.is_file() == other.is_file()) return false;
  HF_CHECK(read());
  const Scope& session = one.is_file() ? other : one;
  const Scope& file = one.is_file() ? one : other;
  return std::any_of(all_->begin(), all_->end(), [&](const Bound& bound) {
    return overlaps(bound.session, session) && std::any_of(bound.files.begin(), bound.files.end(),
                                                           [&](const Scope& behind) { return overlaps(behind, file); });
  });
}

std::vector<Scope> with_files_behind(Context& context, std::vector<Scope> scopes) {
  const std::vector<Scope> asked = scopes;
  for (const Scope& scope : asked) {
    if (scope.is_file()) continue;
    const auto all = receivers_overlapping(context, scope);
    if (!all.ok()) continue;
    for (const Registered& registered : *all) {
      for (Scope& file : files_behind(context, registered)) scopes.push_back(std::move(file));
    }
  }
  return scopes;
}

}  // namespace holdfast::engine
