#include "lease/generation/generation_store.h"

#include <algorithm>
#include <optional>

#include "base/digest.h"
#include "base/fault_point.h"
#include "base/json.h"

namespace holdfast {
namespace {

constexpr const char* kStore = "generations.json";
constexpr const char* kStaged = "generations.json.next";
constexpr const char* kMarker = ".generations-initialized";
constexpr std::string_view kProtocol = "room.generation.v2";

Refusal malformed(const std::string& file, const std::string& why) {
  return Refusal(Code::generation_counters_malformed, "generation_counters_malformed: " + file + ": " + why,
                 Json{{"path", file}});
}

Refusal mismatch(const std::string& why, Json details = Json::object()) {
  return Refusal(Code::generation_checkpoint_mismatch, "generation_checkpoint_mismatch: " + why, std::move(details));
}

Result<Counters> counters_of(const std::string& file, const Json& value) {
  if (!value.is_object()) return malformed(file, "the counters are no object");
  Counters counters;
  for (const auto& [key, counter] : value.items()) {
    if (key.size() != 16 || key.find_first_not_of("0123456789abcdef") != std::string::npos) {
      return malformed(file, "a key that is not 16 lowercase hex digits");
    }
    if (!counter.is_number_unsigned()) return malformed(file, "a counter that is no unsigned 64-bit integer");
    counters[key] = counter.get<std::uint64_t>();
  }
  return counters;
}

Result<Json> document_of(const std::string& file, const std::string& text, std::size_t members) {
  JsonProblem problem;
  const auto document = parse_json(text, &problem);
  if (!document || !document->is_object()) return malformed(file, document ? "no object" : problem.text);
  const auto protocol = document->find("protocol");
  if (protocol == document->end() || !protocol->is_string()) return malformed(file, "no protocol");
  if (*protocol != Json(kProtocol)) {
    return Refusal(Code::generation_protocol_unknown,
                   "generation_protocol_unknown: " + file + " says " + printable(protocol->get<std::string>()),
                   Json{{"path", file}});
  }
  if (document->size() != members) return malformed(file, "members that the protocol does not have");
  return *document;
}

Result<Counters> parse_store(const std::string& file, const std::string& text) {
  HF_TRY(const Json document, document_of(file, text, 2));
  return counters_of(file, document.value("counters", Json()));
}

struct Marker {
  Counters prepared;
  std::string digest;
};

Result<Marker> parse_marker(const std::string& text) {
  HF_TRY(const Json document, document_of(kMarker, text, 4));
  Marker marker;
  HF_TRY(marker.prepared, counters_of(kMarker, document.value("prepared_counters", Json())));
  const Json high_water = document.value("high_water", Json());
  if (!high_water.is_number_unsigned()) return malformed(kMarker, "a high water that is no unsigned 64-bit integer");
  marker.digest = text_member(document, "map_sha256");
  if (marker.digest != sha256_hex(canonical_counters(marker.prepared))) {
    return mismatch("the marker's digest is not that of its own counters");
  }
  if (high_water.get<std::uint64_t>() != high_water_of(marker.prepared)) {
    return mismatch("the marker's high water is not the largest of its own counters");
  }
  return marker;
}

std::string store_text(const Counters& counters) {
  return "{\"counters\":" + canonical_counters(counters) + ",\"protocol\":\"" + std::string(kProtocol) + "\"}";
}

std::string marker_text(const Counters& counters) {
  const std::string canonical = canonical_counters(counters);
  return "{\"high_water\":" + std::to_string(high_water_of(counters)) + ",\"map_sha256\":\"" + sha256_hex(canonical) +
         "\",\"prepared_counters\":" + canonical + ",\"protocol\":\"" + std::string(kProtocol) + "\"}";
}

// Any failure to make a generation durable has one code, whatever the layer below called it; a link stays insecure.
Refusal persist_failed(Refusal cause) {
  if (cause.code() == Code::workspace_insecure || cause.code() == Code::workspace_permission_denied) return cause;
  Json details = cause.details();
  return Refusal(Code::generation_persist_failed, "generation_persist_failed: " + cause.message(), std::move(details));
}

}  // namespace

std::uint64_t high_water_of(const Counters& counters) {
  std::uint64_t highest = 0;
  for (const auto& [key, counter] : counters) highest = std::max(highest, counter);
  return highest;
}

std::string canonical_counters(const Counters& counters) {
  std::string text = "{";
  for (const auto& [key, counter] : counters) {
    if (text.size() > 1) text += ',';
    text += '"' + key + "\":" + std::to_string(counter);
  }
  return text + '}';
}

Result<GenerationStore::Opened> GenerationStore::judge(Generation floor, bool may_complete) {
  HF_TRY(const auto store_bytes, files_.read(kStore));
  HF_TRY(const auto marker_bytes, files_.read(kMarker));
  if (!store_bytes) {
    return Refusal(Code::generation_store_missing,
                   marker_bytes ? "generation_store_missing: generations.json is gone"
                                : "generation_store_missing: generations.json and its marker are gone",
                   Json{{"path", kStore}});
  }
  if (!marker_bytes) return mismatch("generations.json has no marker", Json{{"path", kMarker}});
  {
    const std::scoped_lock lock(agreed_.mutex);
    const bool same = agreed_.store == *store_bytes && agreed_.marker == *marker_bytes;
    if (same && high_water_of(agreed_.counters) >= floor.value) return Opened{agreed_.counters, false};
  }
  HF_TRY(Counters counters, parse_store(kStore, *store_bytes));
  HF_TRY(const Marker marker, parse_marker(*marker_bytes));
  Opened opened;
  if (sha256_hex(canonical_counters(counters)) != marker.digest) {
    // I4: only a staged store with the marker's digest may complete phase 2, and only upwards.
    HF_TRY(const auto staged_bytes, files_.read(kStaged));
    const auto staged = staged_bytes ? parse_store(kStaged, *staged_bytes) : Result<Counters>(Counters{});
    const bool completes = staged_bytes && staged.ok() && *staged == marker.prepared &&
                           std::all_of(counters.begin(), counters.end(), [&](const auto& entry) {
                             const auto later = marker.prepared.find(entry.first);
                             return later != marker.prepared.end() && later->second >= entry.second;
                           });
    if (!completes) return mismatch("generations.json does not have the digest that its marker names");
    if (may_complete) {
      if (auto renamed = files_.rename(kStaged, kStore); !renamed.ok()) return persist_failed(renamed.refusal());
    }
    counters = marker.prepared;
    opened.completed_phase_two = true;
  }
  if (high_water_of(counters) < floor.value) {
    return mismatch("the high water is " + std::to_string(high_water_of(counters)) +
                        ", but the workspace knows generation " + floor.text(),
                    Json{{"high_water", std::to_string(high_water_of(counters))}, {"known", floor.text()}});
  }
  opened.counters = std::move(counters);
  if (!opened.completed_phase_two) {
    const std::scoped_lock lock(agreed_.mutex);
    agreed_.store = *store_bytes;
    agreed_.marker = *marker_bytes;
    agreed_.counters = opened.counters;
  }
  return opened;
}

Result<GenerationStore::Opened> GenerationStore::open(const os::TransitionMutex::Held&, Generation floor) {
  return judge(floor, true);
}

Result<GenerationStore::Opened> GenerationStore::examine(Generation floor) { return judge(floor, false); }

Result<Generation> GenerationStore::next(const Counters& counters) {
  const std::uint64_t highest = high_water_of(counters);
  if (highest == UINT64_MAX) {
    return Refusal(Code::generation_exhausted, "generation_exhausted: 2^64-1 was issued; there is no next one");
  }
  return Generation{highest + 1};
}

Result<void> GenerationStore::advance(const os::TransitionMutex::Held& held, Counters& counters,
                                      const std::vector<std::pair<std::string, Generation>>& issued) {
  Counters raised = counters;
  for (const auto& [key, generation] : issued) {
    HF_ASSERT(generation.value > high_water_of(raised));  // I3
    raised[key] = generation.value;
  }
  // The rename of phase 2 is not flushed: after a power cut the marker and the staged store are there, and open()
  // completes this very rename. (A fresh pair has no older store beside them, and is flushed.)
  HF_CHECK(publish_pair(held, raised, os::NameFlush::later));
  counters = std::move(raised);
  return {};
}

Result<void> GenerationStore::publish(const os::TransitionMutex::Held& held, const Counters& counters) {
  return publish_pair(held, counters, os::NameFlush::now);
}

Result<void> GenerationStore::publish_pair(const os::TransitionMutex::Held&, const Counters& counters,
                                           os::NameFlush flush) {
  // The marker's bytes are flushed beside the store's; its name follows only then.
  const std::string marker = os::staging_path(kMarker);
  if (auto staged = files_.stage_together({{kStaged, store_text(counters)}, {marker, marker_text(counters)}});
      !staged.ok()) {
    Refusal refusal = persist_failed(staged.refusal());
    if (refusal.code() == Code::generation_persist_failed) (void)files_.remove(kStaged);
    return refusal;
  }
  HF_FAULT_POINT("generation_after_staged");
  if (auto marked = files_.rename(marker, kMarker); !marked.ok()) {
    // A marker that reached its name in spite of the failure needs the staged store to be completed by the next open().
    const auto bytes = files_.read(kMarker);
    if (bytes.ok() && *bytes != marker_text(counters)) (void)files_.remove(kStaged);
    return persist_failed(marked.refusal());
  }
  HF_FAULT_POINT("generation_after_marker");
  if (auto renamed = files_.rename(kStaged, kStore, flush); !renamed.ok()) return persist_failed(renamed.refusal());
  HF_FAULT_POINT("generation_after_store");
  return {};
}

Counters GenerationStore::salvage() {
  Counters found;
  const auto merge = [&](const Counters& counters) {
    for (const auto& [key, counter] : counters) found[key] = std::max(found[key], counter);
  };
  for (const char* name : {kStore, kStaged}) {
    const auto bytes = files_.read(name);
    if (!bytes.ok() || !*bytes) continue;
    if (const auto counters = parse_store(name, **bytes); counters.ok()) merge(*counters);
  }
  if (const auto bytes = files_.read(kMarker); bytes.ok() && *bytes) {
    if (const auto marker = parse_marker(**bytes); marker.ok()) merge(marker->prepared);
  }
  return found;
}

}  // namespace holdfast
