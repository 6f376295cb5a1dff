#include "surfaces/cli/request.h"

#include "base/base64.h"
#include "base/json.h"
#include "surfaces/cli/lease_keys.h"
#include "surfaces/cli/request_acts.h"

namespace holdfast::cli {
namespace {

void put_text(Json& arguments, const std::string& name, const std::string& text) {
  if (is_valid_utf8(text)) {
    arguments[name] = text;
  } else {
    arguments[name + "_base64"] = base64_encode(text);
  }
}

// Options whose text goes into the request as it is.
Result<void> put_options(const Invocation& invocation, Json& arguments) {
  for (const OptionSpec& option : invocation.command->options) {
    if (option.argument.empty() || !invocation.has(option.name)) continue;
    const std::string name(option.argument);
    if (option.values.empty()) {
      arguments[name] = true;
      continue;
    }
    const std::string text = *invocation.value(option.name);
    if (!is_valid_utf8(text)) return usage_refusal(std::string(option.name) + " is not UTF-8", invocation.command);
    arguments[name] = text;
  }
  return {};
}

Result<void> put_positionals(const Invocation& invocation, const Surroundings& surroundings, Json& arguments) {
  const std::string_view kind = invocation.command->positional;
  if (kind == "ID") {
    const std::string& id = invocation.positionals.front();
    if (!is_valid_utf8(id)) return usage_refusal("an ID that is not UTF-8", invocation.command);
    arguments["id"] = id;
    return {};
  }
  if (kind == "NAME") {
    if (!is_valid_utf8(invocation.positionals.front()))
      return usage_refusal("a NAME that is not UTF-8", invocation.command);
    arguments["name"] = invocation.positionals.front();
    return {};
  }
  const bool is_optional = kind == "[SCOPE]";
  if (kind != "SCOPE" && kind != "SCOPE..." && !is_optional) return {};
  if (is_optional && invocation.positionals.empty()) return {};
  put_text(arguments, "cwd", surroundings.current_folder);
  if (kind != "SCOPE...") {
    put_text(arguments, "scope", invocation.positionals.front());
    return {};
  }
  Json scopes = Json::array();
  for (const std::string& scope : invocation.positionals) {
    scopes.push_back(is_valid_utf8(scope) ? Json(scope) : Json{{"base64", base64_encode(scope)}});
  }
  arguments["scopes"] = std::move(scopes);
  return {};
}

Result<void> put_keys(const Invocation& invocation, const Surroundings& surroundings, const std::string& scope,
                      bool optional, Json& arguments) {
  HF_TRY(const std::optional<Json> keys, tenancy_keys(invocation, surroundings, scope, optional));
  if (keys) arguments.update(*keys);
  return {};
}

Result<void> put_acquire(const Invocation& invocation, const Surroundings& surroundings, Json& arguments) {
  const auto file = invocation.value("--lease");
  if (!file) return {};
  if (invocation.positionals.size() > 1) {
    return usage_refusal("--lease carries the keys of one SCOPE", invocation.command);
  }
  HF_TRY(const Json record, record_of_lease_file(*file, surroundings, invocation.positionals.front()));
  if (!arguments.contains("owner")) arguments["owner"] = record["owner"];
  if (!arguments.contains("task")) arguments["task"] = record["task_id"];
  arguments["keys"] = record;
  return {};
}

Result<void> put_release(const Invocation& invocation, const Surroundings& surroundings, Json& arguments) {
  if (!invocation.has("--force")) {
    return put_keys(invocation, surroundings, invocation.positionals.front(), false, arguments);
  }
  // The one who forces is no holder: an owner is all that is needed, and every other key is left out.
  const auto owner = invocation.value("--owner");
  if (!owner) return usage_refusal("--force needs --owner: who releases", invocation.command);
  if (!is_valid_utf8(*owner)) return usage_refusal("--owner is not UTF-8", invocation.command);
  for (const char* other : {"--task", "--generation", "--started-at", "--lease"}) {
    if (invocation.has(other)) {
      return usage_refusal("--force takes no " + std::string(other) + ": it needs no key but --owner",
                           invocation.command);
    }
  }
  arguments["owner"] = *owner;
  return {};
}

Result<void> put_resolve(const Invocation& invocation, const Surroundings& surroundings, Json& arguments) {
  const bool restore = invocation.has("--restore");
  if (restore == invocation.has("--accept")) return usage_refusal("say --accept or --restore", invocation.command);
  arguments["decision"] = restore ? "restore" : "accept";
  if (restore) put_text(arguments, "cwd", surroundings.current_folder);
  return put_keys(invocation, surroundings, "", !restore, arguments);
}

Json replacements_of(const Invocation& invocation) {
  const std::vector<std::string>& texts = invocation.options.find("--replace")->second;
  Json replacements = Json::array();
  for (std::size_t at = 0; at + 1 < texts.size(); at += 2) {
    replacements.push_back({{"old_base64", base64_encode(texts[at])}, {"new_base64", base64_encode(texts[at + 1])}});
  }
  return replacements;
}

Result<void> put_log(const Invocation& invocation, const Surroundings& surroundings, Json& arguments) {
  if (const auto scope = invocation.value("--scope")) {
    put_text(arguments, "scope", *scope);
    put_text(arguments, "cwd", surroundings.current_folder);
  }
  if (const auto limit = invocation.value("--limit")) {
    const auto number = parse_u64(*limit);
    if (!number || *number == 0) return usage_refusal("--limit needs a number from 1", invocation.command);
    arguments["limit"] = *number;
  }
  return {};
}

Result<void> put_own(const Invocation& invocation, const Surroundings& surroundings, Json& arguments) {
  const std::string_view verb = invocation.command->verb;
  if (verb == "acquire") return put_acquire(invocation, surroundings, arguments);
  if (verb == "release") return put_release(invocation, surroundings, arguments);
  if (verb == "reconcile_resolve") return put_resolve(invocation, surroundings, arguments);
  if (verb == "evidence_log") return put_log(invocation, surroundings, arguments);
  if (verb == "task_set") {
    arguments["cwd"] = printable(surroundings.current_folder);
    arguments["sources"] = Json::array();
    const auto sources = invocation.options.find("--source");
    if (sources != invocation.options.end()) {
      for (const std::string& source : sources->second) {
        if (!is_valid_utf8(source)) return usage_refusal("--source is not UTF-8", invocation.command);
        arguments["sources"].push_back(source);
      }
    }
  }
  if (verb == "edit") arguments["replacements"] = replacements_of(invocation);
  if (verb == "evidence_export") {
    const std::string to = absolute_path(*invocation.value("--to"), surroundings.current_folder);
    if (!is_valid_utf8(to)) return usage_refusal("--to is not UTF-8", invocation.command);
    arguments["to"] = to;
  }
  if (verb == "init" && (invocation.has("--adopt") || invocation.has("--new-id"))) {
    if (invocation.has("--adopt") && invocation.has("--new-id")) {
      return usage_refusal("say --adopt or --new-id", invocation.command);
    }
    if (!invocation.has("--reason")) return usage_refusal("--adopt and --new-id need --reason", invocation.command);
  }
  HF_CHECK(put_receivers_and_acts(invocation, surroundings, arguments));
  const bool has_scope = invocation.command->positional == "SCOPE";
  if (invocation.command->keys == Keys::required && has_scope) {
    return put_keys(invocation, surroundings, invocation.positionals.front(), false, arguments);
  }
  return {};
}

}  // namespace

std::string absolute_path(const std::string& path, const std::string& current_folder) {
  if (path.starts_with('/')) return path;
  return current_folder + (current_folder.ends_with('/') ? "" : "/") + path;
}

Json scope_request(const std::string& verb, const std::string& scope, const std::string& current_folder) {
  Json arguments = Json::object();
  put_text(arguments, "scope", scope);
  put_text(arguments, "cwd", current_folder);
  return Json{{"verb", verb}, {"arguments", std::move(arguments)}};
}

Result<Json> request_of(const Invocation& invocation, const Surroundings& surroundings) {
  Json arguments = Json::object();
  HF_CHECK(put_positionals(invocation, surroundings, arguments));
  HF_CHECK(put_options(invocation, arguments));
  HF_CHECK(put_own(invocation, surroundings, arguments));
  return Json{{"verb", invocation.command->verb}, {"arguments", std::move(arguments)}};
}

}  // namespace holdfast::cli
