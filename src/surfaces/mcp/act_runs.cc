// The tools about acts, results and handoffs of work.
#include "base/base64.h"
#include "base/json.h"
#include "surfaces/mcp/tool_request.h"
#include "surfaces/mcp/tool_runs.h"

namespace holdfast::mcp {

Result<Json> run_act_prepare(const ToolCall& call) {
  HF_TRY(const auto content, bytes_of(call.arguments, "content", "content_base64"));
  if (!content) return wrong("either content or content_base64 has to be given");
  Json request = keys(call);
  request.update(taken(call.arguments, {"precondition", "operation_id", "reason"}));
  if (call.arguments.contains("preimage_sha256")) {
    const Json& preimage = call.arguments["preimage_sha256"];
    if (request.contains("precondition") && request["precondition"] != preimage) {
      return wrong("precondition and preimage_sha256 say the same thing, and here they differ");
    }
    request["precondition"] = preimage;
  }
  request["payload_base64"] = base64_encode(*content);
  name_operation(request);
  HF_TRY(Json answer, ask(call, "act_prepare", std::move(request), Repeat::safe));
  return fitting(call, std::move(answer));
}

// Who approves is a name among the arguments, like every owner.
Result<Json> run_act_approve(const ToolCall& call) {
  Json request = taken(call.arguments, {"operation_id", "reason"});
  if (call.arguments.contains("owner")) request["by"] = call.arguments["owner"];
  HF_TRY(Json answer, ask(call, "act_approve", std::move(request), Repeat::safe));
  return fitting(call, std::move(answer));
}

// Asked again after a lost answer it is carried out once: then act_consumed has the outcome.
Result<Json> run_act_commit(const ToolCall& call) {
  Json request = keys(call);
  request.update(taken(call.arguments, {"operation_id"}));
  HF_TRY(Json answer, ask(call, "act_commit", std::move(request), Repeat::safe));
  return fitting(call, std::move(answer));
}

Result<Json> run_result_get(const ToolCall& call) {
  Json request = keys(call);
  request.update(taken(call.arguments, {"operation_id"}));
  HF_TRY(Json answer, ask(call, "result_get", std::move(request), Repeat::safe));
  return fitting(call, std::move(answer));
}

Result<Json> run_handoff_status(const ToolCall& call) {
  return page_of_list(call, "handoff_status", "handoffs", taken(call.arguments, {"scope"}));
}

}  // namespace holdfast::mcp
