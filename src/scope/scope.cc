#include "holdfast/scope.h"

#include <array>

#include "base/digest.h"
#include "scope/lexical.h"

namespace holdfast {
namespace {

struct NamespaceName {
  Namespace ns;
  std::string_view name;
};

constexpr std::array kNamespaces = {
    NamespaceName{Namespace::file, "file"},     NamespaceName{Namespace::session, "session"},
    NamespaceName{Namespace::window, "window"}, NamespaceName{Namespace::account, "account"},
    NamespaceName{Namespace::focus, "focus"},   NamespaceName{Namespace::browser, "browser"},
};

// "/a/b" lies below "/a", "/a/bc" does not lie below "/a/b"; everything lies below "project:/", which ends in a slash.
bool is_path_below(std::string_view inner, std::string_view outer) {
  if (inner.size() <= outer.size() || !inner.starts_with(outer)) return false;
  return outer.ends_with('/') || inner[outer.size()] == '/';
}

}  // namespace

std::string_view name_of(Namespace ns) {
  for (const NamespaceName& row : kNamespaces) {
    if (row.ns == ns) return row.name;
  }
  return "file";
}

std::optional<Namespace> namespace_named(std::string_view name) {
  for (const NamespaceName& row : kNamespaces) {
    if (row.name == name) return row.ns;
  }
  return std::nullopt;
}

std::string Scope::full() const { return std::string(name_of(ns)) + "://" + resource_id; }
std::string Scope::display() const { return is_file() ? resource_id : full(); }
std::string Scope::routing_key() const { return fnv1a_hex(full()); }
std::string Scope::digest() const { return sha256_hex(full()); }

std::string Scope::relative() const {
  HF_ASSERT(is_file() && resource_id.starts_with(lexical::kProject));
  return resource_id.substr(lexical::kProject.size());
}

Json Scope::to_json() const {
  return Json{
      {"scope", display()}, {"namespace", name_of(ns)}, {"resource_id", resource_id}, {"routing_key", routing_key()}};
}

bool overlaps(const Scope& one, const Scope& other) {
  if (one.ns != other.ns) return false;
  if (one.ns == Namespace::focus) return true;  // one user has one focus
  return one == other || is_below(one, other) || is_below(other, one);
}

bool is_below(const Scope& inner, const Scope& outer) {
  return inner.ns == outer.ns && is_path_below(inner.resource_id, outer.resource_id);
}

Result<Scope> parse_canonical_scope(std::string_view text) {
  HF_TRY(lexical::Typed typed, lexical::read_typed(text));
  Scope scope{typed.ns, std::move(typed.resource_id)};
  if (scope.is_file()) {
    if (typed.from != lexical::Typed::From::workspace_root) {
      return Refusal(Code::scope_outside_workspace, "no canonical scope, which says project:/ where it begins",
                     Json{{"scope", lexical::excerpt(text)}});
    }
    HF_TRY(scope, lexical::file_scope(typed.segments));
  }
  if (scope.full() != text) {
    return Refusal(Code::scope_segment_invalid, "no canonical scope, which is " + lexical::excerpt(scope.full()),
                   Json{{"scope", lexical::excerpt(text)}});
  }
  return scope;
}

}  // namespace holdfast
