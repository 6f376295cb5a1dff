#include "surfaces/mcp/tool_runs.h"

#include <algorithm>

#include "base/base64.h"
#include "base/json.h"
#include "surfaces/mcp/tool_request.h"

namespace holdfast::mcp {
namespace {

constexpr std::uint64_t kPageBytes = 256U << 10U;
constexpr std::uint64_t kPageBytesLeast = 1U << 10U;

// Seconds as the engine's text, fractions and all: it is the one that judges them.
void take_ttl(const ToolCall& call, Json& request) {
  if (call.arguments.contains("ttl_seconds")) request["ttl"] = call.arguments["ttl_seconds"].dump() + "s";
}

// Where many leases make a reply too long: the keys, and what is enforced. lease_list has the rest.
Json shortened(const Json& record) {
  Json one = taken(record, {"namespace", "resource_id", "owner", "task_id", "generation", "started_at", "expires_at",
                            "ttl_seconds"});
  one["os_lock"] = taken(record.value("os_lock", Json::object()), {"enforced", "mechanism", "reason"});
  return one;
}

Json page_of_content(const Json& answer, std::string bytes, std::uint64_t offset) {
  const std::uint64_t total = exact_u64(answer["byte_count"]).value_or(0);
  const bool is_last = offset + bytes.size() >= total;
  if (const std::size_t whole = whole_characters(bytes); !is_last && whole > 0) {
    if (is_valid_utf8(std::string_view(bytes).substr(0, whole))) bytes.resize(whole);
  }
  const std::uint64_t next = offset + bytes.size();
  Json page = taken(answer, {"scope", "sha256", "byte_count", "identity"});
  page["offset"] = offset;
  page["next_offset"] = next < total ? Json(next) : Json(nullptr);
  if (is_valid_utf8(bytes)) {
    page["content"] = std::move(bytes);
  } else {
    page["content_base64"] = base64_encode(bytes);
  }
  return page;
}

}  // namespace

Result<Json> run_lease_acquire(const ToolCall& call) {
  Json request = taken(call.arguments, {"scopes", "owner", "task", "fresh", "require", "reason", "wait_seconds"});
  if (call.arguments.contains("scope") == call.arguments.contains("scopes")) {
    return wrong("either scope or scopes has to be given");
  }
  if (call.arguments.contains("scope")) request["scopes"] = Json::array({call.arguments["scope"]});
  take_ttl(call, request);
  HF_TRY(Json answer, ask(call, "acquire", std::move(request), Repeat::safe));
  if (reply_size(answer) <= call.reply_limit) return answer;
  Json shorter = answer;
  for (Json& record : shorter["leases"]) record = shortened(record);
  shorter["shortened"] = true;
  if (reply_size(shorter) <= call.reply_limit) return shorter;
  call.link.give_back(answer);
  return wrong("the leases on so many scopes do not fit into one reply: ask for fewer at once");
}

Result<Json> run_lease_heartbeat(const ToolCall& call) {
  Json request = keys(call);
  take_ttl(call, request);
  return ask(call, "heartbeat", std::move(request), Repeat::safe);
}

Result<Json> run_lease_release(const ToolCall& call) {
  return ask(call, "release", keys(call), Repeat::only_if_not_begun);
}

Result<Json> run_lease_list(const ToolCall& call) { return page_of_list(call, "leases", "leases"); }

Result<Json> run_reconcile_list(const ToolCall& call) { return page_of_list(call, "reconcile_list", "reconcile"); }

Result<Json> run_quarantine_list(const ToolCall& call) { return page_of_list(call, "quarantine_list", "quarantine"); }

Result<Json> run_file_read(const ToolCall& call) {
  const std::uint64_t offset = call.arguments.value("offset", std::uint64_t{0});
  const std::uint64_t asked = std::min<std::uint64_t>(call.arguments.value("limit", kPageBytes), kPageBytes);
  Json request = taken(call.arguments, {"scope"});
  request["offset"] = offset;
  request["limit"] = std::max<std::uint64_t>(asked, 1);
  HF_TRY(const Json answer, ask(call, "read", std::move(request), Repeat::safe));
  const auto bytes = base64_decode(text_member(answer, "content_base64"));
  if (!bytes) return Refusal(Code::server_answer_lost, "the server's content is no base64").with_effect(Effect::none);
  // How much a byte takes in JSON is only known once it is written.
  for (std::uint64_t size = bytes->size();; size /= 2) {
    Json page = page_of_content(answer, bytes->substr(0, size), offset);
    if (reply_size(page) <= call.reply_limit || size <= kPageBytesLeast) return page;
  }
}

Result<Json> run_file_write(const ToolCall& call) {
  HF_TRY(const auto content, bytes_of(call.arguments, "content", "content_base64"));
  if (!content) return wrong("either content or content_base64 has to be given");
  Json request = keys(call);
  request.update(taken(call.arguments, {"preimage_sha256", "operation_id"}));
  request["byte_count"] = content->size();
  name_operation(request);
  return ask(call, "write", std::move(request), Repeat::safe, &*content);
}

Result<Json> run_file_edit(const ToolCall& call) {
  Json request = keys(call);
  request.update(taken(call.arguments, {"preimage_sha256", "operation_id"}));
  request["replacements"] = Json::array();
  for (const Json& one : call.arguments["replacements"]) {
    for (const auto& [name, value] : one.items()) {
      if (name != "old" && name != "new" && name != "old_base64" && name != "new_base64") {
        return wrong("a replacement has old and new, or old_base64 and new_base64");
      }
    }
    HF_TRY(const auto old, bytes_of(one, "old", "old_base64"));
    HF_TRY(const auto fresh, bytes_of(one, "new", "new_base64"));
    if (!old || !fresh) return wrong("a replacement has old and new, or old_base64 and new_base64");
    request["replacements"].push_back({{"old_base64", base64_encode(*old)}, {"new_base64", base64_encode(*fresh)}});
  }
  name_operation(request);
  return ask(call, "edit", std::move(request), Repeat::safe);
}

Result<Json> run_doctor(const ToolCall& call) {
  HF_TRY(const std::string root, call.link.root());
  return call.doctor(root);
}

}  // namespace holdfast::mcp
