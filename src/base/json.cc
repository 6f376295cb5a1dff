#include "base/json.h"

#include <charconv>
#include <set>
#include <vector>

namespace holdfast {
namespace {

constexpr std::size_t kMaxDepth = 64;

// Watches the events of one parse for duplicate keys and depth, and builds the document with nlohmann's own builder.
class StrictBuilder : public nlohmann::json_sax<Json> {
 public:
  explicit StrictBuilder(Json& target) : inner_(target, false) {}

  bool null() override { return inner_.null(); }
  bool boolean(bool value) override { return inner_.boolean(value); }
  bool number_integer(number_integer_t value) override { return inner_.number_integer(value); }
  bool number_unsigned(number_unsigned_t value) override { return inner_.number_unsigned(value); }
  bool number_float(number_float_t value, const string_t& text) override { return inner_.number_float(value, text); }
  bool string(string_t& value) override { return inner_.string(value); }
  bool binary(binary_t& value) override { return inner_.binary(value); }

  bool start_object(std::size_t elements) override {
    if (!deeper()) return false;
    keys_.emplace_back();
    return inner_.start_object(elements);
  }
  bool key(string_t& value) override {
    if (!keys_.back().insert(value).second) {
      problem_ = {JsonProblem::Kind::duplicate_key, "duplicate key \"" + printable(value) + "\""};
      return false;
    }
    return inner_.key(value);
  }
  bool end_object() override {
    keys_.pop_back();
    --depth_;
    return inner_.end_object();
  }
  bool start_array(std::size_t elements) override { return deeper() && inner_.start_array(elements); }
  bool end_array() override {
    --depth_;
    return inner_.end_array();
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    problem_ = {JsonProblem::Kind::malformed, "at byte " + std::to_string(position) + ": " + error.what()};
    return false;
  }

  const JsonProblem& problem() const { return problem_; }

 private:
  bool deeper() {
    if (++depth_ <= kMaxDepth) return true;
    problem_ = {JsonProblem::Kind::too_deep, "nested deeper than 64"};
    return false;
  }

  nlohmann::detail::json_sax_dom_parser<Json> inner_;
  std::vector<std::set<std::string>> keys_;
  std::size_t depth_ = 0;
  JsonProblem problem_{JsonProblem::Kind::malformed, "not a JSON document"};
};

}  // namespace

std::optional<Json> parse_json(std::string_view text, JsonProblem* problem) {
  if (!is_valid_utf8(text)) {
    if (problem != nullptr) *problem = {JsonProblem::Kind::not_utf8, "not UTF-8"};
    return std::nullopt;
  }
  // The parser takes a NUL byte for the end of the text, and would not see what follows it.
  if (const auto nul = text.find('\0'); nul != std::string_view::npos) {
    if (problem != nullptr) *problem = {JsonProblem::Kind::malformed, "a NUL at byte " + std::to_string(nul)};
    return std::nullopt;
  }
  Json document;
  StrictBuilder builder(document);
  if (Json::sax_parse(text.begin(), text.end(), &builder)) return document;
  if (problem != nullptr) *problem = builder.problem();
  return std::nullopt;
}

std::string dump_ascii(const Json& value) { return value.dump(-1, ' ', true, Json::error_handler_t::replace); }
std::string dump_pretty(const Json& value) { return value.dump(2, ' ', true, Json::error_handler_t::replace); }
std::string dump_canonical(const Json& value) { return dump_ascii(value); }

bool is_valid_utf8(std::string_view text) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  for (std::size_t at = 0; at < text.size();) {
    const unsigned char lead = bytes[at];
    std::size_t more = 0;
    std::uint32_t point = 0;
    if (lead < 0x80) {
      ++at;
      continue;
    }
    if (lead >= 0xC2 && lead <= 0xDF) {
      more = 1;
      point = lead & 0x1FU;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
      more = 2;
      point = lead & 0x0FU;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
      more = 3;
      point = lead & 0x07U;
    } else
      return false;
    if (at + more >= text.size()) return false;
    for (std::size_t next = 1; next <= more; ++next) {
      if ((bytes[at + next] & 0xC0U) != 0x80U) return false;
      point = (point << 6U) | (bytes[at + next] & 0x3FU);
    }
    if (more == 2 && (point < 0x800 || (point >= 0xD800 && point <= 0xDFFF))) return false;
    if (more == 3 && (point < 0x10000 || point > 0x10FFFF)) return false;
    at += more + 1;
  }
  return true;
}

std::string printable(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  const bool utf8 = is_valid_utf8(text);
  std::string out;
  for (const char byte : text) {
    const auto value = static_cast<unsigned char>(byte);
    if (value < 0x20 || value == 0x7F || (value >= 0x80 && !utf8)) {
      out += "\\x";
      out += kHex[value >> 4U];
      out += kHex[value & 15U];
    } else {
      out += byte;
    }
  }
  return out;
}

std::optional<std::uint64_t> parse_u64(std::string_view text) {
  if (text.empty() || (text.size() > 1 && text[0] == '0')) return std::nullopt;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text[0] < '0' || text[0] > '9') return std::nullopt;
  return value;
}

std::optional<std::uint64_t> exact_u64(const Json& value) {
  if (value.is_string()) return parse_u64(value.get_ref<const std::string&>());
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  // A document made in this process holds a literal as a signed integer.
  if (value.is_number_integer() && value.get<std::int64_t>() >= 0) return value.get<std::uint64_t>();
  return std::nullopt;
}

std::string text_member(const Json& object, std::string_view key) {
  const auto found = object.is_object() ? object.find(std::string(key)) : object.end();
  if (!object.is_object() || found == object.end() || !found->is_string()) return {};
  return found->get<std::string>();
}

}  // namespace holdfast
