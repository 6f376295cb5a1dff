// The lexical half of scopes: what can be said about a text before anybody looks at a disk.
//
// The order of the rules is the order of the answers (a text may break several): empty, not UTF-8, namespace, control
// character, wildcard, `..`, colon, trailing dot or space; for the other namespaces then segments. Outside, reserved
// and unresolvable need the disk (os/path_walk.h), but for `.squad` by its name.
// Promises: never throws, whatever the bytes; what file_scope() accepts parse_canonical_scope() accepts, too.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/scope.h"

namespace holdfast::lexical {

inline constexpr std::string_view kProject = "project:/";
inline constexpr std::string_view kReserved = ".squad";

// A text as typed, taken apart.
struct Typed {
  enum class From { workspace_root, file_system_root, current_folder };

  Namespace ns = Namespace::file;
  From from = From::current_folder;   // file only
  std::vector<std::string> segments;  // file: without empty ones and `.`; not for file_system_root
  std::string path;                   // file_system_root: the absolute path
  std::string resource_id;            // the other namespaces
};

// Everything but what depends on where an absolute path enters the workspace: its colons and trailing dots and spaces
// count only from there on (check_segments), so that a workspace below "/mnt/a:b" can be named.
Result<Typed> read_typed(std::string_view text);

// Colons, then trailing dots and spaces, as REL must not have them.
Result<void> check_segments(const std::vector<std::string>& segments);

// The canonical scope of names below the workspace root; every rule again, since names can come out of links.
Result<Scope> file_scope(const std::vector<std::string>& names);

// The segments between slashes, empty ones included.
std::vector<std::string> split(std::string_view text);

// For messages: printable, and short whatever its length.
std::string excerpt(std::string_view text);

}  // namespace holdfast::lexical
