#include "engine/listing.h"

#include <chrono>
#include <deque>
#include <thread>

#include "base/base64.h"
#include "base/json.h"
#include "engine/arguments.h"
#include "evidence/chain.h"
#include "guard/still_reading.h"
#include "lease/liveness.h"
#include "scope/resolve.h"

namespace holdfast::engine {
namespace {

Json lease_line(Context& context, const Tenancy& tenancy, const Instant& now, Epoch epoch) {
  const os::Liveness liveness = holder_liveness(context, tenancy);
  Json record = tenancy.to_json();
  record["os_lock"] = current_enforcement(context, tenancy, liveness).to_json();
  record["liveness"] = {{"holder", tenancy.holder.is_server ? Json(os::name_of(liveness)) : Json("not_needed")},
                        {"client", tenancy.client ? Json(os::name_of(client_liveness(tenancy))) : Json(nullptr)}};
  const std::int64_t left =
      tenancy.deadline.boot_id == now.boot_id ? (tenancy.deadline.boot_ms - now.boot_ms) / 1000 : 0;
  std::int64_t started = 0;
  if (parse_wall(tenancy.started_at, started)) record["age_seconds"] = (now.wall_us - started) / 1'000'000;
  record["remaining_seconds"] = std::max<std::int64_t>(left, 0);
  record["state"] = tenancy.control_epoch < epoch ? "revoked" : tenancy.expired_at(now) ? "expired" : "live";
  return record;
}

}  // namespace

Result<Json> scope_document(Context& context, const Json& json) {
  const Arguments arguments(json);
  HF_TRY(const std::string text, arguments.scope());
  HF_TRY(const std::string cwd, arguments.current_folder());
  HF_TRY(const Scope scope, resolve_scope(context.folder, text, cwd));
  return scope.to_json();
}

Result<Json> leases(Context& context) {
  HF_TRY(const auto tenancies, context.store->peek_tenancies());
  const auto epoch = context.store->peek_epoch();
  const Instant now = context.clock.now();
  Json lines = Json::array();
  for (const Tenancy& tenancy : tenancies) {
    lines.push_back(lease_line(context, tenancy, now, epoch.ok() ? epoch->epoch : Epoch{0}));
  }
  return Json{{"leases", std::move(lines)}};
}

namespace {

// Store and marker are two files: read while somebody advances, they disagree for a moment.
Result<Counters> settled_counters(Context& context) {
  for (int tries = 0;; ++tries) {
    auto counters = context.store->peek_counters();
    if (counters.ok() || tries == 5) return counters;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace

Result<Json> status(Context& context) {
  HF_TRY(const auto tenancies, context.store->peek_tenancies());
  // A chain of its own: the shared one's place belongs to whoever holds the transition.
  HF_TRY(const evidence::Marks marks, evidence::Chain(*context.files).marks());
  HF_TRY(const auto waiting, context.records->all(evidence::RecordKind::reconcile));
  HF_TRY(const auto kept, context.records->all(evidence::RecordKind::quarantine));
  const auto epoch = context.store->peek_epoch();
  const auto counters = settled_counters(context);
  const Instant now = context.clock.now();
  std::size_t live = 0;
  std::size_t enforced = 0;
  Json holders = Json::array();
  for (const Tenancy& tenancy : tenancies) {
    const os::Liveness liveness = holder_liveness(context, tenancy);
    if (!tenancy.expired_at(now)) ++live;
    if (current_enforcement(context, tenancy, liveness).enforced) ++enforced;
    Json holder = describe_holder(tenancy, now);
    holder["liveness"] = tenancy.holder.is_server ? os::name_of(liveness) : "not_needed";
    holders.push_back(std::move(holder));
  }
  std::size_t open = 0;
  for (const Json& found : waiting) open += text_member(found, "state") == "open" ? 1U : 0U;
  const Json anchor = context.config.value("anchor", Json());
  return Json{
      {"workspace_id", context.workspace_id()},
      {"file_system", {{"name", context.folder.file_system}, {"local", context.folder.local}}},
      {"authority", "local"},
      {"server", living_server(context.folder.squad, *context.files)},
      {"leases", {{"held", tenancies.size()}, {"live", live}, {"enforced", enforced}, {"holders", std::move(holders)}}},
      {"generations", counters.ok() ? Json{{"high_water", std::to_string(high_water_of(*counters))}, {"sound", true}}
                                    : Json{{"sound", false}, {"refusal", counters.refusal().to_json()["error"]}}},
      {"epoch", epoch.ok() ? Json{{"control_epoch", epoch->epoch.text()}, {"break_glass", epoch->break_glass}}
                           : Json{{"refusal", epoch.refusal().to_json()["error"]}}},
      {"evidence", {{"events", std::to_string(marks.seq)}, {"head", marks.head}}},
      {"waiting", {{"reconcile", open}, {"quarantine", kept.size()}}},
      {"anchor", anchor.is_null() ? Json("none: a rollback of the whole snapshot is not detected") : anchor}};
}

Result<Json> quarantine_list(Context& context) {
  HF_TRY(auto records, context.records->all(evidence::RecordKind::quarantine));
  for (Json& record : records) record.erase("files");  // of a folder thousands; `quarantine show` has them
  return Json{{"quarantine", std::move(records)}};
}

Result<Json> quarantine_show(Context& context, const Json& arguments) {
  HF_TRY(const std::string id, Arguments(arguments).text("id"));
  return context.records->get(evidence::RecordKind::quarantine, id);
}

Result<Json> evidence_log(Context& context, const Json& json) {
  const Arguments arguments(json);
  HF_TRY(const auto limit, arguments.number("limit"));
  std::string wanted;
  if (arguments.has("scope") || arguments.has("scope_base64")) {
    HF_TRY(const std::string text, arguments.scope());
    HF_TRY(const std::string cwd, arguments.current_folder());
    HF_TRY(const Scope scope, name_scope(context.folder, text, cwd));
    wanted = scope.full();
  }
  std::deque<Json> last;
  HF_CHECK(context.chain->each([&](const Json& event) {
    if (!wanted.empty() && text_member(event, "scope") != wanted) return true;
    last.push_back(event);
    if (limit && last.size() > *limit) last.pop_front();
    return true;
  }));
  return Json{{"events", Json(std::vector<Json>(last.begin(), last.end()))}};
}

Result<Json> evidence_head(Context& context) {
  evidence::Chain chain(*context.files);
  HF_TRY(const evidence::Marks marks, chain.marks());
  return Json{{"events", std::to_string(marks.seq)}, {"head", marks.head}};
}

Result<Json> evidence_show(Context& context, const Json& arguments) {
  HF_TRY(const std::string id, Arguments(arguments).text("id"));
  return context.chain->show(id);
}

Result<Json> evidence_verify(Context& context) {
  HF_TRY(const Held held, context.mutex->acquire());  // no event is half appended while it reads
  HF_TRY(const evidence::Verification verification, context.chain->verify());
  if (!verification.first_break) return verification.to_json();
  const evidence::Break& where = *verification.first_break;
  return Refusal(Code::evidence_chain_broken,
                 "evidence_chain_broken: " + where.segment + " line " + std::to_string(where.line) + ", event " +
                     std::to_string(where.seq) + ": " + where.reason,
                 verification.to_json());
}

Result<Engine::Bytes> read_bytes(Context& context, const Json& json) {
  const Arguments arguments(json);
  HF_TRY(const std::string text, arguments.scope());
  HF_TRY(const std::string cwd, arguments.current_folder());
  HF_TRY(const Scope scope, resolve_scope(context.folder, text, cwd));
  if (!scope.is_file()) {
    return Refusal(Code::not_a_regular_file, "not_a_regular_file: " + scope.display(), Json{{"scope", scope.full()}});
  }
  Engine::Bytes bytes;
  HF_TRY(bytes.object, guard::open_for_still_reading([&]() -> Result<os::Handle> {
           HF_TRY(PinnedPlace place, pin_place(context.folder, scope, true));
           const Json details = {{"scope", scope.full()}};
           if (!place.facts) return Refusal(Code::file_absent, "file_absent: " + scope.display(), details);
           if (place.facts->kind != os::Kind::regular) {
             return Refusal(Code::not_a_regular_file, "not_a_regular_file: " + scope.display(), details);
           }
           if (!place.object) return Refusal(Code::file_unreadable, "file_unreadable: " + scope.display(), details);
           return std::move(*place.object);
         }));
  HF_TRY(const os::Facts facts, os::facts_of_open(bytes.object));
  HF_TRY(const ContentDigest digest, os::sha256_of_open(bytes.object));
  bytes.document = {{"scope", scope.display()},
                    {"sha256", digest.sha256},
                    {"byte_count", digest.byte_count},
                    {"identity", facts.identity.to_json()}};
  return bytes;
}

Result<Engine::Bytes> quarantine_bytes(Context& context, const Json& arguments) {
  HF_TRY(const std::string id, Arguments(arguments).text("id"));
  HF_TRY(const Json record, context.records->get(evidence::RecordKind::quarantine, id));
  Engine::Bytes bytes;
  HF_TRY(bytes.object, context.vault->open_verified(vault::Tier::amber, text_member(record, "sha256")));
  bytes.document = record;
  return bytes;
}

}  // namespace holdfast::engine
