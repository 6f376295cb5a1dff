#include "surfaces/cli/lease_keys.h"

#include <array>

#include "base/json.h"

namespace holdfast::cli {
namespace {

struct Key {
  const char* option;
  const char* variable;
  const char* argument;
};
constexpr std::array kKeys = {Key{"--owner", "HOLDFAST_OWNER", "owner"}, Key{"--task", "HOLDFAST_TASK", "task"},
                              Key{"--generation", "HOLDFAST_GENERATION", "generation"},
                              Key{"--started-at", "HOLDFAST_STARTED_AT", "started_at"}};

Refusal invalid(const std::string& path, const std::string& why) {
  return Refusal(Code::lease_file_invalid, "the lease file " + printable(path) + " " + why,
                 Json{{"path", printable(path)}});
}

bool is_record(const Json& value) {
  if (!value.is_object()) return false;
  for (const char* member : {"namespace", "resource_id", "owner", "task_id", "started_at"}) {
    if (!value.contains(member) || !value[member].is_string()) return false;
  }
  return value.contains("generation") && exact_u64(value["generation"]).has_value();
}

// The records of a document, or nothing where it is malformed.
std::vector<Json> records_of(const Json& document) {
  if (is_record(document)) return {document};
  if (!document.is_object()) return {};
  if (document.contains("lease") && is_record(document["lease"])) return {document["lease"]};
  if (!document.contains("leases") || !document["leases"].is_array()) return {};
  std::vector<Json> records;
  for (const Json& entry : document["leases"]) {
    if (!is_record(entry)) return {};
    records.push_back(entry);
  }
  return records;
}

Json keys_of_record(const Json& record) {
  return Json{{"owner", record["owner"]},
              {"task", record["task_id"]},
              {"generation", std::to_string(*exact_u64(record["generation"]))},
              {"started_at", record["started_at"]}};
}

struct Given {
  Json keys = Json::object();
  std::string missing;
  bool any = false;
};

// The four keys from one source; `look_up` gives a key's value in it.
template <class LookUp>
Result<Given> gather(LookUp look_up, const Command& command) {
  Given given;
  for (const Key& key : kKeys) {
    const std::optional<std::string> value = look_up(key);
    if (!value) {
      given.missing += (given.missing.empty() ? "" : ", ") + std::string(key.option);
      continue;
    }
    if (!is_valid_utf8(*value)) return usage_refusal(std::string(key.option) + " is not UTF-8", &command);
    given.keys[key.argument] = *value;
    given.any = true;
  }
  return given;
}

Result<Json> from_file(const std::string& path, const Surroundings& surroundings, const std::string& scope) {
  HF_TRY(const Json record, record_of_lease_file(path, surroundings, scope));
  return keys_of_record(record);
}

}  // namespace

Result<Json> record_of_lease_file(const std::string& path, const Surroundings& surroundings, const std::string& scope) {
  if (path == "-") return usage_refusal("--lease takes a file, not standard input");
  HF_TRY(const std::string bytes, surroundings.read_file(path));
  JsonProblem problem;
  const std::optional<Json> document = parse_json(bytes, &problem);
  if (!document) return invalid(path, "is no JSON document: " + problem.text);
  const std::vector<Json> records = records_of(*document);
  const Json error = document->is_object() ? document->value("error", Json()) : Json();
  if (error.is_object()) return invalid(path, "holds a refusal, no lease: " + printable(text_member(error, "message")));
  if (records.empty()) return invalid(path, "holds no lease as `holdfast --json acquire` prints it");
  if (records.size() == 1) return records.front();
  if (scope.empty()) return invalid(path, "holds several leases, and nothing here says which one is meant");
  HF_TRY(const Json wanted, surroundings.canonical(scope));
  for (const Json& record : records) {
    if (record["namespace"] == wanted["namespace"] && record["resource_id"] == wanted["resource_id"]) return record;
  }
  return invalid(path, "holds " + std::to_string(records.size()) + " leases, none on " + printable(scope));
}

Result<std::optional<Json>> tenancy_keys(const Invocation& invocation, const Surroundings& surroundings,
                                         const std::string& scope, bool keys_are_optional) {
  const Command& command = *invocation.command;
  HF_TRY(const Given options, gather([&](const Key& key) { return invocation.value(key.option); }, command));
  if (const auto file = invocation.value("--lease")) {
    if (options.any) return usage_refusal("give the keys by --lease or one by one, not both", &command);
    HF_TRY(const Json keys, from_file(*file, surroundings, scope));
    return std::optional<Json>(keys);
  }
  if (options.any) {
    if (options.missing.empty()) return std::optional<Json>(options.keys);
    return usage_refusal("keys are missing: " + options.missing, &command);
  }
  if (keys_are_optional) return std::optional<Json>();
  if (const auto file = surroundings.environment("HOLDFAST_LEASE_FILE")) {
    HF_TRY(const Json keys, from_file(*file, surroundings, scope));
    return std::optional<Json>(keys);
  }
  HF_TRY(const Given environment,
         gather([&](const Key& key) { return surroundings.environment(key.variable); }, command));
  if (environment.any && environment.missing.empty()) return std::optional<Json>(environment.keys);
  return usage_refusal("the keys of the lease are missing: --lease FILE, or " + options.missing, &command);
}

}  // namespace holdfast::cli
