#include "engine/doctor_locks.h"

#include "base/json.h"
#include "os/lock_file.h"
#include "os/transition_mutex.h"

namespace holdfast::engine {
namespace {

constexpr int kTransitionLimitMs = 50;

Json lock_operation(const char* way, bool excluded) {
  return Json{{"operation", "lock"},
              {"way", way},
              {"outcome", excluded ? "denied" : "let_through"},
              {"claimed", "denied"},
              {"agrees", excluded}};
}

Json examined(const char* mechanism) {
  return Json{{"mechanism", mechanism},
              {"held_by_this_release", true},
              {"claims", {{"denies", {"lock"}}, {"diverts", Json::array()}, {"detects", Json::array()}}},
              {"operations", Json::array()},
              {"freed_by_release", nullptr},
              {"freed_by_death", nullptr},
              {"reason", nullptr}};
}

// A lock that never comes free is as little use as one that excludes nobody.
Json concluded(Json mechanism) {
  bool excludes = true;
  for (const Json& operation : mechanism["operations"]) excludes = excludes && operation["agrees"] == true;
  const bool freed = mechanism["freed_by_release"] != false && mechanism["freed_by_death"] != false;
  mechanism["usable"] = excludes && freed;
  mechanism["agrees"] = excludes && freed;
  if (!excludes) mechanism["reason"] = "two processes held the lock at once";
  if (excludes && !freed) mechanism["reason"] = "the lock did not come free";
  return mechanism;
}

// The file system has no such locks, and says so: nothing is claimed on it.
Json unusable(Json mechanism, const Refusal& refusal) {
  mechanism["usable"] = false;
  mechanism["agrees"] = true;
  mechanism["reason"] = printable(refusal.message());
  return mechanism;
}

Result<bool> take(os::TransitionMutex& mutex, std::optional<os::TransitionMutex::Held>& into) {
  auto held = mutex.acquire();
  if (held.ok()) {
    into.emplace(std::move(*held));
    return true;
  }
  if (held.refusal().code() == Code::lease_transition_busy) return false;
  return std::move(held).refusal();
}

}  // namespace

Result<Json> examine_transition_mutex(os::ScratchFolder& scratch, DoctorAttacker& second) {
  Json mechanism = examined("transition_mutex");
  auto mutex = os::TransitionMutex::open(scratch.folder(), kTransitionLimitMs);
  if (!mutex.ok()) return unusable(std::move(mechanism), mutex.refusal());
  std::optional<os::TransitionMutex::Held> ours;
  const auto taken = take(**mutex, ours);
  if (!taken.ok()) return unusable(std::move(mechanism), taken.refusal());
  if (!*taken) return unusable(std::move(mechanism), Refusal(Code::lease_transition_busy, "a new lock was held"));

  HF_TRY(const AttackerReply while_held, second.ask("take_transition"));
  mechanism["operations"].push_back(lock_operation("by_a_second_process", !while_held.held));
  ours.reset();
  HF_TRY(const AttackerReply after_release, second.ask("take_transition"));
  mechanism["freed_by_release"] = after_release.held;
  HF_TRY(const bool both, take(**mutex, ours));
  mechanism["operations"].push_back(lock_operation("while_the_second_holds_it", !both));
  ours.reset();
  second.kill();
  HF_TRY(mechanism["freed_by_death"], take(**mutex, ours));
  return concluded(std::move(mechanism));
}

Result<Json> examine_liveness_lock(os::ScratchFolder& scratch, DoctorAttacker& second) {
  Json mechanism = examined("liveness_lock");
  const std::string name = scratch.next_name();
  auto lock = os::LockFile::open(scratch.folder(), name);
  if (!lock.ok()) return unusable(std::move(mechanism), lock.refusal());
  const auto free = lock->is_held_by_another(os::LockMode::exclusive);
  if (!free.ok()) return unusable(std::move(mechanism), free.refusal());

  HF_TRY(const AttackerReply held, second.ask("take_lock", name));
  if (!held.held) return unusable(std::move(mechanism), Refusal(Code::os_failed, "a second process got no lock"));
  HF_TRY(const bool seen, lock->is_held_by_another(os::LockMode::exclusive));
  mechanism["operations"].push_back(lock_operation("seen_by_a_look", seen));
  HF_TRY(const bool both, lock->try_lock(os::LockMode::exclusive));
  mechanism["operations"].push_back(lock_operation("while_the_second_holds_it", !both));
  if (both) HF_CHECK(lock->unlock());
  second.kill();
  HF_TRY(mechanism["freed_by_death"], lock->try_lock(os::LockMode::exclusive));
  return concluded(std::move(mechanism));
}

}  // namespace holdfast::engine
