#include "surfaces/mcp/tool_request.h"

#include <algorithm>
#include <iterator>

#include "base/base64.h"
#include "base/ids.h"
#include "base/json.h"

namespace holdfast::mcp {

Refusal wrong(const char* why) { return Refusal(Code::usage, why).with_hint("see the tool's input schema"); }

Json taken(const Json& arguments, std::initializer_list<const char*> names) {
  Json result = Json::object();
  for (const char* name : names) {
    if (arguments.contains(name)) result[name] = arguments[name];
  }
  return result;
}

Json keys(const ToolCall& call) {
  return taken(call.arguments, {"scope", "owner", "task", "generation", "started_at"});
}

Result<Json> ask(const ToolCall& call, const std::string& verb, Json request, Repeat repeat,
                 const std::string* content) {
  return call.link.ask(verb, std::move(request), repeat, call.cancellation, content, call.progress);
}

Result<std::optional<std::string>> bytes_of(const Json& object, const std::string& text, const std::string& base64) {
  if (object.contains(text) && object.contains(base64)) return wrong("the same bytes are given as text and as base64");
  for (const std::string& name : {text, base64}) {
    if (object.contains(name) && !object[name].is_string()) return wrong("bytes to be written are no text");
  }
  if (object.contains(text)) return std::optional(object[text].get<std::string>());
  if (!object.contains(base64)) return std::optional<std::string>();
  auto decoded = base64_decode(object[base64].get_ref<const std::string&>());
  if (!decoded) return wrong("base64 that is none (RFC 4648, padded)");
  return decoded;
}

void name_operation(Json& request) {
  if (!request.contains("operation_id")) request["operation_id"] = "op-" + random_hex(16);
}

std::size_t whole_characters(const std::string& bytes) {
  std::size_t end = bytes.size();
  for (std::size_t back = 1; back <= 4 && back <= bytes.size(); ++back) {
    const auto byte = static_cast<unsigned char>(bytes[bytes.size() - back]);
    if ((byte & 0xC0U) == 0x80U) continue;
    const std::size_t length = byte < 0x80U ? 1 : byte >= 0xF0U ? 4 : byte >= 0xE0U ? 3 : 2;
    if (length > back) end = bytes.size() - back;
    break;
  }
  return end;
}

namespace {

// Every text longer than this is cut, and so is every list; what was cut is said once, at the top.
void cut(Json& value, std::size_t text_max, std::size_t list_max) {
  if (value.is_string() && value.get_ref<const std::string&>().size() > text_max) {
    std::string text = value.get_ref<const std::string&>().substr(0, text_max);
    text.resize(whole_characters(text));
    value = text + "...";
  }
  if (value.is_array() && value.size() > list_max) {
    value.erase(value.begin() + static_cast<std::ptrdiff_t>(list_max), value.end());
  }
  while (value.is_object() && value.size() > list_max) value.erase(std::prev(value.end()));
  if (!value.is_structured()) return;
  for (Json& part : value) cut(part, text_max, list_max);
}

}  // namespace

Json fitting(const ToolCall& call, Json document) {
  constexpr std::size_t kAroundList = 4096;
  constexpr std::size_t kMembersKept = 24;  // more than any document of ours has at its top
  const auto fits = [&] { return reply_size(document) + kAroundList <= call.reply_limit; };
  if (fits()) return document;
  for (std::size_t text_max = 4096; text_max >= 16; text_max /= 2) {
    cut(document, text_max, std::max<std::size_t>(text_max / 16, kMembersKept));
    if (fits()) break;
  }
  document["shortened"] = true;
  return document;
}

Result<Json> page_of_list(const ToolCall& call, const std::string& verb, const std::string& member, Json request) {
  HF_TRY(const Json answer, ask(call, verb, std::move(request), Repeat::safe));
  const Json all = answer.value(member, Json::array());
  const auto offset = std::min<std::uint64_t>(call.arguments.value("offset", std::uint64_t{0}), all.size());
  Json page = Json::array();
  std::size_t size = reply_size(Json::object());
  std::uint64_t at = offset;
  for (; at < all.size(); ++at) {
    Json one = all[at];
    if (at == offset) one = fitting(call, std::move(one));
    size += reply_size(one);
    if (size > call.reply_limit && at > offset) break;
    page.push_back(std::move(one));
  }
  return Json{
      {member, std::move(page)}, {"total", all.size()}, {"next_offset", at < all.size() ? Json(at) : Json(nullptr)}};
}

}  // namespace holdfast::mcp
