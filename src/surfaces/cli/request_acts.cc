#include "surfaces/cli/request_acts.h"

#include <filesystem>

#include "base/base64.h"
#include "base/json.h"
#include "surfaces/cli/content.h"
#include "surfaces/cli/lease_keys.h"
#include "surfaces/cli/request.h"

namespace holdfast::cli {
namespace {

constexpr std::size_t kPayloadMax = 16U << 20U;

std::vector<std::string> values_of(const Invocation& invocation, const char* option) {
  const auto found = invocation.options.find(option);
  return found == invocation.options.end() ? std::vector<std::string>() : found->second;
}

// Where the object is, whatever links led to it: a file in the workspace is known as one.
Result<std::string> object_path(const std::string& path, const Surroundings& surroundings) {
  std::error_code error;
  const auto found = std::filesystem::weakly_canonical(absolute_path(path, surroundings.current_folder), error);
  const std::string text = error ? absolute_path(path, surroundings.current_folder) : found.string();
  if (is_valid_utf8(text)) return text;
  return usage_refusal("a path that is not UTF-8");
}

// COLUMN=TYPE:VALUE
Result<void> put_column(const Invocation& invocation, const std::string& words, Json& columns) {
  const auto wrong = [&](const std::string& why) {
    return usage_refusal(printable(words) + ": " + why, invocation.command);
  };
  if (!is_valid_utf8(words)) return wrong("not UTF-8; give bytes as blob, in base64");
  const std::size_t equals = words.find('=');
  if (equals == std::string::npos || equals == 0) return wrong("write COLUMN=TYPE:VALUE");
  const std::string column = words.substr(0, equals);
  const std::string typed = words.substr(equals + 1);
  const std::size_t colon = typed.find(':');
  const std::string type = typed.substr(0, colon);
  if (columns.contains(column)) return wrong("the column stands there twice");
  if (typed == "null") {
    columns[column] = {{"null", true}};
    return {};
  }
  if (colon == std::string::npos) return wrong("write COLUMN=TYPE:VALUE");
  const std::string value = typed.substr(colon + 1);
  if (type == "real") {
    const auto number = parse_json(value);
    if (!number || !number->is_number()) return wrong("no number");
    columns[column] = {{"real", *number}};
    return {};
  }
  if (type != "integer" && type != "text" && type != "blob") return wrong("TYPE is integer, text, blob, real or null");
  columns[column] = {{type, value}};
  return {};
}

Result<std::string> row_change(const Invocation& invocation) {
  Json change = {{"key", Json::object()}, {"set", Json::object()}};
  for (const std::string& words : values_of(invocation, "--key")) {
    HF_CHECK(put_column(invocation, words, change["key"]));
  }
  for (const std::string& words : values_of(invocation, "--set")) {
    HF_CHECK(put_column(invocation, words, change["set"]));
  }
  return dump_canonical(change);
}

Result<std::string> whole_content(const std::string& from) {
  HF_TRY(const auto content, StreamContent::open(from));
  std::string bytes;
  std::string piece(StreamContent::kPiece, '\0');
  for (;;) {
    HF_TRY(const std::size_t count, content->read(piece.data(), piece.size()));
    if (count == 0) return bytes;
    bytes.append(piece, 0, count);
    if (bytes.size() > kPayloadMax) {
      return Refusal(Code::content_unreadable, printable(from) + " has over 16 MiB, more than a command carries");
    }
  }
}

Result<void> put_payload(const Invocation& invocation, Json& arguments) {
  HF_TRY(const std::string payload, payload_in_words(invocation));
  arguments["payload_base64"] = base64_encode(payload);
  return {};
}

Result<void> put_receiver(const Invocation& invocation, const Surroundings& surroundings, Json& arguments) {
  const std::string kind = *invocation.value("--kind");
  Json config = Json::object();
  if (const auto state = invocation.value("--state")) { HF_TRY(config["state"], object_path(*state, surroundings)); }
  if (const auto database = invocation.value("--database")) {
    if (!is_valid_utf8(*database)) return usage_refusal("--database is not UTF-8", invocation.command);
    if (kind == "postgres") config["connection"] = *database;
    if (kind != "postgres") { HF_TRY(config["database"], object_path(*database, surroundings)); }
  }
  for (const auto& [option, member] : {std::pair{"--table", "table"}, {"--version-column", "version_column"}}) {
    const auto value = invocation.value(option);
    if (value && !is_valid_utf8(*value)) {
      return usage_refusal(std::string(option) + " is not UTF-8", invocation.command);
    }
    if (value) config[member] = *value;
  }
  for (const std::string& column : values_of(invocation, "--key")) {
    if (!is_valid_utf8(column)) return usage_refusal("--key is not UTF-8", invocation.command);
    config["key_columns"].push_back(column);
  }
  const bool has_rows = kind == "sqlite" || kind == "postgres";
  const bool says_rows =
      config.contains("table") && config.contains("key_columns") && config.contains("version_column");
  if (has_rows && (!says_rows || !invocation.has("--database"))) {
    return usage_refusal("a receiver of rows needs --database, --table, --key and --version-column",
                         invocation.command);
  }
  arguments["config"] = std::move(config);
  return {};
}

// The scope of result get is one of the six keys: it is named, or it is that of the lease file.
Result<void> put_receiving_scope(const Invocation& invocation, const Surroundings& surroundings, Json& arguments) {
  std::string scope = invocation.value("--scope").value_or("");
  const auto file =
      invocation.value("--lease") ? invocation.value("--lease") : surroundings.environment("HOLDFAST_LEASE_FILE");
  if (scope.empty() && file) {
    HF_TRY(const Json record, record_of_lease_file(*file, surroundings, ""));
    scope = text_member(record, "namespace") + "://" + text_member(record, "resource_id");
  }
  if (scope.empty()) scope = surroundings.environment("HOLDFAST_SCOPE").value_or("");
  if (scope.empty()) return usage_refusal("--scope is missing: what you lease", invocation.command);
  const Json request = scope_request("", scope, surroundings.current_folder);
  arguments.update(request["arguments"]);
  HF_TRY(const auto keys, tenancy_keys(invocation, surroundings, scope, false));
  arguments.update(*keys);
  return {};
}

Result<void> put_act(const Invocation& invocation, const Surroundings& surroundings, Json& arguments) {
  arguments["operation_id"] = arguments["id"];
  if (const auto file = invocation.value("--act")) {
    HF_TRY(const std::string bytes, surroundings.read_file(*file));
    JsonProblem problem;
    const auto act = parse_json(bytes, &problem);
    if (!act) return usage_refusal("--act is no JSON document: " + problem.text, invocation.command);
    arguments["act"] = *act;
  }
  if (invocation.command->name != "act commit") return {};
  HF_TRY(const auto keys, tenancy_keys(invocation, surroundings, "", false));
  arguments.update(*keys);
  return {};
}

}  // namespace

Result<std::string> payload_in_words(const Invocation& invocation) {
  const bool in_words = invocation.has("--key") || invocation.has("--set");
  const auto from = invocation.value("--from");
  if (in_words == from.has_value()) {
    return usage_refusal("say what the bytes are: --from FILE, or --key and --set of a row", invocation.command);
  }
  if (in_words && !(invocation.has("--key") && invocation.has("--set"))) {
    return usage_refusal("a change of a row needs --key and --set", invocation.command);
  }
  return in_words ? row_change(invocation) : whole_content(*from);
}

Result<void> put_receivers_and_acts(const Invocation& invocation, const Surroundings& surroundings, Json& arguments) {
  const std::string_view verb = invocation.command->verb;
  if (verb == "receiver_add") return put_receiver(invocation, surroundings, arguments);
  if (verb == "receiver_settle" && invocation.has("--ran") == invocation.has("--not-run")) {
    return usage_refusal("say --ran or --not-run", invocation.command);
  }
  if (verb == "command_issue" || verb == "act_prepare") {
    const std::string& scope = invocation.positionals.front();
    const bool is_file = scope.starts_with("file://") || scope.find("://") == std::string::npos;
    if (is_file && !invocation.has("--from")) {
      return usage_refusal("a file takes --from; --key and --set are of a row", invocation.command);
    }
    return put_payload(invocation, arguments);
  }
  if (verb == "act_approve" || verb == "act_commit" || verb == "act_show") {
    return put_act(invocation, surroundings, arguments);
  }
  if (verb == "result_grant" || verb == "result_get") arguments["operation_id"] = arguments["id"];
  if (verb == "result_get") return put_receiving_scope(invocation, surroundings, arguments);
  if (verb == "handoff_close") {
    arguments["accepted"] = Json::array();
    for (const std::string& id : values_of(invocation, "--accept")) {
      if (!is_valid_utf8(id)) return usage_refusal("--accept is not UTF-8", invocation.command);
      arguments["accepted"].push_back(id);
    }
  }
  return {};
}

}  // namespace holdfast::cli
