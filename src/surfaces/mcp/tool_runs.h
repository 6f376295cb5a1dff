// What each tool does: its arguments become a request to the server, the answer a document that fits a reply.
// Refuses: what the verb refuses; reply_too_large never: lists and contents come in pages.
#pragma once
#include "surfaces/mcp/tool.h"

namespace holdfast::mcp {

Result<Json> run_lease_acquire(const ToolCall& call);
Result<Json> run_lease_heartbeat(const ToolCall& call);
Result<Json> run_lease_release(const ToolCall& call);
Result<Json> run_lease_list(const ToolCall& call);
Result<Json> run_file_read(const ToolCall& call);
Result<Json> run_file_write(const ToolCall& call);
Result<Json> run_file_edit(const ToolCall& call);
Result<Json> run_reconcile_list(const ToolCall& call);
Result<Json> run_quarantine_list(const ToolCall& call);
Result<Json> run_doctor(const ToolCall& call);
// act_runs.cc
Result<Json> run_act_prepare(const ToolCall& call);
Result<Json> run_act_approve(const ToolCall& call);
Result<Json> run_act_commit(const ToolCall& call);
Result<Json> run_result_get(const ToolCall& call);
Result<Json> run_handoff_status(const ToolCall& call);

}  // namespace holdfast::mcp
