#include "scope/lexical.h"

#include <algorithm>

#include "base/json.h"

namespace holdfast::lexical {
namespace {

constexpr std::string_view kSeparator = "://";
constexpr std::size_t kExcerptBytes = 160;

Refusal refuse(Code code, std::string_view segment) {
  return Refusal(code, std::string(facts_of(code).summary) + ": \"" + excerpt(segment) + "\"",
                 Json{{"segment", excerpt(segment)}});
}

// Unicode's Cc: C0, DEL and C1 (which UTF-8 spells C2 80 to C2 9F). The text is valid UTF-8 by now.
bool has_control_character(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte < 0x20 || byte == 0x7F) return true;
    if (byte == 0xC2 && at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) < 0xA0) return true;
  }
  return false;
}

// Whether "WORD://" is meant as a namespace, rather than being a file name with a colon.
bool is_namespace_word(std::string_view word) {
  if (word.empty() || word.front() < 'a' || word.front() > 'z') return false;
  return std::ranges::all_of(word, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '.' || c == '-';
  });
}

Result<void> check_characters(std::string_view text) {
  if (has_control_character(text)) return refuse(Code::scope_control_character, text);
  if (text.find_first_of("*?") != std::string_view::npos) return refuse(Code::scope_wildcard, text);
  return {};
}

Result<void> check_no_parent(const std::vector<std::string>& segments, std::string_view text) {
  if (std::ranges::find(segments, "..") != segments.end()) return refuse(Code::scope_parent_traversal, text);
  return {};
}

Result<Typed> read_file(std::string_view path) {
  Typed typed;
  if (path.starts_with(kProject)) {
    typed.from = Typed::From::workspace_root;
    path.remove_prefix(kProject.size());
  } else if (path.starts_with('/')) {
    typed.from = Typed::From::file_system_root;
    typed.path = path;
  }
  std::vector<std::string> segments = split(path);
  HF_CHECK(check_no_parent(segments, path));
  if (typed.from == Typed::From::file_system_root) return typed;
  std::erase_if(segments, [](const std::string& segment) { return segment.empty() || segment == "."; });
  HF_CHECK(check_segments(segments));
  typed.segments = std::move(segments);
  return typed;
}

Result<Typed> read_other(Namespace ns, std::string_view resource_id) {
  Typed typed;
  typed.ns = ns;
  if (resource_id.ends_with('/')) resource_id.remove_suffix(1);
  if (resource_id.empty()) return refuse(Code::scope_empty, resource_id);
  const std::vector<std::string> segments = split(resource_id);
  HF_CHECK(check_no_parent(segments, resource_id));
  for (const std::string& segment : segments) {
    if (segment.empty() || segment == ".") return refuse(Code::scope_segment_invalid, resource_id);
  }
  typed.resource_id = resource_id;
  return typed;
}

}  // namespace

std::string excerpt(std::string_view text) {
  if (text.size() <= kExcerptBytes) return printable(text);
  std::size_t cut = kExcerptBytes;  // before a character, not within one
  while (cut > kExcerptBytes - 4 && (static_cast<unsigned char>(text[cut]) & 0xC0U) == 0x80U) --cut;
  return printable(text.substr(0, cut)) + "... (" + std::to_string(text.size()) + " bytes)";
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> segments;
  std::size_t begin = 0;
  for (;;) {
    const std::size_t end = text.find('/', begin);
    segments.emplace_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return segments;
    begin = end + 1;
  }
}

Result<void> check_segments(const std::vector<std::string>& segments) {
  for (const std::string& segment : segments) {
    if (segment.find(':') != std::string::npos) return refuse(Code::scope_colon, segment);
  }
  for (const std::string& segment : segments) {
    if (segment.ends_with('.') || segment.ends_with(' ')) return refuse(Code::scope_trailing_dot_or_space, segment);
  }
  return {};
}

Result<Typed> read_typed(std::string_view text) {
  if (text.empty()) return refuse(Code::scope_empty, text);
  if (!is_valid_utf8(text)) return refuse(Code::scope_not_utf8, text);
  Namespace ns = Namespace::file;
  const std::size_t separator = text.find(kSeparator);
  if (separator != std::string_view::npos && is_namespace_word(text.substr(0, separator))) {
    const std::optional<Namespace> named = namespace_named(text.substr(0, separator));
    if (!named) return refuse(Code::scope_namespace_unknown, text.substr(0, separator));
    ns = *named;
    text.remove_prefix(separator + kSeparator.size());
  }
  if (text.empty()) return refuse(Code::scope_empty, text);
  HF_CHECK(check_characters(text));
  return ns == Namespace::file ? read_file(text) : read_other(ns, text);
}

Result<Scope> file_scope(const std::vector<std::string>& names) {
  Scope scope{Namespace::file, std::string(kProject)};
  for (const std::string& name : names) {
    if (scope.resource_id.size() > kProject.size()) scope.resource_id += '/';
    scope.resource_id += name;
  }
  if (!is_valid_utf8(scope.resource_id)) return refuse(Code::scope_not_utf8, scope.resource_id);
  HF_CHECK(check_characters(scope.resource_id));
  HF_CHECK(check_no_parent(names, scope.resource_id));
  for (const std::string& name : names) {
    if (name.empty() || name == "." || name.find('/') != std::string::npos) {
      return refuse(Code::scope_segment_invalid, scope.resource_id);
    }
  }
  HF_CHECK(check_segments(names));
  if (!names.empty() && names.front() == kReserved) return refuse(Code::scope_reserved, scope.resource_id);
  return scope;
}

}  // namespace holdfast::lexical
