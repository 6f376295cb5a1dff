#include "engine/prune.h"

#include <set>

#include "base/json.h"
#include "engine/arguments.h"

namespace holdfast::engine {
namespace {

constexpr auto kQuarantine = evidence::RecordKind::quarantine;

bool is_true(const Json& record, const char* member) { return record.value(member, Json()) == Json(true); }

// Every digest that a quarantine record keeps: its own, and those of a folder's files.
std::vector<std::string> digests_of(const Json& record) {
  std::vector<std::string> digests = {text_member(record, "sha256")};
  for (const Json& file : record.value("files", Json::array())) digests.push_back(text_member(file, "sha256"));
  std::erase(digests, std::string());
  return digests;
}

Result<std::set<std::string>> still_needed(Context& context, const Transition& transition,
                                           const std::vector<Json>& quarantine) {
  std::set<std::string> needed;
  for (const Json& record : quarantine) {
    if (is_true(record, "unreadable")) {
      return Refusal(Code::state_unreadable, "a quarantine record cannot be read: " + text_member(record, "id"),
                     Json{{"record", record}});
    }
    if (is_true(record, "reconciled")) continue;
    for (std::string& digest : digests_of(record)) needed.insert(std::move(digest));
  }
  HF_TRY(const auto faults, context.records->all(evidence::RecordKind::reconcile));
  for (const Json& fault : faults) {
    if (text_member(fault, "state") == "resolved") continue;
    for (const char* name : {"planned_sha256", "preimage_sha256"}) needed.insert(text_member(fault, name));
  }
  for (const auto& [full, tenancy] : transition.state.held) {
    needed.insert(tenancy.post_sha256);
    needed.insert(tenancy.pre_write.sha256);
  }
  return needed;
}

}  // namespace

Result<Json> accept_quarantine(Context& context, const std::string& id, const std::string& reason) {
  HF_TRY(Transition transition, begin_transition(context));
  HF_TRY(Json record, context.records->get(kQuarantine, id));
  if (is_true(record, "reconciled")) {
    return Refusal(Code::not_found, "not_found: " + id + " was resolved already", Json{{"id", id}});
  }
  evidence::Event event;
  event.kind = "quarantine_accepted";
  event.scope = text_member(record, "scope");
  event.facts = {{"quarantine_id", id}, {"sha256", record.value("sha256", Json())}, {"reason", reason}};
  HF_TRY(const auto ids, holdfast::engine::record(context, transition, {std::move(event)}));
  record["reconciled"] = true;
  record["resolution"] = {{"reason", reason}, {"at", format_wall(transition.now.wall_us)}, {"event", ids.front()}};
  HF_CHECK(context.records->put(kQuarantine, id, record));
  return Json{{"record", std::move(record)}};
}

Result<Json> vault_prune(Context& context, const Json& json) {
  HF_TRY(const std::string reason, Arguments(json).text("reason"));
  HF_TRY(Transition transition, begin_transition(context));
  HF_TRY(const auto quarantine, context.records->all(kQuarantine));
  HF_TRY(const auto needed, still_needed(context, transition, quarantine));
  Json pruned = Json::array();
  std::vector<Json> changed;
  std::set<std::string> going;
  std::size_t kept = 0;
  for (const Json& record : quarantine) {
    if (!is_true(record, "reconciled") || is_true(record, "pruned")) continue;
    bool whole = true;
    for (const std::string& digest : digests_of(record)) {
      if (needed.contains(digest)) {
        whole = false;
        continue;
      }
      if (!going.insert(digest).second || !context.vault->contains(vault::Tier::amber, digest)) continue;
      pruned.push_back({{"sha256", digest}, {"quarantine_id", record["id"]}});
    }
    if (!whole) {
      ++kept;
      continue;
    }
    Json marked = record;
    marked["pruned"] = true;
    marked["pruned_at"] = format_wall(transition.now.wall_us);
    changed.push_back(std::move(marked));
  }
  // Said before it is done: after a crash the event names what may be gone already.
  evidence::Event event;
  event.kind = "vault_pruned";
  event.facts = {{"reason", reason}, {"pruned", pruned}};
  HF_TRY(const auto ids, record(context, transition, {std::move(event)}));
  std::uint64_t byte_count = 0;
  for (Json& entry : pruned) {
    HF_TRY(const std::uint64_t size, context.vault->remove(vault::Tier::amber, text_member(entry, "sha256")));
    entry["byte_count"] = size;
    byte_count += size;
  }
  for (const Json& marked : changed) HF_CHECK(context.records->put(kQuarantine, text_member(marked, "id"), marked));
  return Json{{"pruned", std::move(pruned)}, {"byte_count", byte_count}, {"kept", kept}, {"evidence", ids.front()}};
}

}  // namespace holdfast::engine
