#include "authority/local/local_store.h"

#include <algorithm>

#include "base/fault_point.h"
#include "base/json.h"

namespace holdfast::authority {
namespace {

constexpr const char* kRecords = "locks/write";
constexpr const char* kBatch = "batch.json";

std::string resource_path(const Scope& scope) { return "resources/" + scope.digest() + ".json"; }

Refusal unreadable(const std::string& path, const std::string& why) {
  return Refusal(Code::state_unreadable, "state_unreadable: " + path + ": " + why, Json{{"path", path}});
}

Result<Json> document_at(const std::string& path, const std::string& text) {
  JsonProblem problem;
  if (auto document = parse_json(text, &problem)) return std::move(*document);
  return unreadable(path, problem.text);
}

}  // namespace

Result<std::map<std::string, Tenancy>> LocalStore::read_tenancies() {
  std::map<std::string, Tenancy> held;
  HF_TRY(const auto names, files_.list(kRecords));
  for (const std::string& name : names) {
    if (!name.ends_with(".json")) continue;
    const std::string path = std::string(kRecords) + "/" + name;
    HF_TRY(const auto bytes, files_.read(path));
    if (!bytes) continue;  // ended while we listed
    auto tenancy = tenancy_at(path, *bytes);
    if (!tenancy.ok()) return std::move(tenancy).refusal();
    const std::string key = tenancy->scope.routing_key();
    if (name != key + ".json" && name != key + "." + tenancy->scope.digest().substr(0, 16) + ".json") {
      return unreadable(path, "the record of " + tenancy->scope.full() + " under another's name");
    }
    const std::string full = tenancy->scope.full();
    if (!held.emplace(full, std::move(*tenancy)).second) return unreadable(path, "a second record of one scope");
  }
  return held;
}

Result<Tenancy> LocalStore::tenancy_at(const std::string& path, const std::string& bytes) {
  return tenancies_.of(path, bytes, [&path](const std::string& text) -> Result<Tenancy> {
    HF_TRY(const Json document, document_at(path, text));
    auto tenancy = tenancy_from_json(document);
    if (!tenancy.ok()) return unreadable(path, tenancy.refusal().message());
    return tenancy;
  });
}

// The first scope of a routing key bears KEY.json; a second one, while the first stands, a name of its own.
Result<std::string> LocalStore::record_path(const Scope& scope, bool for_new) {
  const std::string plain = std::string(kRecords) + "/" + scope.routing_key() + ".json";
  const std::string own =
      std::string(kRecords) + "/" + scope.routing_key() + "." + scope.digest().substr(0, 16) + ".json";
  HF_TRY(const auto bytes, files_.read(plain));
  if (bytes) {
    HF_TRY(const Tenancy tenancy, tenancy_at(plain, *bytes));
    return tenancy.scope == scope ? plain : own;
  }
  if (!for_new) {
    HF_TRY(const auto size, files_.size(own));
    if (size) return own;
  }
  return plain;
}

Result<Loaded> LocalStore::load(const os::TransitionMutex::Held& held, Need need, const Instant& now) {
  HF_CHECK(replay_batch(held));
  Loaded state;
  HF_TRY(state.held, read_tenancies());
  HF_TRY(const evidence::Marks marks, chain_.marks());
  Generation generation_floor = marks.high_water;
  Epoch epoch_floor = marks.control_epoch;
  for (const auto& [scope, tenancy] : state.held) {
    generation_floor = std::max(generation_floor, tenancy.generation);
    epoch_floor = std::max(epoch_floor, tenancy.control_epoch);
  }
  HF_TRY(state.epoch, read_epoch(epoch_floor));
  if (need == Need::generations) {
    HF_TRY(const Generation marked, highest_receiver_mark());
    generation_floor = std::max(generation_floor, marked);
    HF_TRY(auto examined, generations_.examine(generation_floor));
    if (examined.completed_phase_two) {
      evidence::Event event;
      event.kind = "generation_phase_two_completed";
      event.generation = Generation{high_water_of(examined.counters)};
      event.facts = {{"high_water", std::to_string(high_water_of(examined.counters))}};
      HF_TRY(const auto ids, chain_.append({std::move(event)}, now));
    }
    HF_CHECK(check_anchor(examined.counters));
    if (examined.completed_phase_two) { HF_TRY(examined, generations_.open(held, generation_floor)); }
    state.counters = std::move(examined.counters);
  }
  HF_CHECK(finish_ends(state, now));
  return state;
}

// A record whose generation already stands in resources/ belongs to a tenancy that ended just before a crash. Its event
// is appended first: the record is what makes the next load() come back to it. One that is older than what stands there
// was restored or put back: nobody holds by it.
Result<void> LocalStore::finish_ends(Loaded& state, const Instant& now) {
  for (auto entry = state.held.begin(); entry != state.held.end();) {
    HF_TRY(const auto last, last_ended(entry->second.scope));
    if (!last || last->tenancy.generation < entry->second.generation) {
      ++entry;
      continue;
    }
    if (entry->second.generation < last->tenancy.generation) {
      HF_CHECK(record_old_one(entry->second, *last, now));
      HF_TRY(const std::string old, record_path(entry->second.scope, false));
      HF_CHECK(remove_record(old));
      entry = state.held.erase(entry);
      continue;
    }
    HF_TRY(const bool known, chain_.contains(last->event));
    if (!known) {
      evidence::Event event;
      event.kind = "tenancy_ended";
      event.id = last->event;
      event.scope = last->tenancy.scope.full();
      event.generation = last->tenancy.generation;
      event.facts = {{"ended_by", last->ended_by},
                     {"generation", last->tenancy.generation.text()},
                     {"recorded_after_a_crash", true},
                     {"content_check", last->content_check}};
      HF_TRY(const auto ids, chain_.append({std::move(event)}, now));
    }
    HF_TRY(const std::string path, record_path(entry->second.scope, false));
    HF_CHECK(remove_record(path));
    entry = state.held.erase(entry);
  }
  return {};
}

Result<void> LocalStore::record_old_one(const Tenancy& old, const EndedTenancy& last, const Instant& now) {
  evidence::Event event;
  event.kind = "old_tenancy_record_removed";
  event.scope = old.scope.full();
  event.generation = last.tenancy.generation;
  event.facts = {{"generation", old.generation.text()},
                 {"owner", old.owner},
                 {"task", old.task_id},
                 {"last_ended", last.tenancy.generation.text()}};
  HF_CHECK(chain_.append({std::move(event)}, now));
  return {};
}

Result<std::vector<LocalStore::Change>> LocalStore::changes_of(const Batch& batch) {
  std::vector<Change> changes;
  for (const EndedTenancy& ended : batch.ends) {
    changes.push_back({resource_path(ended.tenancy.scope), dump_pretty(ended.to_json())});
  }
  std::vector<std::string> taken;
  for (const Tenancy& tenancy : batch.grants) {
    HF_TRY(std::string path, record_path(tenancy.scope, true));
    if (std::find(taken.begin(), taken.end(), path) != taken.end()) {
      path = std::string(kRecords) + "/" + tenancy.scope.routing_key() + "." + tenancy.scope.digest().substr(0, 16) +
             ".json";
    }
    taken.push_back(path);
    changes.push_back({path, dump_pretty(tenancy.to_json())});
  }
  for (const Tenancy& tenancy : batch.updates) {
    HF_TRY(const std::string path, record_path(tenancy.scope, false));
    changes.push_back({path, dump_pretty(tenancy.to_json())});
  }
  for (const EndedTenancy& ended : batch.ends) {
    const bool succeeded = std::any_of(batch.grants.begin(), batch.grants.end(),
                                       [&](const Tenancy& next) { return next.scope == ended.tenancy.scope; });
    if (succeeded) continue;  // the successor's record has taken its place
    HF_TRY(const std::string path, record_path(ended.tenancy.scope, false));
    changes.push_back({path, std::nullopt});
  }
  if (batch.epoch) changes.push_back({"control/epoch.json", dump_pretty(batch.epoch->to_json())});
  return changes;
}

// Not flushed: a record that a power cut brings back names a tenancy that resources/ knows as ended, and the next
// load() takes it away again. Whoever publishes in the folder next makes it durable.
Result<void> LocalStore::remove_record(const std::string& path) {
  tenancies_.forget(path);
  return files_.remove(path, os::NameFlush::later);
}

Result<void> LocalStore::apply(const std::vector<Change>& changes) {
  for (const Change& change : changes) {
    if (change.bytes) {
      HF_CHECK(files_.publish(change.path, *change.bytes));
    } else {
      HF_CHECK(remove_record(change.path));
    }
    HF_FAULT_POINT("store_after_change");
  }
  return {};
}

Result<void> LocalStore::publish_staged(const std::string& path) {
  HF_CHECK(files_.rename(os::staging_path(path), path));
  HF_FAULT_POINT("store_after_change");
  return {};
}

Result<void> LocalStore::commit(const os::TransitionMutex::Held& held, Loaded& state, Batch batch, const Instant& now) {
  if (!batch.grants.empty()) {
    std::vector<std::pair<std::string, Generation>> issued;
    for (const Tenancy& tenancy : batch.grants) issued.emplace_back(tenancy.scope.routing_key(), tenancy.generation);
    HF_CHECK(generations_.advance(held, state.counters, issued));
    if (anchor_) HF_CHECK(anchor_->raise(Generation{high_water_of(state.counters)}));
  }
  HF_FAULT_POINT("store_after_generations");
  std::vector<evidence::Event> events = std::move(batch.events);
  for (evidence::Event& event : events) {
    if (event.id.empty()) event.id = evidence::new_event_id();
  }
  HF_TRY(const std::vector<Change> changes, changes_of(batch));
  const std::size_t tenancies = batch.grants.size() + batch.updates.size() + batch.ends.size();
  // An epoch goes through the redo record too: its event and its file have to stand or fall together.
  const bool several = tenancies > 1 || batch.epoch.has_value();
  if (several) {
    Json redo = {{"protocol", "holdfast.batch.1"}, {"changes", Json::array()}, {"events", Json::array()}};
    for (const Change& change : changes) {
      redo["changes"].push_back({{"path", change.path}, {"bytes", change.bytes ? Json(*change.bytes) : Json(nullptr)}});
    }
    for (const evidence::Event& event : events) {
      redo["events"].push_back({{"id", event.id},
                                {"kind", event.kind},
                                {"scope", event.scope},
                                {"parents", event.parents},
                                {"facts", event.facts},
                                {"generation", event.generation.text()},
                                {"epoch", event.epoch.text()}});
    }
    redo["wall_us"] = std::to_string(now.wall_us);
    HF_CHECK(files_.publish(kBatch, dump_pretty(redo)));
    HF_FAULT_POINT("store_after_batch");
  }
  // A grant is announced before its record stands (a crash between leaves an announced grant that nobody has); an end
  // is announced after resources/ names it (finish_ends completes that).
  const bool single_end = !several && batch.ends.size() == 1;
  if (single_end) {
    HF_CHECK(apply({changes.front()}));
    HF_FAULT_POINT("store_after_resource");
  }
  // The bytes of a single record are flushed beside the event; its name follows only when the event is durable.
  std::vector<os::Staged> beside = std::move(batch.beside);
  const bool staged = !several && !single_end && changes.size() == 1 && changes.front().bytes;
  if (staged) beside.push_back({os::staging_path(changes.front().path), *changes.front().bytes});
  if (!events.empty() || !beside.empty()) {
    if (auto appended = chain_.append(events, now, beside); !appended.ok()) {
      // Nothing of a single change stands yet, but for an end, which load() completes; a batch is replayed.
      if (several && appended.refusal().code() == Code::state_persist_failed) (void)files_.remove(kBatch);
      return std::move(appended).refusal();
    }
  }
  HF_FAULT_POINT("store_after_events");
  auto applied = staged       ? publish_staged(changes.front().path)
                 : single_end ? apply({changes.begin() + 1, changes.end()})
                              : apply(changes);
  if (applied.ok() && several) applied = files_.remove(kBatch);
  // The redo record or the resource stands: the next load makes the rest of it true.
  if (!applied.ok())
    return std::move(applied).refusal().with_effect(several || single_end ? Effect::applied : Effect::unknown);
  for (const EndedTenancy& ended : batch.ends) state.held.erase(ended.tenancy.scope.full());
  for (const Tenancy& tenancy : batch.grants) state.held[tenancy.scope.full()] = tenancy;
  for (const Tenancy& tenancy : batch.updates) state.held[tenancy.scope.full()] = tenancy;
  if (batch.epoch) state.epoch = *batch.epoch;
  return {};
}

Result<void> LocalStore::replay_batch(const os::TransitionMutex::Held&) {
  HF_TRY(const auto bytes, files_.read(kBatch));
  if (!bytes) return {};
  HF_TRY(const Json redo, document_at(kBatch, *bytes));
  if (text_member(redo, "protocol") != "holdfast.batch.1" || !redo.value("changes", Json()).is_array() ||
      !redo.value("events", Json()).is_array()) {
    return unreadable(kBatch, "not a redo record");
  }
  std::vector<Change> changes;
  for (const Json& change : redo["changes"]) {
    if (!change.is_object()) return unreadable(kBatch, "a change that is none");
    const std::string path = text_member(change, "path");
    const bool expected =
        path.starts_with("locks/write/") || path.starts_with("resources/") || path == "control/epoch.json";
    if (!expected || path.find("..") != std::string::npos) return unreadable(kBatch, "a path that no commit writes");
    const Json text = change.value("bytes", Json());
    changes.push_back({path, text.is_string() ? std::optional(text.get<std::string>()) : std::nullopt});
  }
  std::vector<evidence::Event> events;
  for (const Json& stored : redo["events"]) {
    const Json parents = stored.is_object() ? stored.value("parents", Json()) : Json();
    const bool texts = parents.is_array() && std::all_of(parents.begin(), parents.end(),
                                                         [](const Json& parent) { return parent.is_string(); });
    if (!texts || !stored.value("facts", Json()).is_object()) return unreadable(kBatch, "an event that is none");
    evidence::Event event;
    event.id = text_member(stored, "id");
    event.kind = text_member(stored, "kind");
    event.scope = text_member(stored, "scope");
    event.parents = stored.value("parents", std::vector<std::string>());
    event.facts = stored.value("facts", Json::object());
    event.generation = Generation{exact_u64(stored.value("generation", Json())).value_or(0)};
    event.epoch = Epoch{exact_u64(stored.value("epoch", Json())).value_or(0)};
    HF_TRY(const bool known, chain_.contains(event.id));
    if (!known) events.push_back(std::move(event));
  }
  Instant then;
  then.wall_us = std::strtoll(text_member(redo, "wall_us").c_str(), nullptr, 10);
  if (!events.empty()) {
    if (auto appended = chain_.append(std::move(events), then); !appended.ok()) return std::move(appended).refusal();
  }
  HF_CHECK(apply(changes));
  return files_.remove(kBatch);
}

Result<std::optional<EndedTenancy>> LocalStore::last_ended(const Scope& scope) {
  const std::string path = resource_path(scope);
  HF_TRY(const auto bytes, files_.read(path));
  if (!bytes) return std::optional<EndedTenancy>();
  auto ended = ended_.of(path, *bytes, [&path](const std::string& text) -> Result<EndedTenancy> {
    HF_TRY(const Json document, document_at(path, text));
    auto parsed = ended_from_json(document);
    if (!parsed.ok()) return unreadable(path, parsed.refusal().message());
    return parsed;
  });
  if (!ended.ok()) return std::move(ended).refusal();
  if (ended->tenancy.scope != scope) return unreadable(path, "the tenancy of another scope");
  return std::optional(std::move(*ended));
}

Result<std::vector<Tenancy>> LocalStore::peek_tenancies() {
  HF_TRY(auto held, read_tenancies());
  std::vector<Tenancy> tenancies;
  for (auto& [scope, tenancy] : held) {
    HF_TRY(const auto last, last_ended(tenancy.scope));
    if (last && last->tenancy.generation == tenancy.generation) continue;
    tenancies.push_back(std::move(tenancy));
  }
  return tenancies;
}

Result<Counters> LocalStore::peek_counters() {
  HF_TRY(const auto held, read_tenancies());
  // A chain of its own: the shared one's place belongs to whoever holds the transition.
  HF_TRY(const evidence::Marks marks, evidence::Chain(files_).marks());
  Generation floor = marks.high_water;
  for (const auto& [scope, tenancy] : held) floor = std::max(floor, tenancy.generation);
  HF_TRY(const Generation marked, highest_receiver_mark());
  floor = std::max(floor, marked);
  HF_TRY(auto opened, generations_.examine(floor));
  HF_CHECK(check_anchor(opened.counters));
  return std::move(opened.counters);
}

// The workspace's copies of its receivers' marks: a store below one of them was rolled back.
Result<Generation> LocalStore::highest_receiver_mark() {
  HF_TRY(const auto names, files_.list("receivers"));
  Generation highest;
  for (const std::string& name : names) {
    if (!name.ends_with(".json")) continue;
    const std::string path = "receivers/" + name;
    HF_TRY(const auto bytes, files_.read(path));
    if (!bytes) continue;
    const auto document = parse_json(*bytes);
    const Json marks = document && document->is_object() ? document->value("marks", Json()) : Json();
    if (!marks.is_object()) {
      return Refusal(Code::state_unreadable, "state_unreadable: " + path + " is no receiver", Json{{"path", path}});
    }
    for (const auto& [resource, mark] : marks.items()) {
      highest = std::max(highest, Generation{exact_u64(mark).value_or(0)});
    }
  }
  return highest;
}

Result<void> LocalStore::check_anchor(const Counters& counters) {
  if (!anchor_) return {};
  HF_TRY(const Generation anchored, anchor_->read());
  if (high_water_of(counters) >= anchored.value) return {};
  return Refusal(Code::generation_anchor_rollback,
                 "generation_anchor_rollback: the high water is " + std::to_string(high_water_of(counters)) +
                     ", the anchor knows " + anchored.text() + ": a snapshot was restored",
                 Json{{"high_water", std::to_string(high_water_of(counters))}, {"anchored", anchored.text()}});
}

}  // namespace holdfast::authority
