// Scopes: what a lease is on. `namespace://resource_id`; a bare path means file://.
//
// Calling sequence: resolve_scope(text, place) walks the file system for file scopes; everything else is lexical.
// Promises: two scopes are the same resource exactly when their namespace and resource id are equal bytes; overlaps()
// is symmetric; the routing key decides nothing (FNV-1a 64: two scopes may share it).
// Does not promise: that two names of one object (hard link, bind mount) give one scope; that is what identities
// of the objects are for (lease acquisition compares them).
// Errors: the scope_* codes. Source: CONTRACT section 1; first seed, section 1.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "holdfast/result.h"

namespace holdfast {

enum class Namespace { file, session, window, account, focus, browser };
std::string_view name_of(Namespace ns);
std::optional<Namespace> namespace_named(std::string_view name);

struct Scope {
  Namespace ns = Namespace::file;
  std::string resource_id;  // file: "project:/a/b" ("project:/" is the whole workspace)

  bool operator==(const Scope&) const = default;
  std::string full() const;         // file://project:/a/b
  std::string display() const;      // project:/a/b for files, full() for the others
  std::string routing_key() const;  // 16 hex digits: FNV-1a 64 over full()
  std::string digest() const;       // SHA-256 over full(), hex
  bool is_file() const { return ns == Namespace::file; }
  std::string relative() const;  // file: the path below the workspace root, "" for the whole workspace
  Json to_json() const;          // {"scope","namespace","resource_id","routing_key"}
};

// Whether a lease on one and a lease on the other exclude each other (equal, prefix on a segment boundary, focus).
bool overlaps(const Scope& one, const Scope& other);
// Whether `inner` lies strictly below `outer`.
bool is_below(const Scope& inner, const Scope& outer);

// "file://project:/a" as records hold it; no walk. Refuses what is not canonical.
Result<Scope> parse_canonical_scope(std::string_view text);

}  // namespace holdfast
