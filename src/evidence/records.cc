#include "evidence/records.h"

#include <algorithm>
#include <utility>

#include "base/digest.h"
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

constexpr auto kReconcile = RecordKind::reconcile;
constexpr const char* kOpenNames = "evidence/reconcile/open-names";
constexpr std::string_view kOpenProtocol = "holdfast.open-records.1";

std::string open_list_path(const std::string& scope) {
  return folder_of(kReconcile) + "/" + sha256_hex(scope) + ".open";
}

std::string open_list_text(const std::string& scope, const std::vector<std::string>& ids) {
  return dump_canonical(Json{{"open", ids}, {"protocol", kOpenProtocol}, {"scope", scope}}) + "\n";
}

void sort_by_time(std::vector<Json>& records) {
  std::stable_sort(records.begin(), records.end(), [](const Json& one, const Json& other) {
    return std::pair(text_member(one, "at"), text_member(one, "id")) <
           std::pair(text_member(other, "at"), text_member(other, "id"));
  });
}

bool is_unreadable(const Json& record) { return record.value("unreadable", Json()) == Json(true); }
bool is_open(const Json& record) { return is_unreadable(record) || text_member(record, "state") == "open"; }

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
  const std::string scope = kind == kReconcile ? text_member(named, "scope") : std::string();
  // Listed before it is there, and no longer listed only once it is resolved: no crash leaves an open record unlisted.
  if (!scope.empty() && is_open(named)) HF_CHECK(list_open(scope, id));
  HF_CHECK(files_.publish(path_of(kind, id), dump_canonical(named) + "\n"));
  if (!scope.empty() && !is_open(named)) (void)unlist(scope, id);  // a resolved one that stays listed is passed over
  return {};
}

Result<Json> Records::get(RecordKind kind, const std::string& id) const {
  const auto none = [&] { return Refusal(Code::not_found, "no record has the id " + printable(id)); };
  if (!is_id(kind, id)) return none();
  HF_TRY(const auto text, files_.read(path_of(kind, id)));
  if (!text) return none();
  return parse_record(path_of(kind, id), id, *text);
}

// As a list shows it: null where there is none, and one that cannot be read as such.
Result<Json> Records::found(RecordKind kind, const std::string& id) const {
  auto record = get(kind, id);
  if (record.ok()) return record;
  if (record.refusal().code() == Code::not_found) return Json(nullptr);
  return Json{{"id", id}, {"unreadable", true}, {"reason", record.refusal().message()}};
}

Result<std::vector<Json>> Records::all(RecordKind kind) const {
  HF_TRY(const std::vector<std::string> names, files_.list(folder_of(kind)));
  std::vector<Json> records;
  for (const std::string& name : names) {
    const std::string id = id_of(kind, name);
    if (id.empty()) continue;
    HF_TRY(Json record, found(kind, id));
    if (!record.is_null()) records.push_back(std::move(record));
  }
  sort_by_time(records);
  return records;
}

Result<std::vector<std::string>> Records::open_ids(const std::string& scope) const {
  const std::string path = open_list_path(scope);
  HF_TRY(const auto text, files_.read(path));
  std::vector<std::string> ids;
  if (!text) return ids;
  const auto refuse = [&](const std::string& reason) {
    return Refusal(Code::state_unreadable, path + ": " + reason, Json{{"path", path}, {"reason", reason}});
  };
  JsonProblem problem;
  const auto list = parse_json(*text, &problem);
  if (!list) return refuse(problem.text);
  const Json open = list->is_object() ? list->value("open", Json()) : Json();
  if (!open.is_array() || text_member(*list, "protocol") != kOpenProtocol || text_member(*list, "scope") != scope) {
    return refuse("not the open list of " + scope);
  }
  for (const Json& id : open) {
    if (!id.is_string() || !is_id(kReconcile, id.get<std::string>())) return refuse("an id that is none");
    ids.push_back(id.get<std::string>());
  }
  return ids;
}

Result<void> Records::list_open(const std::string& scope, const std::string& id) {
  HF_TRY(const std::vector<std::string> listed, open_ids(scope));
  if (std::find(listed.begin(), listed.end(), id) != listed.end()) return {};
  std::vector<std::string> open;
  for (const std::string& other : listed) {
    HF_TRY(const Json record, found(kReconcile, other));
    if (!record.is_null() && is_open(record)) open.push_back(other);
  }
  open.push_back(id);
  return files_.publish(open_list_path(scope), open_list_text(scope, open));
}

Result<void> Records::unlist(const std::string& scope, const std::string& id) {
  HF_TRY(std::vector<std::string> ids, open_ids(scope));
  if (std::erase(ids, id) == 0) return {};
  const std::string path = open_list_path(scope);
  if (ids.empty()) return files_.remove(path, os::NameFlush::later);
  return files_.publish(path, open_list_text(scope, ids), os::NameFlush::later);
}

Result<void> Records::give_open_names() {
  HF_TRY(const auto given, files_.size(kOpenNames));
  if (given) return {};
  HF_TRY(const std::vector<Json> records, all(kReconcile));
  if (std::any_of(records.begin(), records.end(), is_unreadable)) return {};
  for (const Json& record : records) {
    const std::string scope = text_member(record, "scope");
    if (is_open(record) && !scope.empty()) HF_CHECK(list_open(scope, text_member(record, "id")));
  }
  return files_.publish(kOpenNames, "holdfast.open-names.1\n");
}

Result<std::vector<Json>> Records::open_on(const std::string& scope) {
  HF_CHECK(give_open_names());
  HF_TRY(const auto given, files_.size(kOpenNames));
  std::vector<Json> records;
  if (!given) {
    HF_TRY(records, all(kReconcile));
    std::erase_if(records, [&](const Json& record) {
      return !is_open(record) || (!is_unreadable(record) && text_member(record, "scope") != scope);
    });
    return records;
  }
  HF_TRY(const std::vector<std::string> ids, open_ids(scope));
  for (const std::string& id : ids) {
    HF_TRY(Json record, found(kReconcile, id));
    if (!record.is_null() && is_open(record)) records.push_back(std::move(record));
  }
  sort_by_time(records);
  return records;
}

}  // namespace holdfast::evidence
