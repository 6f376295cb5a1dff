#include "surfaces/cli/print.h"

#include <algorithm>

#include "base/json.h"
#include "surfaces/cli/text_layout.h"

namespace holdfast::cli {
namespace {

bool is_flat(const Json& value) {
  return !value.is_structured() ||
         (value.is_array() && std::ranges::none_of(value, [](const Json& inner) { return inner.is_structured(); }));
}

std::string flat(const Json& value) { return value.is_array() ? joined(value) : human_scalar(value); }

void print_object(const Json& object, std::size_t indent, std::string& out);

void print_list(const std::string& name, const Json& list, std::size_t indent, std::string& out) {
  std::size_t number = 0;
  for (const Json& entry : list) {
    out += std::string(indent, ' ') + name + " " + std::to_string(++number) + "\n";
    if (entry.is_object()) {
      print_object(entry, indent + 2, out);
    } else {
      out += paragraph(std::string(indent + 2, ' '), is_flat(entry) ? flat(entry) : plain(dump_ascii(entry)));
    }
  }
}

// Flat members first, aligned with one another; then what nests.
void print_object(const Json& object, std::size_t indent, std::string& out) {
  constexpr std::size_t kDeepest = 24;
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const auto& [name, value] : object.items()) {
    if (is_flat(value)) pairs.emplace_back(shortened(words_of(name), 30), flat(value));
  }
  out += name_value_lines(pairs, indent);
  for (const auto& [name, value] : object.items()) {
    if (is_flat(value)) continue;
    if (indent >= kDeepest) {
      out += paragraph(std::string(indent, ' ') + words_of(name) + "  ", plain(dump_ascii(value)));
    } else if (value.is_array()) {
      print_list(words_of(name), value, indent, out);
    } else {
      out += std::string(indent, ' ') + words_of(name) + "\n";
      print_object(value, indent + 2, out);
    }
  }
}

}  // namespace

std::string words_of(std::string_view member) {
  std::string words = plain(member);
  std::ranges::replace(words, '_', ' ');
  return words;
}

std::string human_scalar(const Json& value) {
  if (value.is_null()) return "-";
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_string()) return plain(value.get_ref<const std::string&>());
  return plain(dump_ascii(value));
}

std::string joined(const Json& list) {
  std::string out;
  if (!list.is_array()) return out;
  for (const Json& entry : list) out += (out.empty() ? "" : ", ") + human_scalar(entry);
  return out.empty() ? "none" : out;
}

std::string member(const Json& object, const char* name) {
  if (!object.is_object() || !object.contains(name) || object[name].is_structured()) return "";
  return human_scalar(object[name]);
}

std::string display_scope(const Json& record) {
  const std::string ns = text_member(record, "namespace");
  const std::string id = text_member(record, "resource_id");
  if (!id.empty()) return plain(ns == "file" || ns.empty() ? id : ns + "://" + id);
  for (const char* name : {"scope", "leased_scope", "path"}) {
    const std::string scope = text_member(record, name);
    if (!scope.empty()) return plain(scope.starts_with("file://") ? scope.substr(7) : scope);
  }
  return "";
}

std::string display_time(const std::string& wall) {
  const std::string safe = plain(wall);
  if (safe.size() < 19 || safe[10] != 'T') return safe;
  return safe.substr(0, 10) + " " + safe.substr(11, 8) + (safe.ends_with('Z') ? " UTC" : "");
}

std::string human_document(const Json& document) {
  std::string out;
  if (document.is_object()) {
    print_object(document, 0, out);
  } else {
    out = plain(dump_ascii(document)) + "\n";
  }
  return out;
}

}  // namespace holdfast::cli
