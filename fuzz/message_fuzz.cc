// Untrusted input: one line of a client of `holdfast mcp`.
//
// Invariants: parse_line never throws; a line that is no array holds exactly one item; a request has an id that is a
// short text or an integer, comes back as it was, and parses again to the same request; what answers a Problem is one
// short ASCII line without a null id; era and progress can be asked of every request.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"
#include "surfaces/mcp/era.h"
#include "surfaces/mcp/message.h"
#include "surfaces/mcp/progress.h"

namespace {

using namespace holdfast;
using namespace holdfast::mcp;

constexpr std::size_t kShort = 32U << 10U;

void check_line_out(const Json& message) {
  const std::string text = dump_ascii(message);
  for (const char byte : text) HF_ASSERT(byte >= 0x20 && byte < 0x7F);
  HF_ASSERT(parse_json(text) == message || text.find("\\ufffd") != std::string::npos);
  HF_ASSERT(!message.contains("id") || !message["id"].is_null());
}

void check_problem(const Problem& problem) {
  HF_ASSERT(problem.code == kParseError || problem.code == kInvalidRequest || problem.code == kInvalidParams);
  HF_ASSERT(!problem.message.empty());
  const Json message = problem_message(problem);
  HF_ASSERT(dump_ascii(message).size() < kShort);
  check_line_out(message);
}

void check_request(const Message& request) {
  HF_ASSERT(request.id.is_number_integer() || request.id.is_string());
  HF_ASSERT(!request.method.empty() && request.params.is_object());
  check_line_out(result_message(request.id, Json::object()));
  const Json again = {{"jsonrpc", "2.0"}, {"id", request.id}, {"method", request.method}, {"params", request.params}};
  const ParsedLine parsed = parse_line(dump_ascii(again));
  HF_ASSERT(parsed.items.size() == 1 && std::holds_alternative<Message>(parsed.items[0]));
  const auto& same = std::get<Message>(parsed.items[0]);
  HF_ASSERT(same.id == request.id && same.method == request.method && same.params == request.params);
  for (const char* negotiated : {"", "2024-11-05", "2025-11-25"}) {
    const auto form = form_of(request, negotiated);
    if (const auto* problem = std::get_if<Problem>(&form)) {
      HF_ASSERT(dump_ascii(problem_message(*problem)).size() < kShort);
    } else {
      check_line_out(result_message(request.id, shaped(Json::object(), std::get<Form>(form), Caching::stable)));
    }
  }
  std::uint64_t last = 0;
  bool told = false;
  Progress progress(request.params, [&](const Json& message) {
    const std::uint64_t value = message["params"]["progress"];
    HF_ASSERT(!told || value > last);
    last = value;
    told = true;
    HF_ASSERT(dump_ascii(message).size() < kShort);
  });
  if (const ProgressReport report = progress.report()) {
    for (const int done : {3, 3, 1, 4}) report(Json{{"done", done}});
    report(Json{{"waiting", request.params}});
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  const ParsedLine parsed = parse_line(line);
  HF_ASSERT(parsed.is_batch || parsed.items.size() == 1);
  for (const Item& item : parsed.items) {
    if (const auto* problem = std::get_if<Problem>(&item)) {
      check_problem(*problem);
    } else if (std::get<Message>(item).kind == Message::Kind::request) {
      check_request(std::get<Message>(item));
    } else {
      HF_ASSERT(std::get<Message>(item).kind == Message::Kind::response || std::get<Message>(item).id.is_null());
    }
  }
  return 0;
}
