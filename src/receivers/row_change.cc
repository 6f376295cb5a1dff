#include "receivers/row_change.h"

#include <algorithm>
#include <charconv>

#include "base/base64.h"
#include "base/json.h"

namespace holdfast::receivers {
namespace {

Refusal malformed(const std::string& why) {
  return Refusal(Code::request_malformed, "request_malformed: a row change " + why);
}

std::optional<std::int64_t> signed_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = error == std::errc() && end == text.data() + text.size() && std::to_string(number) == text;
  return is_whole ? std::optional(number) : std::nullopt;
}

Result<Value> value_from_json(const Json& value) {
  if (!value.is_object() || value.size() != 1) return malformed("has a value without exactly one type");
  const std::string type = value.begin().key();
  const Json& held = value.begin().value();
  if (type == "null" && held == Json(true)) return Value(Null{});
  if (type == "text" && held.is_string()) return Value(held.get<std::string>());
  if (type == "real" && held.is_number()) return Value(held.get<double>());
  if (type == "integer" && held.is_string()) {
    if (const auto number = signed_number(held.get_ref<const std::string&>())) return Value(*number);
  }
  if (type == "blob" && held.is_string()) {
    if (auto bytes = base64_decode(held.get_ref<const std::string&>())) return Value(Blob{std::move(*bytes)});
  }
  return malformed("has a value that is no " + printable(type));
}

Json value_to_json(const Value& value) {
  struct Writer {
    Json operator()(const Null&) const { return Json{{"null", true}}; }
    Json operator()(std::int64_t number) const { return Json{{"integer", std::to_string(number)}}; }
    Json operator()(double number) const { return Json{{"real", number}}; }
    // Bytes that are no UTF-8 cannot travel as text.
    Json operator()(const std::string& text) const {
      return is_valid_utf8(text) ? Json{{"text", text}} : Json{{"text_base64", base64_encode(text)}};
    }
    Json operator()(const Blob& blob) const { return Json{{"blob", base64_encode(blob.bytes)}}; }
  };
  return std::visit(Writer{}, value);
}

}  // namespace

Result<RowTarget> row_target_from_json(const Json& config) {
  RowTarget target{text_member(config, "table"), {}, text_member(config, "version_column")};
  const Json keys = config.is_object() ? config.value("key_columns", Json()) : Json();
  for (const Json& column : keys.is_array() ? keys : Json::array()) {
    if (column.is_string()) target.key_columns.push_back(column.get<std::string>());
  }
  const auto is_plain = [](const std::string& name) {
    return !name.empty() && name.find('\0') == std::string::npos && is_valid_utf8(name);
  };
  const bool keys_plain = std::all_of(target.key_columns.begin(), target.key_columns.end(), is_plain);
  if (!is_plain(target.table) || !is_plain(target.version_column) || target.key_columns.empty() || !keys_plain) {
    return Refusal(Code::usage, "a receiver of rows needs table, key_columns and version_column");
  }
  return target;
}

Json row_target_to_json(const RowTarget& target) {
  return Json{{"table", target.table}, {"key_columns", target.key_columns}, {"version_column", target.version_column}};
}

Result<Columns> values_from_json(const Json& value) {
  if (!value.is_object()) return malformed("has no object of columns");
  Columns columns;
  for (const auto& [name, held] : value.items()) { HF_TRY(columns[name], value_from_json(held)); }
  return columns;
}

Json values_to_json(const Columns& columns) {
  Json value = Json::object();
  for (const auto& [name, held] : columns) value[name] = value_to_json(held);
  return value;
}

Result<RowChange> read_row_change(const Command& command, const std::string& payload, const RowTarget& target) {
  const auto parsed = parse_json(payload);
  if (!parsed || !parsed->is_object() || parsed->size() != 2) return malformed("is no {\"key\",\"set\"}");
  RowChange change;
  HF_TRY(change.key, values_from_json(parsed->value("key", Json())));
  HF_TRY(change.set, values_from_json(parsed->value("set", Json())));
  if (change.set.empty()) return malformed("sets nothing");
  if (change.key.size() != target.key_columns.size()) return malformed("has another key than the receiver's");
  for (const std::string& column : target.key_columns) {
    if (!change.key.contains(column) || std::holds_alternative<Null>(change.key.at(column))) {
      return malformed("has no value for the key column " + printable(column));
    }
    if (change.set.contains(column)) return malformed("changes the key column " + printable(column));
  }
  if (change.set.contains(target.version_column)) return malformed("sets the version itself");
  const auto version = command.precondition ? signed_number(*command.precondition) : std::nullopt;
  if (!version) return malformed("needs the version that it was planned on as the command's precondition");
  change.expected_version = *version;
  return change;
}

Refusal version_changed(const Command& command, std::int64_t expected, const std::string& current) {
  return Refusal(Code::record_version_changed,
                 "record_version_changed: " + command.resource + " was planned on version " + std::to_string(expected) +
                     ", the row has " + current,
                 Json{{"resource", command.resource}, {"expected", std::to_string(expected)}, {"current", current}});
}

Refusal record_missing(const Command& command, const RowChange& change) {
  return Refusal(Code::record_missing, "record_missing: no row of " + command.resource + " has this key",
                 Json{{"resource", command.resource}, {"key", values_to_json(change.key)}});
}

}  // namespace holdfast::receivers
