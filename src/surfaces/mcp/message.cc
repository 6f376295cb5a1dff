#include "surfaces/mcp/message.h"

#include "base/json.h"

namespace holdfast::mcp {
namespace {

bool is_id(const Json& value) {
  return value.is_number_integer() || (value.is_string() && value.get_ref<const std::string&>().size() <= kIdMax);
}

// The only "id" on the top level of a text that is refused as a whole (a duplicate key, too deep, a number too large),
// or null. Nothing else of such a text is looked at.
class IdSeeker : public nlohmann::json_sax<Json> {
 public:
  Json id() const { return seen_ == 1 ? id_ : Json(); }

  bool null() override { return value(Json()); }
  bool boolean(bool) override { return value(Json()); }
  bool number_integer(number_integer_t number) override { return value(Json(number)); }
  bool number_unsigned(number_unsigned_t number) override { return value(Json(number)); }
  bool number_float(number_float_t, const string_t&) override { return value(Json()); }
  bool string(string_t& text) override { return value(Json(text)); }
  bool binary(binary_t&) override { return value(Json()); }
  bool start_object(std::size_t) override { return open(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    at_id_ = depth_ == 1 && name == "id";
    if (at_id_) ++seen_;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  bool value(Json found) {
    if (at_id_ && depth_ == 1) id_ = is_id(found) ? std::move(found) : Json();
    at_id_ = false;
    return true;
  }
  bool open() {
    at_id_ = false;
    ++depth_;
    return true;
  }
  bool close() {
    --depth_;
    return true;
  }
  std::size_t depth_ = 0;
  int seen_ = 0;
  bool at_id_ = false;
  Json id_;
};

Json id_of_refused(std::string_view line) {
  if (line.empty() || line.front() != '{' || !is_valid_utf8(line)) return {};
  IdSeeker seeker;
  static_cast<void>(Json::sax_parse(line, &seeker));
  return seeker.id();
}

Problem problem_of(const JsonProblem& found, std::string_view line) {
  using Kind = JsonProblem::Kind;
  const bool is_json = found.kind == Kind::duplicate_key || found.kind == Kind::too_deep;
  return Problem{is_json ? kInvalidRequest : kParseError, found.text, Json(), id_of_refused(line)};
}

Item read_response(const Json& value) {
  if (!value.contains("id") || !is_id(value["id"]) || value.contains("result") == value.contains("error")) {
    return Problem{kInvalidRequest, "neither a request, nor a notification, nor a response", Json(), Json()};
  }
  Message message;
  message.kind = Message::Kind::response;
  message.id = value["id"];
  message.answer = value.contains("result") ? Json{{"result", value["result"]}} : Json{{"error", value["error"]}};
  return message;
}

Item read_message(const Json& value) {
  if (!value.is_object()) return Problem{kInvalidRequest, "a message is an object", Json(), Json()};
  const Json id = value.contains("id") && is_id(value["id"]) ? value["id"] : Json();
  const auto invalid = [&](const char* why, int code = kInvalidRequest) { return Problem{code, why, Json(), id}; };
  if (text_member(value, "jsonrpc") != "2.0") return invalid("jsonrpc is not \"2.0\"");
  if (!value.contains("method")) {
    if (value.contains("result") || value.contains("error")) return read_response(value);
    return invalid("there is no method");
  }
  if (value.contains("result") || value.contains("error")) return invalid("a request and a response in one");
  if (!value["method"].is_string() || value["method"].get_ref<const std::string&>().empty()) {
    return invalid("the method is no text");
  }
  Message message;
  message.method = value["method"].get<std::string>();
  if (value.contains("id")) {
    if (id.is_null()) return invalid("the id is neither a string of at most 256 bytes nor an integer");
    message.kind = Message::Kind::request;
    message.id = id;
  }
  if (value.contains("params")) {
    const bool is_request = message.kind == Message::Kind::request;
    if (!value["params"].is_object() && is_request) return invalid("params is no object", kInvalidParams);
    if (value["params"].is_object()) message.params = value["params"];
  }
  return message;
}

}  // namespace

ParsedLine parse_line(std::string_view line) {
  ParsedLine parsed;
  JsonProblem why{JsonProblem::Kind::malformed, "no JSON"};
  const auto value = parse_json(line, &why);
  if (!value) {
    parsed.items.emplace_back(problem_of(why, line));
  } else if (!value->is_array()) {
    parsed.items.push_back(read_message(*value));
  } else {
    parsed.is_batch = true;
    for (const Json& element : *value) parsed.items.push_back(read_message(element));
  }
  return parsed;
}

Json result_message(const Json& id, Json result) {
  return Json{{"jsonrpc", "2.0"}, {"id", id}, {"result", std::move(result)}};
}

Json problem_message(const Problem& problem) {
  Json error = {{"code", problem.code}, {"message", problem.message.substr(0, kProblemTextMax)}};
  if (!problem.data.is_null()) {
    const bool is_short = dump_ascii(problem.data).size() <= kProblemDataMax;
    error["data"] = is_short ? problem.data : Json{{"shortened", true}};
  }
  Json message = {{"jsonrpc", "2.0"}, {"error", std::move(error)}};
  if (!problem.id.is_null()) message["id"] = problem.id;
  return message;
}

Json notification_message(std::string_view method, Json params) {
  return Json{{"jsonrpc", "2.0"}, {"method", method}, {"params", std::move(params)}};
}

}  // namespace holdfast::mcp
