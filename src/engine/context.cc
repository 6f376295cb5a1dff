#include "engine/context.h"

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "lease/liveness.h"
#include "scope/resolve.h"

namespace holdfast::engine {

void GuardTable::put(const std::string& scope, Generation generation, std::shared_ptr<guard::Guard> guard) {
  const std::scoped_lock lock(mutex_);
  entries_[scope] = Entry{generation, std::move(guard)};
}

std::shared_ptr<guard::Guard> GuardTable::find(const Tenancy& tenancy) const {
  const std::scoped_lock lock(mutex_);
  const auto found = entries_.find(tenancy.scope.full());
  if (found == entries_.end() || found->second.generation != tenancy.generation) return nullptr;
  return found->second.guard;
}

void GuardTable::drop(const std::string& scope, Generation generation) {
  std::shared_ptr<guard::Guard> last;  // destroyed outside the lock: it waits for the guard's own break handling
  const std::scoped_lock lock(mutex_);
  const auto found = entries_.find(scope);
  if (found == entries_.end() || found->second.generation != generation) return;
  last = std::move(found->second.guard);
  entries_.erase(found);
}

void GuardTable::clear() {
  std::map<std::string, Entry> last;
  {
    const std::scoped_lock lock(mutex_);
    last.swap(entries_);
  }
}

std::map<std::string, GuardTable::Entry> GuardTable::all() const {
  const std::scoped_lock lock(mutex_);
  return entries_;
}

std::vector<std::shared_ptr<void>> ScopeTurns::take(std::vector<std::string> scopes) {
  std::sort(scopes.begin(), scopes.end());  // one order for everybody: no two requests wait for each other
  std::vector<std::shared_ptr<void>> taken;
  for (const std::string& scope : scopes) {
    std::shared_ptr<std::mutex> turn;
    {
      const std::scoped_lock lock(mutex_);
      std::erase_if(turns_, [](const auto& known) { return known.second.expired(); });
      turn = turns_[scope].lock();
      if (!turn) {
        turn = std::make_shared<std::mutex>();
        turns_[scope] = turn;
      }
    }
    turn->lock();
    taken.emplace_back(nullptr, [turn](void*) { turn->unlock(); });
  }
  return taken;
}

std::vector<guard::Observation> Unrecorded::take() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(waiting_, {});
}

void Unrecorded::put_back(std::vector<guard::Observation> observations) {
  static constexpr std::size_t kKeptMax = 1000;
  const std::scoped_lock lock(mutex_);
  std::move(waiting_.begin(), waiting_.end(), std::back_inserter(observations));
  // Faults and bytes are never given up; of the rest the oldest are counted in the next one.
  std::size_t surplus = observations.size() > kKeptMax ? observations.size() - kKeptMax : 0;
  std::erase_if(observations, [&](const guard::Observation& seen) {
    const bool dropped = surplus > 0 && seen.fault.empty() && !seen.bytes;
    if (dropped) --surplus, ++not_kept_;
    return dropped;
  });
  if (not_kept_ > 0 && !observations.empty()) observations.front().facts["not_kept"] = not_kept_;
  waiting_ = std::move(observations);
  tried_ = std::chrono::steady_clock::now();
}

bool Unrecorded::are_due() const {
  static constexpr std::chrono::seconds kPause{2};
  const std::scoped_lock lock(mutex_);
  return !waiting_.empty() && std::chrono::steady_clock::now() - tried_ >= kPause;
}

std::string Context::workspace_id() const { return text_member(config, "workspace_id"); }

bool Context::asked_before(const Json& conflict, const Json& arguments) {
  static constexpr std::size_t kRemembered = 4096;
  std::string key = text_member(conflict, "scope") + "\n" + text_member(arguments, "owner");
  for (const Json& holder : conflict.value("holders", Json::array())) key += "\n" + text_member(holder, "generation");
  const std::scoped_lock lock(conflicts_mutex_);
  if (conflicts_.size() >= kRemembered) conflicts_.clear();
  return !conflicts_.insert(std::move(key)).second;
}

Result<Transition> begin_transition(Context& context, authority::Need need) {
  HF_TRY(Held held, context.mutex->acquire());
  const Instant now = context.clock.now();
  HF_TRY(authority::Loaded state, context.store->load(held, need, now));
  return Transition{std::move(held), std::move(state), now, {}};
}

Result<std::vector<std::string>> record(Context& context, Transition& transition, std::vector<evidence::Event> events) {
  for (evidence::Event& event : events) {
    if (event.id.empty()) event.id = evidence::new_event_id();
  }
  std::vector<std::string> ids;
  for (const evidence::Event& event : events) ids.push_back(event.id);
  authority::Batch batch;
  batch.events = std::move(events);
  HF_CHECK(context.store->commit(transition.held, transition.state, std::move(batch), transition.now));
  return ids;
}

os::Liveness holder_liveness(Context& context, const Tenancy& tenancy) {
  if (!tenancy.holder.is_server) return os::Liveness::unknown;
  if (context.is_server() && tenancy.holder.session == context.self.session) return os::Liveness::alive;
  return server_liveness(context.folder.squad, *context.files, tenancy.holder.process, tenancy.holder.session);
}

os::Liveness client_liveness(const Tenancy& tenancy) {
  if (!tenancy.client) return os::Liveness::unknown;
  const os::Liveness client = os::liveness_of(*tenancy.client);
  if (!tenancy.command || client == os::Liveness::alive) return client;
  const os::Liveness command = os::liveness_of(*tenancy.command);
  return command == os::Liveness::alive || client == os::Liveness::dead ? command : client;
}

guard::Enforcement current_enforcement(Context& context, const Tenancy& tenancy, os::Liveness liveness) {
  guard::Enforcement recorded = guard::Enforcement::from_json(tenancy.os_lock);
  if (const auto guard = context.guard_table.find(tenancy)) return guard->enforcement();
  if (!tenancy.holder.is_server) return recorded;
  if (liveness == os::Liveness::alive && !context.is_server()) return recorded;
  guard::Enforcement gone = guard::Enforcement::none(recorded.enforced ? "its_server_is_gone" : recorded.reason);
  gone.fault = recorded.fault;
  return gone;
}

Result<Scope> scope_of_lease(Context& context, const authority::Loaded& state, const std::string& text,
                             const std::string& current_folder) {
  auto named = name_scope(context.folder, text, current_folder);
  if (named.ok() && (!named->is_file() || state.find(*named) != nullptr)) return named;
  auto resolved = resolve_scope(context.folder, text, current_folder);
  if (resolved.ok() && state.find(*resolved) != nullptr) return resolved;
  if (named.ok()) {
    HF_TRY(const auto last, context.store->last_ended(*named));
    if (last) return named;
  }
  return resolved;
}

Result<void> walk_again(Context& context, const Scope& scope) {
  if (!scope.is_file()) return {};
  auto place = pin_place(context.folder, scope, true);
  if (!place.ok()) return std::move(place).refusal();
  return {};
}

Result<std::optional<Json>> waiting_reconciliation(Context& context, const Scope& scope) {
  HF_TRY(const auto records, context.records->open_on(scope.full()));
  for (const Json& found : records) {
    if (found.value("unreadable", Json()) == Json(true)) {
      return Refusal(Code::state_unreadable,
                     "state_unreadable: a reconciliation record cannot be read, so nothing says that it is not about " +
                         scope.display() + ": " + text_member(found, "reason"),
                     Json{{"scope", scope.full()}, {"record", found}});
    }
    return std::optional<Json>(found);
  }
  return std::optional<Json>();
}

}  // namespace holdfast::engine
