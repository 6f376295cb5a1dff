#include "engine/manifest.h"

#include <algorithm>
#include <set>

#include "base/json.h"

namespace holdfast::engine {
namespace {

constexpr std::string_view kProtocol = "holdfast.manifest.1";
constexpr std::string_view kHex = "0123456789abcdef";

// The bytes of the UTF-8 sequence at the beginning; 0 where none begins.
std::size_t sequence_at(std::string_view bytes) {
  const auto lead = static_cast<unsigned char>(bytes.front());
  const std::size_t size = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  return size <= bytes.size() && is_valid_utf8(bytes.substr(0, size)) ? size : 0;
}

// `.holdfast-<16 hex>.staged` and `.divert`: a replacement and a divert give these to a file for a moment.
bool is_temporary_name(std::string_view path) {
  constexpr std::string_view kPrefix = ".holdfast-";
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (!name.starts_with(kPrefix) || name.size() <= kPrefix.size() + 16) return false;
  const std::string_view rest = name.substr(kPrefix.size());
  return rest.find_first_not_of(kHex) == 16 && (rest.substr(16) == ".staged" || rest.substr(16) == ".divert");
}

auto without_our_own(const os::Identity& squad) {
  return [squad](const os::FolderEntry& entry) {
    if (entry.facts.kind == os::Kind::regular) return is_temporary_name(entry.path);
    return entry.facts.identity.known() && entry.facts.identity == squad;
  };
}

// Of a folder only what it is counts: its times move with every name in it, and the names are compared themselves.
bool same_facts(const os::Facts& one, const os::Facts& other) {
  if (one.kind != other.kind || one.identity != other.identity) return false;
  if (one.kind == os::Kind::folder) return one.mode == other.mode && one.user == other.user;
  return one.byte_count == other.byte_count && one.modified_ns == other.modified_ns &&
         one.changed_ns == other.changed_ns;
}

ManifestEntry entry_of(const os::FolderEntry& found) {
  if (found.unreadable) return {.kind = "unreadable"};
  if (found.facts.kind == os::Kind::folder) return {.kind = "folder"};
  if (found.facts.kind == os::Kind::link) return {.kind = "link", .target = escape_name(found.link_target)};
  return {.kind = "other"};
}

// Reads trees; nullopt of file() means that nothing bears the path any more.
class Reading {
 public:
  Reading(const os::Handle& folder, const DigestOf& digest, const Tree* before)
      : folder_(folder), digest_(digest), before_(before) {}

  Result<void> add(const os::FolderEntry& found) {
    std::string key = escape_name(found.path);
    if (found.unreadable || found.facts.kind != os::Kind::regular) {
      keep(std::move(key), entry_of(found), found.facts);
      return {};
    }
    if (const ManifestEntry* known = known_of(key, found.facts); known != nullptr) {
      keep(std::move(key), *known, found.facts);
      return {};
    }
    return add_file(std::move(key), found);
  }

  Tree tree() && { return std::move(tree_); }

 private:
  void keep(std::string key, ManifestEntry entry, const os::Facts& facts) {
    tree_.facts.emplace(key, facts);
    tree_.manifest.emplace(std::move(key), std::move(entry));
  }

  const ManifestEntry* known_of(const std::string& key, const os::Facts& facts) const {
    if (before_ == nullptr) return nullptr;
    const auto seen = before_->facts.find(key);
    if (seen == before_->facts.end() || !same_facts(seen->second, facts)) return nullptr;
    const ManifestEntry& known = before_->manifest.at(key);
    return known.kind == "file" ? &known : nullptr;
  }

  Result<void> add_file(std::string key, const os::FolderEntry& found) {
    auto looked = os::look_below(folder_, found.path);
    if (looked.ok() && !*looked) return {};  // gone meanwhile
    const bool is_file = looked.ok() && (*looked)->facts.kind == os::Kind::regular;
    // Something else took its place: its own facts are not kept, so that the next look finds them changed.
    if (!is_file) return keep(std::move(key), {.kind = "unreadable"}, found.facts), Result<void>();
    auto opened = os::open_looked(**looked);
    if (!opened.ok() || !*opened) {
      return keep(std::move(key), {.kind = "unreadable"}, (*looked)->facts), Result<void>();
    }
    auto digest = digest_(key, **opened);
    if (!digest.ok() && digest.refusal().code() != Code::file_unreadable) return std::move(digest).refusal();
    ManifestEntry entry{.kind = "unreadable"};
    if (digest.ok()) entry = {.kind = "file", .sha256 = digest->sha256, .byte_count = digest->byte_count};
    keep(std::move(key), std::move(entry), (*looked)->facts);
    return {};
  }

  const os::Handle& folder_;
  const DigestOf& digest_;
  const Tree* before_;
  Tree tree_;
};

Refusal no_manifest(const std::string& why) {
  return Refusal(Code::state_unreadable, "state_unreadable: a folder's manifest " + why);
}

}  // namespace

Json ManifestEntry::to_json() const {
  Json value = {{"kind", kind}};
  if (kind == "file") {
    value["sha256"] = sha256;
    value["byte_count"] = byte_count;
  }
  if (kind == "link") value["target"] = target;
  return value;
}

std::string escape_name(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    const std::size_t size = sequence_at(bytes);
    if (size == 0) {
      text += {'\\', 'x', kHex[byte >> 4U], kHex[byte & 0x0FU]};
    } else {
      if (byte == '\\') text += '\\';
      text += bytes.substr(0, size);
    }
    bytes.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return text;
}

std::optional<std::string> unescape_name(std::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    if (text.front() != '\\') {
      bytes += text.front();
      text.remove_prefix(1);
    } else if (text.starts_with("\\\\")) {
      bytes += '\\';
      text.remove_prefix(2);
    } else {
      if (!text.starts_with("\\x") || text.size() < 4) return std::nullopt;
      const std::size_t high = kHex.find(text[2]);
      const std::size_t low = kHex.find(text[3]);
      if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
      bytes += static_cast<char>(high * 16 + low);
      text.remove_prefix(4);
    }
  }
  return bytes;
}

// Piece by piece: a document of all entries would take many times the text's memory.
std::string manifest_text(const Manifest& manifest) {
  std::string text = "{\"entries\":{";
  for (const auto& [path, entry] : manifest) {
    if (text.back() == '}') text += ',';
    text += dump_canonical(Json(path)) + ":" + dump_canonical(entry.to_json());
  }
  return text + "},\"protocol\":\"" + std::string(kProtocol) + "\"}";
}

Result<Manifest> parse_manifest(std::string_view text) {
  const auto document = parse_json(text);
  if (!document || text_member(*document, "protocol") != kProtocol) return no_manifest("is of no known protocol");
  const auto entries = document->find("entries");
  if (entries == document->end() || !entries->is_object()) return no_manifest("has no entries");
  Manifest manifest;
  for (const auto& [path, value] : entries->items()) {
    ManifestEntry entry{.kind = text_member(value, "kind")};
    if (entry.kind == "file") {
      entry.sha256 = text_member(value, "sha256");
      const auto byte_count = exact_u64(value.value("byte_count", Json()));
      if (!is_sha256_hex(entry.sha256) || !byte_count) return no_manifest("has a file without a digest");
      entry.byte_count = *byte_count;
    } else if (entry.kind == "link") {
      entry.target = text_member(value, "target");
    } else if (entry.kind != "folder" && entry.kind != "other" && entry.kind != "unreadable") {
      return no_manifest("has an entry of an unknown kind");
    }
    if (path.empty() || !unescape_name(path)) return no_manifest("has a path that is none");
    manifest.emplace(path, std::move(entry));
  }
  return manifest;
}

Result<Tree> read_tree(const os::Handle& folder, const os::Identity& squad, const DigestOf& digest,
                       const Tree* before) {
  HF_TRY(const auto listed, os::list_below(folder, without_our_own(squad)));
  Reading reading(folder, digest, before);
  for (const os::FolderEntry& found : listed) HF_CHECK(reading.add(found));
  return std::move(reading).tree();
}

Result<bool> tree_is_still(const os::Handle& folder, const os::Identity& squad, const Tree& tree) {
  HF_TRY(const auto listed, os::list_below(folder, without_our_own(squad)));
  if (listed.size() != tree.facts.size()) return false;
  return std::all_of(listed.begin(), listed.end(), [&](const os::FolderEntry& found) {
    const auto seen = tree.facts.find(escape_name(found.path));
    return seen != tree.facts.end() && same_facts(seen->second, found.facts);
  });
}

Comparison compare(const Manifest& expected, const Manifest& actual) {
  std::set<std::string_view> paths;
  std::set<std::string_view> unreadable;
  for (const Manifest* manifest : {&expected, &actual}) {
    for (const auto& [path, entry] : *manifest) {
      paths.insert(path);
      if (entry.kind == "unreadable") unreadable.insert(path);
    }
  }
  const auto is_below_unreadable = [&](std::string_view path) {
    if (unreadable.empty()) return false;
    for (std::size_t end = path.find('/'); end != std::string_view::npos; end = path.find('/', end + 1)) {
      if (unreadable.contains(path.substr(0, end))) return true;
    }
    return false;
  };
  Comparison found;
  for (const std::string_view path : paths) {
    if (is_below_unreadable(path)) continue;
    const auto before = expected.find(std::string(path));
    const auto now = actual.find(std::string(path));
    Difference difference{std::string(path), {}, {}};
    if (before != expected.end()) difference.expected = before->second;
    if (now != actual.end()) difference.actual = now->second;
    if (unreadable.contains(path) && difference.expected && difference.actual) {
      found.unverifiable.emplace_back(path);
    } else if (difference.expected != difference.actual) {
      found.differences.push_back(std::move(difference));
    }
  }
  return found;
}

}  // namespace holdfast::engine
