#include "replace/intent.h"

#include <set>

#include "base/digest.h"
#include "base/ids.h"
#include "base/json.h"

namespace holdfast::replace {
namespace {

constexpr std::string_view kProtocol = "holdfast.intent.1";

constexpr const char* kOpenNames = "intents/open-names";

std::string open_name_of(const std::string& scope) { return "intents/" + sha256_hex(scope) + ".open"; }

std::string path_of(const std::string& operation_id) { return "intents/" + sha256_hex(operation_id) + ".json"; }

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Result<Intent> intent_at(const std::string& path, const std::string& bytes) {
  JsonProblem problem;
  const auto document = parse_json(bytes, &problem);
  auto intent = document ? intent_from_json(*document) : Result<Intent>(Refusal(Code::state_unreadable, problem.text));
  if (intent.ok()) return intent;
  return Refusal(Code::state_unreadable, "state_unreadable: " + path + ": " + intent.refusal().message(),
                 Json{{"path", path}});
}

}  // namespace

Json Intent::to_json() const {
  return Json{{"protocol", kProtocol},
              {"operation_id", operation_id},
              {"state", state},
              {"scope", scope},
              {"command", command},
              {"planned_sha256", planned_sha256},
              {"planned_byte_count", planned_byte_count},
              {"preimage",
               {{"exists", preimage.exists},
                {"sha256", text_or_null(preimage.sha256)},
                {"byte_count", preimage.byte_count},
                {"identity", preimage.identity.to_json()}}},
              {"staged", {{"identity", staged.to_json()}, {"temporary_name", temporary_name}}},
              {"at", at},
              {"outcome", outcome},
              {"reconcile_id", text_or_null(reconcile_id)},
              {"event", text_or_null(event)}};
}

Result<Intent> intent_from_json(const Json& value) {
  if (!value.is_object() || text_member(value, "protocol") != kProtocol) {
    return Refusal(Code::state_unreadable, "an intent of an unknown protocol");
  }
  Intent intent;
  intent.operation_id = text_member(value, "operation_id");
  intent.state = text_member(value, "state");
  intent.scope = text_member(value, "scope");
  intent.command = value.value("command", Json::object());
  intent.planned_sha256 = text_member(value, "planned_sha256");
  intent.planned_byte_count = exact_u64(value.value("planned_byte_count", Json())).value_or(0);
  const Json before = value.value("preimage", Json::object());
  const Json staged = value.value("staged", Json::object());
  if (intent.operation_id.empty() || intent.state.empty() || intent.scope.empty() || !before.is_object() ||
      !staged.is_object() || !intent.command.is_object()) {
    return Refusal(Code::state_unreadable, "an intent with missing members");
  }
  intent.preimage.exists = before.value("exists", Json()) == Json(true);
  intent.preimage.sha256 = text_member(before, "sha256");
  intent.preimage.byte_count = exact_u64(before.value("byte_count", Json())).value_or(0);
  intent.preimage.identity = os::Identity::from_json(before.value("identity", Json()));
  intent.staged = os::Identity::from_json(staged.value("identity", Json()));
  intent.temporary_name = text_member(staged, "temporary_name");
  intent.at = text_member(value, "at");
  intent.outcome = value.value("outcome", Json());
  intent.reconcile_id = text_member(value, "reconcile_id");
  intent.event = text_member(value, "event");
  return intent;
}

Result<void> IntentJournal::put(const Intent& intent) {
  if (intent.state == "prepared") {
    return files_.publish_under_two_names(path_of(intent.operation_id), open_name_of(intent.scope),
                                          dump_pretty(intent.to_json()));
  }
  return files_.publish(path_of(intent.operation_id), dump_pretty(intent.to_json()));
}

os::Staged IntentJournal::staged(const Intent& intent) {
  return {os::staging_path(path_of(intent.operation_id)), dump_pretty(intent.to_json())};
}

Result<void> IntentJournal::settle(const Intent& intent) {
  const std::string path = path_of(intent.operation_id);
  return files_.rename(os::staging_path(path), path, os::NameFlush::later);
}

Result<std::optional<Intent>> IntentJournal::find(const std::string& operation_id) const {
  const std::string path = path_of(operation_id);
  HF_TRY(const auto bytes, files_.read(path));
  if (!bytes) return std::optional<Intent>();
  HF_TRY(Intent intent, intent_at(path, *bytes));
  return std::optional(std::move(intent));
}

Result<Prepared> IntentJournal::prepared() const {
  Prepared prepared;
  HF_TRY(const auto names, files_.list("intents"));
  for (const std::string& name : names) {
    if (!name.ends_with(".json")) continue;
    HF_TRY(const auto bytes, files_.read("intents/" + name));
    if (!bytes) continue;
    auto intent = intent_at("intents/" + name, *bytes);
    if (!intent.ok()) {
      prepared.unreadable.push_back({name, intent.refusal().message()});
    } else if (intent->state == "prepared") {
      prepared.found.push_back(std::move(*intent));
    }
  }
  return prepared;
}

Result<std::vector<Intent>> IntentJournal::prepared_on(const std::string& scope,
                                                       const std::vector<std::string>& last) const {
  HF_TRY(const bool named, has_open_names());
  std::set<std::string> ids(last.begin(), last.end());
  ids.erase("");
  bool all = !named;
  if (named) {
    HF_TRY(const auto bytes, files_.read(open_name_of(scope)));
    const auto opened = bytes ? intent_at(open_name_of(scope), *bytes) : Result<Intent>(Intent());
    all = !opened.ok();
    if (opened.ok() && !opened->operation_id.empty()) ids.insert(opened->operation_id);
  }
  std::vector<Intent> found;
  if (all) {
    HF_TRY(Prepared every, prepared());
    for (Intent& intent : every.found) {
      if (intent.scope == scope) found.push_back(std::move(intent));
    }
    return found;
  }
  for (const std::string& id : ids) {
    auto intent = find(id);
    if (!intent.ok() && intent.refusal().code() == Code::state_unreadable) continue;  // `recover` names it
    if (!intent.ok()) return std::move(intent).refusal();
    if (*intent && (*intent)->state == "prepared" && (*intent)->scope == scope) found.push_back(std::move(**intent));
  }
  return found;
}

Result<bool> IntentJournal::has_open_names() const {
  HF_TRY(const auto size, files_.size(kOpenNames));
  return size.has_value();
}

Result<void> IntentJournal::give_open_names(const std::vector<Intent>& prepared) {
  for (const Intent& intent : prepared) HF_CHECK(put(intent));
  return files_.publish(kOpenNames, "holdfast.open-names.1\n");
}

std::string new_temporary_name() { return ".holdfast-" + random_hex(8) + ".staged"; }

}  // namespace holdfast::replace
