#include "engine/arguments.h"

#include "base/base64.h"
#include "base/json.h"

namespace holdfast::engine {
namespace {

constexpr std::size_t kTextMax = 4096;

Result<std::string> raw_scope(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  const std::string encoded = value.is_object() ? text_member(value, "base64") : "";
  const auto bytes = base64_decode(encoded);
  if (!value.is_object() || !bytes) return usage("a scope that is no string");
  return *bytes;
}

Result<std::string> checked_text(const char* name, const Json& value) {
  if (!value.is_string()) return usage(std::string(name) + " is no string");
  std::string text = value.get<std::string>();
  if (text.empty()) return usage(std::string(name) + " is empty");
  if (text.size() > kTextMax) return usage(std::string(name) + " is longer than 4096 bytes");
  if (!is_valid_utf8(text)) return usage(std::string(name) + " is not UTF-8");
  for (const char byte : text) {
    if (static_cast<unsigned char>(byte) < 0x20 || byte == 0x7F) {
      return usage(std::string(name) + " has a control character");
    }
  }
  return text;
}

}  // namespace

Refusal usage(const std::string& message) { return Refusal(Code::usage, "usage: " + message); }

Result<std::string> Arguments::text(const char* name) const {
  if (!has(name)) return usage(std::string(name) + " is missing");
  return checked_text(name, json_[name]);
}

Result<std::optional<std::string>> Arguments::optional_text(const char* name) const {
  if (!has(name) || json_[name].is_null()) return std::optional<std::string>();
  HF_TRY(std::string text, checked_text(name, json_[name]));
  return std::optional(std::move(text));
}

Result<bool> Arguments::flag(const char* name) const {
  if (!has(name) || json_[name].is_null()) return false;
  if (!json_[name].is_boolean()) return usage(std::string(name) + " is neither true nor false");
  return json_[name].get<bool>();
}

Result<std::optional<std::uint64_t>> Arguments::number(const char* name) const {
  if (!has(name) || json_[name].is_null()) return std::optional<std::uint64_t>();
  const auto value = exact_u64(json_[name]);
  // Whoever sent it as a number may have rounded it already.
  const bool rounded = json_[name].is_number() && value && *value > (1ULL << 53U);
  if (!value || rounded) {
    return Refusal(Code::number_invalid,
                   std::string(name) + " is no unsigned 64-bit decimal integer: " +
                       printable(json_[name].is_string() ? json_[name].get<std::string>() : dump_ascii(json_[name])));
  }
  return std::optional(*value);
}

Result<std::string> Arguments::scope() const {
  if (has("scope_base64")) return raw_scope(Json{{"base64", json_["scope_base64"]}});
  if (!has("scope")) return usage("scope is missing");
  return raw_scope(json_["scope"]);
}

Result<std::vector<std::string>> Arguments::scopes() const {
  const Json list = json_.value("scopes", Json());
  if (!list.is_array() || list.empty()) return usage("scopes is no list of scopes");
  if (list.size() > 1000) return usage("more than 1000 scopes in one request");
  std::vector<std::string> texts;
  for (const Json& value : list) {
    HF_TRY(std::string text, raw_scope(value));
    texts.push_back(std::move(text));
  }
  return texts;
}

Result<std::string> Arguments::current_folder() const {
  if (has("cwd_base64")) {
    auto bytes = base64_decode(text_member(json_, "cwd_base64"));
    if (!bytes || !bytes->starts_with("/")) return usage("cwd_base64 is no absolute path");
    return std::move(*bytes);
  }
  const Json value = json_.value("cwd", Json());
  if (!value.is_string() || !value.get<std::string>().starts_with("/")) return usage("cwd is no absolute path");
  return value.get<std::string>();
}

Result<TenancyKeys> Arguments::keys() const {
  TenancyKeys keys;
  HF_TRY(keys.owner, text("owner"));
  HF_TRY(keys.task_id, text("task"));
  HF_TRY(const auto generation, number("generation"));
  if (!generation) return usage("generation is missing");
  keys.generation = Generation{*generation};
  HF_TRY(keys.started_at, text("started_at"));
  return keys;
}

}  // namespace holdfast::engine
