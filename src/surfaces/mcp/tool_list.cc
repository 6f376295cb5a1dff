// The tools, each with what an agent reads of it. What they do is in tool_runs.cc.
#include "surfaces/mcp/tool_runs.h"

namespace holdfast::mcp {
namespace {

using Kind = ArgumentKind;

constexpr ArgumentSpec kScope = {
    "scope", Kind::text, true,
    "What the lease is on: a path inside the workspace (relative to the current folder), or namespace://resource with "
    "file, session, window, account, focus or browser."};
constexpr ArgumentSpec kOffset = {"offset", Kind::whole_number, false,
                                  "Where to go on: next_offset of the page before. 0 is the beginning."};

// The six tenancy keys, as lease_acquire gave them: scope names two of them.
std::vector<ArgumentSpec> with_keys(std::vector<ArgumentSpec> more) {
  std::vector<ArgumentSpec> all = {
      kScope,
      {"owner", Kind::text, true, "Who holds the lease, as given to lease_acquire."},
      {"task", Kind::text, true, "The task it is held for, as given to lease_acquire."},
      {"generation", Kind::number_text, true, "The lease's generation, as lease_acquire printed it: a decimal string."},
      {"started_at", Kind::text, true, "The lease's started_at, exactly as lease_acquire printed it."}};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

const std::vector<ArgumentSpec> kContent = {
    {"content", Kind::text, false, "The new bytes as text; line ends stay as they are."},
    {"content_base64", Kind::text, false, "The new bytes in base64; for what is not UTF-8. One of the two."},
    {"preimage_sha256", Kind::text, false,
     "The SHA-256 of what you read and planned on, or `absent`. Another content is refused: preimage_hash_mismatch."},
    {"operation_id", Kind::text, false,
     "A name of your own for this very write: sent again after a lost answer, it is not done twice."}};

const Json kText = {{"type", "string"}};
const Json kList = {{"type", "array"}, {"items", {{"type", "object"}}}};
const Json kObject = {{"type", "object"}};
const Json kCount = {{"type", "integer"}, {"minimum", 0}};
// Not a list of types: some clients map a schema onto dialects that know one type only.
const Json kNext = {{"anyOf", {{{"type", "integer"}}, {{"type", "null"}}}}};
// Of a write: planned_sha256 is what is on disk now, and the next write's preimage_sha256.
const Json kPublished = {
    {"leased_scope", kText}, {"planned_sha256", kText}, {"operation_id", kText}, {"generation", kText}};
const Json kBoolean = {{"type", "boolean"}};

std::vector<Tool> lease_tools() {
  return {
      {"lease_acquire",
       "Acquire a lease",
       "Take a lease on a file or another resource before you change it. While you hold it nobody else gets it, and on "
       "a guarded file the kernel keeps writers out that never asked. Keep scope, owner, task, generation and "
       "started_at of the answer: the other tools need them. A refusal names who holds it, since when, until when and "
       "for what task; wait with wait_seconds, or do something else first. Several scopes: all or none.",
       {.idempotent = true},
       {{"scope", Kind::text, false, kScope.description},
        {"scopes", Kind::text_list, false, "Several of them in one request: all or none. Instead of scope."},
        {"owner", Kind::text, true, "Who you are: the same name for all of your leases."},
        {"task", Kind::text, true, "What you need it for: others see it."},
        {"ttl_seconds", Kind::seconds, false, "How long without a heartbeat: 1 to 900, else 900."},
        {"wait_seconds", Kind::whole_number, false, "How long to stand in the queue while somebody else holds it."},
        {"fresh", Kind::boolean, false,
         "A new generation though you hold it already: what the old one left behind is fenced off."},
        {"require", Kind::text, false,
         "`enforced`, or the mechanism that the kernel has to offer here, such as kernel_lease; less is refused."},
        {"reason", Kind::text, false, "Why ownership changes: kept in the lease's contract."}},
       {{"leases", kList}, {"granted", kText}},
       run_lease_acquire},
      {"lease_heartbeat",
       "Renew a lease",
       "Renew your lease before its deadline: at half of ttl_seconds, say. lease_expired or stale_lease_generation "
       "means that it is no longer yours: acquire again and read again before you write.",
       {.idempotent = true},
       with_keys({{"ttl_seconds", Kind::seconds, false, "How long from now: at most 900."}}),
       {{"lease", kObject}, {"renewed", kBoolean}},
       run_lease_heartbeat},
      {"lease_release",
       "Release a lease",
       "Give the lease back as soon as you are done. What is on disk is compared with what was written under it; a "
       "difference (content_mismatch) is kept as evidence, never undone.",
       {},
       with_keys({}),
       {{"content_mismatch", kBoolean}},
       run_lease_release},
      {"lease_list",
       "List leases",
       "Who holds what: owner, task, generation, since, until, whether the holder lives, and what the kernel enforces. "
       "Look here before you start, or when something was refused.",
       {.read_only = true, .idempotent = true},
       {kOffset},
       {{"leases", kList}, {"total", kCount}, {"next_offset", kNext}},
       run_lease_list},
  };
}

std::vector<Tool> file_tools() {
  std::vector<ArgumentSpec> edit = {
      {"replacements", Kind::replacement_list, true,
       "Each {old,new} as text or {old_base64,new_base64}: old has to be found exactly once; everything else stays "
       "byte for byte."}};
  edit.insert(edit.end(), kContent.begin() + 2, kContent.end());
  return {
      {"file_read",
       "Read a file",
       "Read a file of the workspace and its SHA-256, which file_write and file_edit take as preimage_sha256. A large "
       "file comes in pages: go on at next_offset; the digest is always the whole file's.",
       {.read_only = true, .idempotent = true},
       {kScope, kOffset, {"limit", Kind::whole_number, false, "At most so many bytes of content."}},
       {{"scope", kText}, {"sha256", kText}, {"byte_count", kCount}, {"offset", kCount}, {"next_offset", kNext}},
       run_file_read},
      {"file_write",
       "Replace a file",
       "Replace the whole file under your lease, atomically and verified, or make it where it is absent. Everything "
       "that the answer does not confirm has not happened. Give preimage_sha256 of what you read.",
       {.destructive = true},
       with_keys(kContent),
       kPublished,
       run_file_write},
      {"file_edit",
       "Edit a file",
       "Replace exact texts in a file under your lease; bytes outside of them stay. Refused as a whole where a text is "
       "not found exactly once (edit_no_match, edit_ambiguous).",
       {.destructive = true},
       with_keys(edit),
       kPublished,
       run_file_edit},
  };
}

// The bytes of an act; its preimage_sha256 is another word for the precondition.
std::vector<ArgumentSpec> prepared_content() {
  std::vector<ArgumentSpec> all = {
      kContent[0],
      kContent[1],
      {"precondition", Kind::text, false,
       "The version that the act is planned on: a row's, or a file's SHA-256 or `absent` (else what is there now)."},
      {"preimage_sha256", Kind::text, false, "The same of a file, as file_write takes it. One of the two."},
      {"operation_id", Kind::text, false, "A name of your own for this act; act_approve and act_commit take it."},
      {"reason", Kind::text, false, "Why it is wanted: whoever approves sees it."}};
  return all;
}

std::vector<Tool> act_tools() {
  const ArgumentSpec operation = {"operation_id", Kind::text, true, "The act, as act_prepare named it."};
  return {
      {"act_prepare",
       "Prepare an act",
       "Bind exact bytes for one target (a file, or a row behind a receiver, then {\"key\",\"set\"} as JSON) to your "
       "tenancy's generation, for somebody to approve. Nothing is changed yet. Once the generation has ended the act "
       "can no longer be committed. Its operation_id is in act.command.",
       {},
       with_keys(prepared_content()),
       {{"act", kObject}},
       run_act_prepare},
      {"act_approve",
       "Approve an act",
       "Approve a prepared act, once: its answer shows what was approved. Any client may approve, whoever prepared it, "
       "and the name is taken as given: where a person has to decide, let only that person's client use this tool.",
       {.idempotent = true},
       {operation,
        {"owner", Kind::text, false, "Who approves: a name that is kept with the approval, not a proof."},
        {"reason", Kind::text, false, "Why it is approved."}},
       {{"act", kObject}},
       run_act_approve},
      {"act_commit",
       "Commit an act",
       "Carry out an approved act, once, if nothing that it was bound to has changed. act_consumed means that it was "
       "carried out already: details.outcome is what came of it, also where your own answer was lost.",
       {.destructive = true},
       with_keys({operation}),
       {{"operation_id", kText}, {"outcome", kObject}, {"evidence", kText}},
       run_act_commit},
      {"result_get",
       "Get a result",
       "Receive the result of an operation that was granted to your task (`holdfast result grant`), under your own "
       "current lease: scope, owner, task, generation and started_at are those of your lease, not of the operation.",
       {.idempotent = true},
       with_keys({{"operation_id", Kind::text, true, "Whose result."}}),
       {{"operation_id", kText},
        {"outcome", kObject},
        {"grant", kObject},
        {"received_under", kObject},
        {"evidence", kText}},
       run_result_get},
      {"handoff_status",
       "Show a handoff",
       "What still stands in the way of closing the handoff of a resource, and what closes each: in_the_way.",
       {.read_only = true, .idempotent = true},
       {{"scope", Kind::text, false, "The handoff of this resource alone; else of every one that was opened."},
        kOffset},
       {{"handoffs", kList}, {"total", kCount}, {"next_offset", kNext}},
       run_handoff_status},
  };
}

std::vector<Tool> operator_tools() {
  return {
      {"reconcile_list",
       "List open reconciliations",
       "What a person has to decide: publishes whose outcome is unknown or foreign. Until then a write on that scope "
       "is "
       "refused with reconciliation_required.",
       {.read_only = true, .idempotent = true},
       {kOffset},
       {{"reconcile", kList}, {"total", kCount}, {"next_offset", kNext}},
       run_reconcile_list},
      {"quarantine_list",
       "List quarantined bytes",
       "Bytes that came to a leased file past its lease, kept as evidence.",
       {.read_only = true, .idempotent = true},
       {kOffset},
       {{"quarantine", kList}, {"total", kCount}, {"next_offset", kNext}},
       run_quarantine_list},
      {"doctor",
       "Try what the kernel enforces here",
       "Attacks scratch files of its own in the workspace and says, operation by operation, what this kernel and file "
       "system stop. Takes a few seconds.",
       {.idempotent = true},
       {},
       {{"doctor", kObject}},
       run_doctor},
  };
}

}  // namespace

const std::vector<Tool>& tools() {
  static const std::vector<Tool> all = [] {
    std::vector<Tool> list;
    for (auto part : {lease_tools(), file_tools(), act_tools(), operator_tools()}) {
      for (Tool& tool : part) list.push_back(std::move(tool));
    }
    return list;
  }();
  return all;
}

}  // namespace holdfast::mcp
