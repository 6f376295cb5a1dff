// Untrusted input: the arguments of a tool. The first line names the tool (any other text picks one), the rest is JSON.
//
// Invariants: nothing throws; what the input schema allows is taken; what is taken has the type that the schema says;
// the mapping to a request never answers but with a refusal here (there is no workspace), and that refusal fits the
// tool's output schema and a reply.
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>

#include "base/json.h"
#include "support/schema.h"
#include "surfaces/mcp/tool.h"

namespace {

using namespace holdfast;
using namespace holdfast::mcp;

const Tool& tool_named(const std::string& name) {
  if (const Tool* tool = find_tool(name)) return *tool;
  const auto sum = std::accumulate(name.begin(), name.end(), std::size_t{0},
                                   [](std::size_t all, char byte) { return all + static_cast<unsigned char>(byte); });
  return tools()[sum % tools().size()];
}

// Whether the engine is the one that judges it: digits in text, and how long a lease may be.
bool engine_judges(const Tool& tool, const Json& arguments) {
  for (const ArgumentSpec& spec : tool.arguments) {
    const std::string name(spec.name);
    if (!arguments.contains(name)) continue;
    if (spec.kind == ArgumentKind::number_text && arguments[name].is_string()) return true;
    if (spec.kind == ArgumentKind::seconds || spec.kind == ArgumentKind::replacement_list) return true;
  }
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t newline = std::min(text.find('\n'), text.size());
  const Tool& tool = tool_named(std::string(text.substr(0, newline)));
  const auto arguments = parse_json(text.substr(std::min(newline + 1, text.size())));
  if (!arguments || !arguments->is_object()) return 0;

  const auto checked = check_arguments(tool, *arguments);
  const bool allowed = support::schema_problem(input_schema(tool), *arguments).empty();
  if (allowed) HF_ASSERT(checked.ok());
  if (checked.ok() && !engine_judges(tool, *arguments)) HF_ASSERT(allowed);

  Result<Json> answer = Refusal(Code::usage, "not run");
  if (checked.ok()) {
    ServerLink link([]() -> Result<std::string> { return Refusal(Code::workspace_not_found, "none"); }, "/");
    Cancellation cancellation;
    const ProgressReport progress;
    const std::function<Result<Json>(const std::string&)> doctor;
    answer = tool.run({*arguments, link, cancellation, progress, std::size_t{1} << 20U, doctor});
  } else {
    answer = checked.refusal();
  }
  HF_ASSERT(!answer.ok());
  const Json document = answer.refusal().to_json();
  HF_ASSERT(support::schema_problem(output_schema(tool), document).empty());
  HF_ASSERT(reply_size(document) < (std::size_t{16} << 10U));
  return 0;
}
