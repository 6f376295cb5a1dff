// The epoch, and the operator's way out of a broken store.
#include <algorithm>

#include "authority/local/local_store.h"
#include "base/json.h"

namespace holdfast::authority {
namespace {
constexpr const char* kEpoch = "control/epoch.json";
constexpr std::string_view kProtocol = "holdfast.epoch.1";

Refusal rolled_back(const std::string& why) {
  return Refusal(Code::control_epoch_rolled_back, "control_epoch_rolled_back: control/epoch.json " + why,
                 Json{{"path", kEpoch}});
}

Result<EpochState> epoch_from(const std::string& bytes) {
  JsonProblem problem;
  const auto document = parse_json(bytes, &problem);
  if (!document || text_member(*document, "protocol") != kProtocol) return rolled_back("is malformed");
  const auto epoch = exact_u64(document->value("control_epoch", Json()));
  if (!epoch || *epoch == 0 || !document->value("break_glass", Json()).is_boolean()) return rolled_back("is malformed");
  EpochState state;
  state.epoch = Epoch{*epoch};
  state.break_glass = (*document)["break_glass"].get<bool>();
  state.reason = text_member(*document, "reason");
  state.changed_at = text_member(*document, "changed_at");
  return state;
}

}  // namespace

Json EpochState::to_json() const {
  return Json{{"protocol", kProtocol},
              {"control_epoch", epoch.value},
              {"break_glass", break_glass},
              {"reason", reason},
              {"changed_at", changed_at}};
}

Result<EpochState> LocalStore::read_epoch(Epoch floor) {
  HF_TRY(const auto bytes, files_.read(kEpoch));
  if (!bytes) return rolled_back("is gone");
  HF_TRY(EpochState state, epochs_.of(kEpoch, *bytes, epoch_from));
  if (state.epoch < floor) {
    return rolled_back("says epoch " + state.epoch.text() + ", but the workspace has seen epoch " + floor.text());
  }
  return state;
}

Result<EpochState> LocalStore::peek_epoch() {
  // Without the mutex the evidence may be a moment ahead of the file: load() is where the floor is checked.
  return read_epoch(Epoch{0});
}

Result<void> LocalStore::create(const os::TransitionMutex::Held& held, os::ControlFolder& files, const Instant& now) {
  for (const char* folder : {"locks/write", "resources", "servers", "intents", "control", "vault/primary",
                             "vault/amber", "evidence", "receivers"}) {
    HF_CHECK(files.make_folder(folder));
  }
  EpochState epoch;
  epoch.epoch = Epoch{1};
  epoch.reason = "the workspace was made";
  epoch.changed_at = format_wall(now.wall_us);
  HF_CHECK(files.publish(kEpoch, dump_pretty(epoch.to_json())));
  return GenerationStore(files).publish(held, {});
}

Result<LocalStore::Repaired> LocalStore::repair(const os::TransitionMutex::Held& held, Generation floor,
                                                const Instant& now) {
  HF_TRY(const auto names, files_.list("locks/write"));
  HF_TRY(const evidence::Marks marks, chain_.marks());
  Counters counters = generations_.salvage();
  Repaired repaired;
  repaired.found = {{"counters", std::to_string(high_water_of(counters))},
                    {"evidence", marks.high_water.text()},
                    {"floor", floor.text()}};
  std::uint64_t highest = std::max({high_water_of(counters), marks.high_water.value, floor.value});
  if (anchor_) {
    if (const auto anchored = anchor_->read(); anchored.ok()) highest = std::max(highest, anchored->value);
  }
  if (const auto marked = highest_receiver_mark(); marked.ok()) highest = std::max(highest, marked->value);
  Epoch epoch = marks.control_epoch;
  // Records are read one by one: repair has to work where load() refuses.
  for (const char* folder : {"locks/write", "resources"}) {
    HF_TRY(const auto records, files_.list(folder));
    for (const std::string& name : records) {
      const auto bytes = files_.read(std::string(folder) + "/" + name);
      if (!bytes.ok() || !*bytes) continue;
      const auto document = parse_json(**bytes);
      if (!document || !document->is_object()) continue;
      const std::uint64_t known = exact_u64(document->value("generation", Json())).value_or(0);
      highest = std::max(highest, known);
      epoch = std::max(epoch, Epoch{exact_u64(document->value("control_epoch", Json())).value_or(0)});
      const auto tenancy = tenancy_from_json(*document);
      if (tenancy.ok()) {
        auto& counter = counters[tenancy->scope.routing_key()];
        counter = std::max(counter, known);
      }
    }
  }
  if (highest > high_water_of(counters)) counters["0000000000000000"] = highest;  // a floor that no key carries
  HF_CHECK(generations_.publish(held, counters));
  if (anchor_) {
    if (auto anchored = anchor_->establish(Generation{highest}); !anchored.ok()) {
      repaired.found["anchor_not_established"] = anchored.refusal().message();
    }
  }
  const auto current = read_epoch(epoch);
  EpochState state;
  if (current.ok()) {
    state = *current;
  } else {
    state.epoch = Epoch{epoch.value + 1};
    state.break_glass = false;
    state.reason = "rebuilt by generations repair";
    state.changed_at = format_wall(now.wall_us);
    HF_CHECK(files_.publish(kEpoch, dump_pretty(state.to_json())));
  }
  repaired.high_water = Generation{highest};
  repaired.epoch = state.epoch;
  return repaired;
}

Result<std::vector<std::string>> LocalStore::set_aside_unreadable(const os::TransitionMutex::Held&) {
  std::vector<std::string> moved;
  HF_TRY(const auto names, files_.list("locks/write"));
  for (const std::string& name : names) {
    const std::string path = "locks/write/" + name;
    HF_TRY(const auto bytes, files_.read(path));
    if (!bytes) continue;
    const auto document = parse_json(*bytes);
    if (document && tenancy_from_json(*document).ok()) continue;
    HF_CHECK(files_.make_folder("evidence/set-aside"));
    HF_CHECK(files_.rename(path, "evidence/set-aside/" + evidence::new_event_id() + "-" + name));
    moved.push_back(name);
  }
  return moved;
}

}  // namespace holdfast::authority
