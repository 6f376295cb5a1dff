#include "engine/observing.h"

#include "base/json.h"
#include "engine/faults.h"

namespace holdfast::engine {
namespace {

constexpr std::size_t kObservedMax = 20;

// A divert is the guard's ordinary work; everything else that somebody did past it is said by the next write,
// heartbeat and release.
bool marks_the_lease(const std::string& what) {
  return what != "write_diverted" && !what.starts_with("diverted_bytes_");
}

// A `hold`'s program that writes in place is kept out like everybody else; it is told, because it believes otherwise.
bool is_own_divert(const Tenancy& tenancy, const guard::Observation& seen) {
  if (seen.what != "write_diverted" || !tenancy.command || !seen.who.is_object()) return false;
  const auto group = exact_u64(seen.who.value("process_group", Json())).value_or(0);
  return group != 0 && group == static_cast<std::uint64_t>(tenancy.command->pid);
}

// Diverted or displaced foreign bytes: into Amber, with a quarantine record. Nothing is recorded of an empty orphan.
Result<Json> keep_bytes(Context& context, const guard::Observation& seen, const Tenancy* tenancy) {
  HF_TRY(const ContentDigest digest, context.vault->store(vault::Tier::amber, *seen.bytes));
  const std::string id = evidence::Records::new_id(evidence::RecordKind::quarantine);
  Json record = {{"id", id},
                 {"at", format_wall(seen.wall_us)},
                 {"kind", seen.what == "diverted_bytes_captured" ? "diverted_write" : "displaced_foreign"},
                 {"scope", seen.scope},
                 {"path", seen.scope.starts_with("file://") ? seen.scope.substr(7) : seen.scope},
                 {"sha256", digest.sha256},
                 {"fnv1a", digest.fnv1a},
                 {"byte_count", digest.byte_count},
                 {"generation", tenancy != nullptr ? Json(tenancy->generation.text()) : Json(nullptr)},
                 {"owner", tenancy != nullptr ? Json(tenancy->owner) : Json(nullptr)},
                 {"who", seen.who},
                 {"reconciled", false}};
  HF_CHECK(context.records->put(evidence::RecordKind::quarantine, id, record));
  return Json{{"quarantine_id", id}, {"sha256", digest.sha256}, {"byte_count", digest.byte_count}};
}

// The tenancy that the observing guard stands for: not that of a successor, whose guard is another one.
const Tenancy* tenancy_of(Context& context, const Transition& transition, const guard::Observation& seen) {
  const auto held = transition.state.held.find(seen.scope);
  if (held == transition.state.held.end()) return nullptr;
  const auto guard = context.guard_table.find(held->second);
  return guard && guard->id() != seen.guard ? nullptr : &held->second;
}

// Bytes of an orphan that came after the end are the ended tenancy's, as far as that is still known.
std::optional<Tenancy> ended_tenancy_of(Context& context, const guard::Observation& seen) {
  const auto scope = parse_canonical_scope(seen.scope);
  if (!scope.ok()) return std::nullopt;
  const auto last = context.store->last_ended(*scope);
  if (!last.ok() || !*last) return std::nullopt;
  return (*last)->tenancy;
}

// `later` takes those whose bytes cannot be kept now.
Result<void> record_all(Context& context, Transition& transition, const std::vector<guard::Observation>& observations,
                        std::vector<guard::Observation>& later) {
  authority::Batch batch;
  std::map<std::string, Tenancy> marked;
  for (const guard::Observation& seen : observations) {
    const Tenancy* tenancy = tenancy_of(context, transition, seen);
    const std::optional<Tenancy> earlier = tenancy == nullptr ? ended_tenancy_of(context, seen) : std::nullopt;
    evidence::Event event;
    event.kind = seen.what;
    event.id = evidence::new_event_id();
    event.scope = seen.scope;
    event.facts = seen.facts;
    event.facts["who"] = seen.who;
    event.facts["seen_at"] = format_wall(seen.wall_us);
    if (!seen.fault.empty()) event.facts["fault"] = seen.fault;
    const Tenancy* whose = tenancy != nullptr ? tenancy : earlier ? &*earlier : nullptr;
    if (whose != nullptr && !whose->event.empty()) event.parents.push_back(whose->event);
    if (seen.bytes) {
      auto kept = keep_bytes(context, seen, whose);
      if (!kept.ok() && kept.refusal().code() != Code::file_unreadable) {
        later.push_back(seen);
        continue;
      }
      event.facts["kept"] = kept.ok() ? *kept : kept.refusal().to_json();
    }
    if (tenancy != nullptr && !seen.fault.empty()) {
      HF_CHECK(record_noticed_fault(context, transition, *tenancy, seen, event.id));
    }
    batch.events.push_back(std::move(event));
    if (tenancy == nullptr) continue;
    Tenancy& mark = marked.emplace(seen.scope, *tenancy).first->second;
    if (is_own_divert(*tenancy, seen)) {
      mark.observed.push_back({{"what", "own_write_diverted"}, {"at", format_wall(seen.wall_us)}, {"who", seen.who}});
    }
    if (marks_the_lease(seen.what) && mark.observed.size() < kObservedMax) {
      mark.observed.push_back({{"what", seen.what}, {"at", format_wall(seen.wall_us)}, {"who", seen.who}});
    }
  }
  // What the living guards say now is what the records say: a fault outlives the server that saw it.
  for (auto& [scope, tenancy] : marked) {
    const auto guard = context.guard_table.find(tenancy);
    if (!guard) continue;
    const guard::Enforcement now = guard->enforcement();
    const os::Identity identity = guard->identity();
    const Json& before = transition.state.held.at(scope).observed;
    if (now.to_json() == tenancy.os_lock && identity == tenancy.identity && before == tenancy.observed) continue;
    tenancy.os_lock = now.to_json();
    if (identity.known()) tenancy.identity = identity;
    batch.updates.push_back(tenancy);
  }
  if (batch.events.empty() && batch.updates.empty()) return {};
  return context.store->commit(transition.held, transition.state, std::move(batch), transition.now);
}

}  // namespace

Result<void> record_observations(Context& context, Transition& transition) {
  if (!context.guards) return {};
  return record_observations(context, transition, context.guards->wait_for_observations(0));
}

Result<void> record_observations(Context& context, Transition& transition,
                                 std::vector<guard::Observation> observations) {
  std::vector<guard::Observation> all = context.unrecorded.take();
  all.insert(all.end(), std::make_move_iterator(observations.begin()), std::make_move_iterator(observations.end()));
  std::vector<guard::Observation> later;
  auto recorded = record_all(context, transition, all, later);
  context.unrecorded.put_back(recorded.ok() ? std::move(later) : std::move(all));
  return recorded;
}

}  // namespace holdfast::engine
