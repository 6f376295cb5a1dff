#include "evidence/records.h"

#include <algorithm>
#include <utility>

#include "base/ids.h"
#include "base/json.h"

namespace holdfast::evidence {
namespace {

constexpr std::size_t kIdDigits = 16;
constexpr std::string_view kSuffix = ".json";

std::string_view prefix_of(RecordKind kind) { return kind == RecordKind::quarantine ? "q-" : "r-"; }

std::string folder_of(RecordKind kind) {
  return kind == RecordKind::quarantine ? "evidence/quarantine" : "evidence/reconcile";
}

std::string path_of(RecordKind kind, const std::string& id) {
  return folder_of(kind) + "/" + id + std::string(kSuffix);
}

// Only such an id ever becomes part of a path.
bool is_id(RecordKind kind, std::string_view id) {
  const std::string_view prefix = prefix_of(kind);
  return id.size() == prefix.size() + kIdDigits && id.starts_with(prefix) &&
         id.find_first_not_of("0123456789abcdef", prefix.size()) == std::string_view::npos;
}

// Empty for a file that is none of ours, such as one that a crash left staged.
std::string id_of(RecordKind kind, const std::string& name) {
  if (!name.ends_with(kSuffix)) return {};
  std::string id = name.substr(0, name.size() - kSuffix.size());
  return is_id(kind, id) ? id : std::string();
}

Result<Json> parse_record(const std::string& path, const std::string& id, const std::string& text) {
  const auto refuse = [&](const std::string& reason) {
    return Refusal(Code::state_unreadable, path + ": " + reason, Json{{"path", path}, {"reason", reason}});
  };
  JsonProblem problem;
  std::optional<Json> record = parse_json(text, &problem);
  if (!record) return refuse(problem.text);
  if (!record->is_object()) return refuse("not an object");
  if (text_member(*record, "id") != id) return refuse("the id in it is another one");
  return std::move(*record);
}

}  // namespace

std::string Records::new_id(RecordKind kind) { return std::string(prefix_of(kind)) + random_hex(kIdDigits / 2); }

Result<void> Records::put(RecordKind kind, const std::string& id, const Json& record) {
  if (!is_id(kind, id) || !record.is_object()) {
    return Refusal(Code::request_malformed, "no record, or no id of one: " + printable(id));
  }
  Json named = record;
  named["id"] = id;
  HF_CHECK(files_.make_folder(folder_of(kind)));
  return files_.publish(path_of(kind, id), dump_canonical(named) + "\n");
}

Result<Json> Records::get(RecordKind kind, const std::string& id) const {
  const auto none = [&] { return Refusal(Code::not_found, "no record has the id " + printable(id)); };
  if (!is_id(kind, id)) return none();
  HF_TRY(const auto text, files_.read(path_of(kind, id)));
  if (!text) return none();
  return parse_record(path_of(kind, id), id, *text);
}

Result<std::vector<Json>> Records::all(RecordKind kind) const {
  HF_TRY(const std::vector<std::string> names, files_.list(folder_of(kind)));
  std::vector<Json> records;
  for (const std::string& name : names) {
    const std::string id = id_of(kind, name);
    if (id.empty()) continue;
    auto record = get(kind, id);
    if (record.ok()) {
      records.push_back(std::move(record).value());
    } else if (record.refusal().code() != Code::not_found) {
      records.push_back({{"id", id}, {"unreadable", true}, {"reason", record.refusal().message()}});
    }
  }
  std::stable_sort(records.begin(), records.end(), [](const Json& one, const Json& other) {
    return std::pair(text_member(one, "at"), text_member(one, "id")) <
           std::pair(text_member(other, "at"), text_member(other, "id"));
  });
  return records;
}

}  // namespace holdfast::evidence
