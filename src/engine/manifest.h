// Manifests: what is below a folder, path by path, as a document that is compared and kept. docs/formats/manifest.md is
// the format.
//
// Calling sequence: read_tree() hashes everything below a folder; tree_is_still() says later, without reading a byte,
// whether it is as it was; where not, read_tree() again with the tree before reads only what changed since.
// manifest_text() is kept, parse_manifest() and compare() find what differs.
// Promises: read_tree() never follows a link and opens nothing but folders and regular files; one tree gives one text,
// byte for byte; two names never become one key.
// Does not promise: one moment. A file that changes while it is read is what was read; its facts tell.
// Durability: none; the caller keeps the text. Threads: no state. Memory: grows with the number of objects.
// Errors: file_unreadable (the folder itself), state_unreadable (a text that is no manifest), those of `digest`.
// Source: CONTRACT sections 3 and 6.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/digest.h"
#include "holdfast/result.h"
#include "os/file.h"
#include "os/folder_walk.h"

namespace holdfast::engine {

struct ManifestEntry {
  std::string kind = {};  // file folder link other unreadable
  std::string sha256 = {};
  std::uint64_t byte_count = 0;
  std::string target = {};  // of a link, escaped like a path

  bool operator==(const ManifestEntry&) const = default;
  Json to_json() const;
};

// By escaped path below the folder.
using Manifest = std::map<std::string, ManifestEntry>;

// Reversible and always UTF-8: `\` becomes `\\`, each byte that is part of no UTF-8 sequence `\xNN`.
std::string escape_name(std::string_view bytes);
std::optional<std::string> unescape_name(std::string_view text);

std::string manifest_text(const Manifest& manifest);
Result<Manifest> parse_manifest(std::string_view text);

// A manifest and what tells cheaply whether it still holds.
struct Tree {
  Manifest manifest;
  std::map<std::string, os::Facts> facts;
};

// Digests one opened file; the key is its escaped path.
using DigestOf = std::function<Result<ContentDigest>(const std::string& key, const os::Handle& file)>;

// `squad` is never a part of a tree, nor are Holdfast's temporary files. `before` spares files whose facts are its own.
Result<Tree> read_tree(const os::Handle& folder, const os::Identity& squad, const DigestOf& digest,
                       const Tree* before = nullptr);
Result<bool> tree_is_still(const os::Handle& folder, const os::Identity& squad, const Tree& tree);

struct Difference {
  std::string path;  // escaped
  std::optional<ManifestEntry> expected;
  std::optional<ManifestEntry> actual;
};
struct Comparison {
  std::vector<Difference> differences;
  std::vector<std::string> unverifiable;  // there, and unreadable then or now: neither a match nor a difference
};
// What lies below a folder that could not be read then or now is not compared; the folder is `unverifiable`.
Comparison compare(const Manifest& expected, const Manifest& actual);

}  // namespace holdfast::engine
