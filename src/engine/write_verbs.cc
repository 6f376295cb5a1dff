// write and edit: from the request's arguments to a Replacement.
#include <algorithm>

#include "base/base64.h"
#include "base/digest.h"
#include "base/ids.h"
#include "base/json.h"
#include "base/piece.h"
#include "engine/write.h"

namespace holdfast::engine {
namespace {

constexpr std::uint64_t kEditMax = 256ULL << 20U;

Result<Replacement> read_common(const Arguments& arguments) {
  Replacement replacement;
  HF_TRY(replacement.keys, arguments.keys());
  HF_TRY(replacement.scope_text, arguments.scope());
  HF_TRY(replacement.current_folder, arguments.current_folder());
  HF_TRY(const auto operation, arguments.optional_text("operation_id"));
  replacement.operation_id = operation ? *operation : "op-" + random_hex(16);
  HF_TRY(replacement.allow_hard_links, arguments.flag("allow_hard_links"));
  HF_TRY(const auto precondition, arguments.optional_text("preimage_sha256"));
  replacement.precondition = precondition.value_or("");
  if (!replacement.precondition.empty() && replacement.precondition != "absent" &&
      !is_sha256_hex(replacement.precondition)) {
    return usage("preimage_sha256 is neither `absent` nor 64 lowercase hex digits");
  }
  return replacement;
}

Result<std::string> stream(ContentSource& content, guard::StagedFile& staged, std::optional<std::uint64_t> announced,
                           const std::string& announced_sha256, const ProgressReport& progress) {
  Sha256 digest;
  std::uint64_t total = 0;
  Piece piece;
  for (;;) {
    HF_TRY(const std::size_t count, content.read(piece.data(), piece.size()));
    if (count == 0) break;
    digest.add(piece.first(count));
    HF_CHECK(staged.write(piece.first(count)));
    total += count;
    if (progress) progress(Json{{"done", total}});
  }
  std::string sha256 = digest.hex();
  if ((announced && *announced != total) || (!announced_sha256.empty() && announced_sha256 != sha256)) {
    return Refusal(Code::content_corrupted_in_transit,
                   "content_corrupted_in_transit: " + std::to_string(total) + " bytes arrived, not what was announced",
                   Json{{"byte_count", total}, {"sha256", sha256}});
  }
  return sha256;
}

}  // namespace

Result<Json> write(Context& context, const Json& json, ContentSource* content, const ProgressReport& progress) {
  const Arguments arguments(json);
  HF_TRY(Replacement replacement, read_common(arguments));
  if (content == nullptr) return usage("a write without content");
  HF_TRY(const auto announced, arguments.number("byte_count"));
  HF_TRY(const auto sha256, arguments.optional_text("payload_sha256"));
  replacement.expected_payload_sha256 = sha256.value_or("");
  replacement.sender_is_gone = [content] { return content->sender_is_gone(); };
  replacement.produce = [&](guard::StagedFile& staged, const os::Handle*) {
    return stream(*content, staged, announced, sha256.value_or(""), progress);
  };
  return replace_guarded(context, replacement);
}

Result<std::string> apply_edits(const std::string& bytes,
                                const std::vector<std::pair<std::string, std::string>>& edits) {
  struct Place {
    std::size_t at;
    std::size_t edit;
  };
  std::vector<Place> places;
  for (std::size_t edit = 0; edit < edits.size(); ++edit) {
    const std::string& old = edits[edit].first;
    if (old.empty()) return usage("an empty text cannot be replaced");
    const std::size_t at = bytes.find(old);
    if (at == std::string::npos) {
      return Refusal(Code::edit_no_match, "edit_no_match: text " + std::to_string(edit + 1) + " is not in the file",
                     Json{{"replacement", edit + 1}, {"old", printable(old.substr(0, 200))}});
    }
    if (bytes.find(old, at + 1) != std::string::npos) {
      return Refusal(Code::edit_ambiguous,
                     "edit_ambiguous: text " + std::to_string(edit + 1) + " is in the file more than once",
                     Json{{"replacement", edit + 1}, {"old", printable(old.substr(0, 200))}});
    }
    places.push_back({at, edit});
  }
  std::sort(places.begin(), places.end(), [](const Place& one, const Place& other) { return one.at < other.at; });
  std::string edited;
  std::size_t done = 0;
  for (const Place& place : places) {
    if (place.at < done) {
      return Refusal(Code::edit_ambiguous, "edit_ambiguous: two of the texts to be replaced overlap",
                     Json{{"replacement", place.edit + 1}});
    }
    edited.append(bytes, done, place.at - done);
    edited += edits[place.edit].second;
    done = place.at + edits[place.edit].first.size();
  }
  edited.append(bytes, done);
  return edited;
}

Result<Json> edit(Context& context, const Json& json) {
  const Arguments arguments(json);
  HF_TRY(Replacement replacement, read_common(arguments));
  replacement.family = "edit";
  const Json list = json.value("replacements", Json());
  if (!list.is_array() || list.empty()) return usage("replacements is no list");
  std::vector<std::pair<std::string, std::string>> edits;
  for (const Json& entry : list) {
    const auto old = base64_decode(text_member(entry, "old_base64"));
    const auto fresh = base64_decode(text_member(entry, "new_base64"));
    if (!entry.is_object() || !entry.contains("old_base64") || !entry.contains("new_base64") || !old || !fresh) {
      return usage("a replacement without old_base64 and new_base64");
    }
    edits.emplace_back(*old, *fresh);
  }
  const std::string payload = sha256_hex(dump_canonical(list));
  replacement.expected_payload_sha256 = payload;
  replacement.produce = [&](guard::StagedFile& staged, const os::Handle* preimage) -> Result<std::string> {
    if (preimage == nullptr) return Refusal(Code::file_absent, "file_absent: there is nothing to edit");
    HF_TRY(const std::string bytes, os::read_whole(*preimage, kEditMax));
    HF_TRY(const std::string edited, apply_edits(bytes, edits));
    HF_CHECK(staged.write(edited));
    return payload;
  };
  return replace_guarded(context, replacement);
}

}  // namespace holdfast::engine
