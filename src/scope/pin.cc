// From a canonical file scope to the object on disk, and back. The walks here follow no link at all.
#include <utility>

#include "os/path_walk.h"
#include "scope/lexical.h"
#include "scope/resolve.h"

namespace holdfast {
namespace {

// A name can move between the question for it and the walk to it; a name that keeps moving has no answer.
constexpr int kAttempts = 8;

Result<os::Names> names_of(const Scope& scope) {
  if (!scope.is_file() || !scope.resource_id.starts_with(lexical::kProject)) {
    return Refusal(Code::not_a_regular_file, "not a file scope: " + lexical::excerpt(scope.full()));
  }
  os::Names names;
  if (scope.resource_id.size() > lexical::kProject.size()) names = lexical::split(scope.relative());
  HF_CHECK(lexical::file_scope(names));
  return names;
}

struct Walked {
  enum class End { found, missing, met_link, not_a_folder } end;
  os::Looked last;   // found: the object; met_link: the link
  std::string name;  // where it ended early
};

// A walk along names; a link is an end, also as the last one.
Result<Walked> walk_along(const os::WorkspaceFolder& workspace, const os::Names& names) {
  Walked walked{Walked::End::found, {}, {}};
  HF_TRY(walked.last, os::look_at_open(workspace.root));
  for (const std::string& name : names) {
    walked.name = name;
    if (walked.last.facts.kind == os::Kind::link)
      walked.end = Walked::End::met_link;
    else if (walked.last.facts.kind != os::Kind::folder)
      walked.end = Walked::End::not_a_folder;
    if (walked.end != Walked::End::found) return walked;
    HF_TRY(std::optional<os::Looked> next, os::look_at(walked.last.object, name));
    if (!next) {
      walked.end = Walked::End::missing;
      return walked;
    }
    // Another name of .squad, such as a bind mount, which names alone do not show.
    if (next->facts.identity == workspace.squad_facts.identity) {
      return Refusal(Code::scope_reserved, std::string(facts_of(Code::scope_reserved).summary));
    }
    walked.last = std::move(*next);
  }
  return walked;
}

Refusal unverifiable(const Scope& scope, const std::string& why, Json details = Json::object()) {
  details["scope"] = lexical::excerpt(scope.display());
  return Refusal(Code::destination_parent_unverifiable,
                 "the folder of " + lexical::excerpt(scope.display()) + ": " + why, std::move(details));
}

Refusal redirected(const Scope& scope) {
  return Refusal(Code::destination_parent_redirected,
                 "a folder on the way to " + lexical::excerpt(scope.display()) + " is a link now",
                 Json{{"scope", lexical::excerpt(scope.display())}});
}

// Pins the parent; false where it is missing.
Result<bool> pin_parent(const os::WorkspaceFolder& workspace, const Scope& scope, const os::Names& folders,
                        PinnedPlace& place) {
  Result<Walked> walked = walk_along(workspace, folders);
  if (!walked) {
    Refusal& refusal = walked.refusal();
    if (refusal.code() == Code::scope_reserved) return std::move(refusal);
    return unverifiable(scope, refusal.message(), refusal.details());
  }
  if (walked->end == Walked::End::missing) return false;
  const os::Kind kind = walked->last.facts.kind;
  if (kind == os::Kind::link) return redirected(scope);
  if (kind != os::Kind::folder) return unverifiable(scope, "it is no folder");
  HF_TRY(std::optional<os::Handle> folder, os::open_looked(walked->last));
  if (!folder) return unverifiable(scope, "it cannot be read");
  place.parent = std::move(*folder);
  place.parent_facts = walked->last.facts;
  return true;
}

Result<void> pin_object(const os::Looked& looked, PinnedPlace& place) {
  place.facts = looked.facts;
  place.is_mount_point = looked.is_mount_point;
  HF_TRY(place.object, os::open_looked(looked));
  return {};
}

}  // namespace

Result<PinnedPlace> pin_place(const os::WorkspaceFolder& workspace, const Scope& scope, bool parent_may_be_missing) {
  HF_TRY(os::Names names, names_of(scope));
  PinnedPlace place;
  if (!names.empty()) {
    place.leaf = std::move(names.back());
    names.pop_back();
  }
  HF_TRY(const bool has_parent, pin_parent(workspace, scope, names, place));
  if (!has_parent && parent_may_be_missing) return place;
  if (!has_parent) return unverifiable(scope, "it is missing");
  if (place.leaf.empty()) {
    HF_TRY(const os::Looked root, os::look_at_open(place.parent));
    HF_CHECK(pin_object(root, place));
    return place;
  }
  Result<std::optional<os::Looked>> looked = os::look_at(place.parent, place.leaf);
  if (!looked) return unverifiable(scope, looked.refusal().message(), looked.refusal().details());
  if (!*looked) return place;
  if ((*looked)->facts.identity == workspace.squad_facts.identity) {
    return Refusal(Code::scope_reserved, std::string(facts_of(Code::scope_reserved).summary));
  }
  HF_CHECK(pin_object(**looked, place));
  return place;
}

Result<Scope> opened_file_scope(const os::WorkspaceFolder& workspace, const os::Handle& object) {
  HF_TRY(const os::Facts facts, os::facts_of_open(object));
  Refusal refusal(Code::scope_unresolvable, "the open object has no name any more");
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    HF_TRY(const std::string path, os::path_of_open(object));
    Result<os::Entered> entered = os::enter_workspace(workspace, path);
    if (!entered) {
      refusal = std::move(entered).refusal();
      continue;
    }
    os::Names names = std::move(entered->names);
    names.insert(names.end(), entered->rest.begin(), entered->rest.end());
    HF_TRY(const Walked walked, walk_along(workspace, names));
    if (walked.end == Walked::End::found && walked.last.facts.identity == facts.identity) {
      return lexical::file_scope(names);
    }
    refusal = Refusal(Code::scope_unresolvable, "the open object has no name any more");
  }
  return refusal;
}

}  // namespace holdfast
