#include "engine/doctor_attacks.h"

#include <algorithm>

#include "base/fault_point.h"
#include "base/json.h"
#include "engine/doctor_attack_list.h"
#include "os/file.h"
#include "os/hostile_neighbour.h"
#include "os/unnamed_file.h"

namespace holdfast::engine {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::duration_cast;
using std::chrono::milliseconds;

constexpr std::string_view kHeldBytes = "held by the doctor\n";
constexpr milliseconds kNoticeLimit{1'500};
constexpr std::uint64_t kReadMax = 4096;
constexpr std::uint32_t kForOneself = 0600;
constexpr std::uint32_t kForEverybody = 0666;

std::int64_t ms_since(Clock::time_point begin) { return duration_cast<milliseconds>(Clock::now() - begin).count(); }

// A scratch file and, where the way has one, its second name.
struct Names {
  std::string file;
  std::string other;
};

// Whether the name is as it was: bears the bytes that were held, or still nothing.
bool is_as_it_was(const os::Handle& folder, const std::string& leaf, bool absent) {
  if (absent) return !os::name_exists(folder, leaf);
  const auto object = os::open_for_reading(folder, leaf);
  if (!object.ok()) return false;
  const auto bytes = os::read_whole(*object, kReadMax);
  return bytes.ok() && *bytes == kHeldBytes;
}

// What the guard noticed of one scratch file.
struct Noticed {
  bool diverted = false;
  bool emptied = false;  // past the lease, and known as such
  std::string what;      // the first that is no divert
  std::string fault;
  std::int64_t within_ms = 0;
  bool by_watch = true;  // else only by the check before an act
};

struct Outcome {
  std::string word;
  std::string detail;
  int error = 0;
};

Json report_of(const Attack& attack, const Outcome& outcome) {
  Json operation = {{"operation", guard::name_of(attack.operation)}, {"way", attack.way}, {"outcome", outcome.word}};
  if (outcome.error != 0) operation["errno"] = os::facts_of_errno(outcome.error).name;
  std::string detail = outcome.detail;
  if (!attack.remark.empty()) detail += (detail.empty() ? "" : "; ") + attack.remark;
  if (!detail.empty()) operation["detail"] = detail;
  operation["claimed"] = nullptr;
  operation["agrees"] = true;
  return operation;
}

Json not_tried(Attack attack, const std::string& why) {
  attack.remark.clear();
  return report_of(attack, Outcome{.word = "not_tried", .detail = why, .error = 0});
}

// Why an attack is not for this user; empty where it is.
std::string why_not(const DoctorGround& ground, const Attack& attack) {
  if (ground.is_late()) return "no time was left";
  if (attack.by_another_user && ground.other_user == nullptr) return "only root may become another user";
  if (attack.needs_superuser && !ground.kernel.is_superuser) return "only root may";
  return "";
}

Result<Names> prepare(DoctorGround& ground, const Attack& attack) {
  Names names{ground.scratch.next_name(), ground.scratch.next_name()};
  if (attack.on_absent_name) return names;
  HF_CHECK(ground.scratch.put(names.file, kHeldBytes, attack.by_another_user ? kForEverybody : kForOneself));
  if (attack.before == Attack::Before::second_file) {
    HF_CHECK(ground.scratch.put(names.other, os::kForeignBytes, kForOneself));
  }
  const char* act = attack.before == Attack::Before::hard_link       ? "link"
                    : attack.before == Attack::Before::symbolic_link ? "symlink"
                    : attack.before == Attack::Before::descriptor    ? "open_and_keep"
                    : attack.before == Attack::Before::mapping       ? "map_and_keep"
                                                                     : nullptr;
  if (act == nullptr) return names;
  HF_TRY(const AttackerReply reply, ground.attacker.ask(act, names.file, names.other));
  if (reply.error == 0) return names;
  const os::ErrnoFacts facts = os::facts_of_errno(reply.error);
  return Refusal(Code::unsupported_here, std::string(act) + ": " + facts.text, Json{{"os_error", reply.error}});
}

// Waits for what this attack can bring: a divert, or anything else. Other files' late news are dropped.
Noticed wait_until_noticed(DoctorGround& ground, guard::Guard& guard, const std::string& scope, bool wants_divert) {
  Noticed noticed;
  const auto began = Clock::now();
  const auto take = [&](const std::vector<guard::Observation>& observations) {
    for (const guard::Observation& seen : observations) {
      if (seen.scope != scope || seen.what.starts_with("diverted_bytes_")) continue;
      if (seen.what == "write_diverted") {
        noticed.diverted = true;
      } else if (noticed.what.empty()) {
        noticed.what = seen.what;
        noticed.fault = seen.fault;
        noticed.within_ms = ms_since(began) + 1;  // a part of a millisecond is one
      }
      noticed.emptied = noticed.emptied || seen.what == "content_changed";
    }
  };
  const auto is_enough = [&] { return wants_divert ? noticed.diverted || noticed.emptied : !noticed.what.empty(); };
  while (!is_enough()) {
    const auto left = kNoticeLimit - milliseconds(ms_since(began));
    if (left.count() <= 0) break;
    take(ground.guards.wait_for_observations(static_cast<int>(left.count())));
  }
  if (is_enough()) return noticed;
  (void)guard.check().ok();  // what it finds, it reports
  take(ground.guards.wait_for_observations(0));
  noticed.by_watch = false;
  return noticed;
}

std::string words_of(const Noticed& noticed) {
  std::string text = "noticed as " + noticed.what + (noticed.fault.empty() ? "" : " (" + noticed.fault + ")");
  return text + (noticed.by_watch ? " within " + std::to_string(noticed.within_ms) + " ms"
                                  : " only by the check before the next act");
}

// The attacker was refused, or never came back, and the name is as it was.
Outcome denied(const AttackerReply& reply) {
  if (reply.kept_waiting) return {.word = "denied", .detail = "kept waiting until it was ended", .error = 0};
  if (reply.ended_by != 0) {
    return {.word = "denied", .detail = "ended by signal " + std::to_string(reply.ended_by), .error = 0};
  }
  return {.word = "denied", .detail = os::facts_of_errno(reply.error).text, .error = reply.error};
}

bool was_refused(const AttackerReply& reply) { return reply.error != 0 || reply.kept_waiting || reply.ended_by != 0; }

Outcome judge(const Attack& attack, const AttackerReply& reply, bool as_it_was, const Noticed& noticed) {
  if (was_refused(reply) && as_it_was) return denied(reply);
  if (attack.is_after_bytes()) {
    if (as_it_was && noticed.diverted) {
      return {.word = "diverted", .detail = "written into an object without the name", .error = 0};
    }
    // Foreign bytes under the name are let through, whatever else was noticed; being emptied is the known exception.
    if (noticed.emptied) return {.word = "detected", .detail = words_of(noticed), .error = 0};
    return {.word = "let_through",
            .detail = as_it_was ? "it succeeded, and nobody knows where" : "the bytes under the name are others",
            .error = 0};
  }
  if (!noticed.what.empty()) return {.word = "detected", .detail = words_of(noticed), .error = 0};
  return {.word = "let_through", .detail = attack.in_the_claim ? "nothing was noticed" : "", .error = 0};
}

// What the guard says of this attack before it happens: "denied", "diverted", "detected", or null.
Json claim_on(const Attack& attack, const guard::Enforcement& claim) {
  const auto names = [&](const std::vector<guard::Operation>& operations) {
    return std::ranges::find(operations, attack.operation) != operations.end();
  };
  if (!attack.in_the_claim) return nullptr;
  if (attack.is_of_an_earlier_writer()) return claim.preexisting_writers == "excluded" ? Json("denied") : Json(nullptr);
  if (names(claim.denies)) return "denied";
  if (names(claim.diverts)) return "diverted";
  return names(claim.detects) ? Json("detected") : Json(nullptr);
}

std::string scope_of(const DoctorGround& ground, const std::string& leaf) {
  return "file://project:/" + ground.scratch.name() + "/" + leaf;
}

Result<std::unique_ptr<guard::Guard>> guard_on(DoctorGround& ground, const std::string& leaf) {
  guard::Target target;
  target.scope = scope_of(ground, leaf);
  HF_TRY(target.parent, os::duplicate(ground.scratch.folder()));
  target.leaf = leaf;
  target.relative = ground.scratch.name() + "/" + leaf;
  return ground.guards.take(std::move(target));
}

Result<Json> attack_guarded(DoctorGround& ground, const Attack& attack) {
  if (const std::string why = why_not(ground, attack); !why.empty()) return not_tried(attack, why);
  const auto names = prepare(ground, attack);
  if (!names.ok()) {
    if (names.refusal().code() != Code::unsupported_here) return names.refusal();
    return not_tried(attack, names.refusal().message());
  }
  HF_TRY(const auto guard, guard_on(ground, names->file));
  const guard::Enforcement standing = guard->enforcement();
  const Json claimed = claim_on(attack, standing);
  HF_FAULT_POINT("doctor_before_attack");
  HF_CHECK(ground.may_go_on());
  DoctorAttacker& attacker = attack.by_another_user ? *ground.other_user : ground.attacker;
  HF_TRY(const AttackerReply reply, attacker.ask(attack.act, names->file, names->other));
  if (os::facts_of_errno(reply.error).not_offered && !reply.kept_waiting && reply.ended_by == 0) {
    return not_tried(attack, "not offered here: " + os::facts_of_errno(reply.error).text);
  }
  // Nothing is waited for where the guard says nothing, or where the attack came to nothing.
  const bool wait = !claimed.is_null() && !was_refused(reply) && !attack.is_of_an_earlier_writer();
  Noticed noticed;
  if (wait) noticed = wait_until_noticed(ground, *guard, scope_of(ground, names->file), attack.is_after_bytes());
  Outcome outcome =
      judge(attack, reply, is_as_it_was(ground.scratch.folder(), names->file, attack.on_absent_name), noticed);
  if (attack.is_of_an_earlier_writer() && claimed.is_null()) {
    outcome.detail = "not claimed: " + standing.reason + ", so the lease is not called enforced";
  }
  Json operation = report_of(attack, outcome);
  operation["claimed"] = claimed;
  if (outcome.word == "detected" && noticed.by_watch) operation["noticed_within_ms"] = noticed.within_ms;
  operation["agrees"] = operation_agrees(operation);
  return operation;
}

// The flag on one scratch file; cleared again in every case, or nobody could remove the file.
class ImmutableFile {
 public:
  ImmutableFile(os::Handle object, int error) : object_(std::move(object)), error_(error) {}
  static Result<ImmutableFile> make(const os::Handle& folder, const std::string& leaf) {
    HF_TRY(os::Handle object, os::open_for_reading(folder, leaf));
    const int error = os::set_immutable(object, true);
    return ImmutableFile(std::move(object), error);
  }
  ImmutableFile(ImmutableFile&&) = default;
  ImmutableFile& operator=(ImmutableFile&&) = delete;
  ImmutableFile(const ImmutableFile&) = delete;
  ~ImmutableFile() {
    if (object_ && error_ == 0) (void)os::set_immutable(object_, false);
  }
  int error() const { return error_; }

 private:
  os::Handle object_;
  int error_;
};

Result<Json> attack_immutable(DoctorGround& ground, const Attack& attack) {
  if (const std::string why = why_not(ground, attack); !why.empty()) return not_tried(attack, why);
  const auto names = prepare(ground, attack);
  if (!names.ok()) {
    if (names.refusal().code() != Code::unsupported_here) return names.refusal();
    return not_tried(attack, names.refusal().message());
  }
  HF_TRY(const ImmutableFile file, ImmutableFile::make(ground.scratch.folder(), names->file));
  if (file.error() != 0) return not_tried(attack, os::facts_of_errno(file.error()).text);
  HF_FAULT_POINT("doctor_before_flagged_attack");
  HF_CHECK(ground.may_go_on());
  HF_TRY(const AttackerReply reply, ground.attacker.ask(attack.act, names->file, names->other));
  const bool as_it_was = is_as_it_was(ground.scratch.folder(), names->file, false);
  Attack plain = attack;
  plain.remark.clear();  // what is said of a guard
  if (was_refused(reply) && as_it_was) return report_of(plain, denied(reply));
  return report_of(plain, Outcome{.word = "let_through", .detail = "", .error = 0});
}

Json empty_claims() { return Json{{"denies", Json::array()}, {"diverts", Json::array()}, {"detects", Json::array()}}; }

}  // namespace

Result<void> DoctorGround::may_go_on() const {
  if (asked_to_end()) return Refusal(Code::doctor_interrupted, "the doctor was asked to end; nothing of it is left");
  return {};
}

bool operation_agrees(const Json& operation) {
  return operation.value("claimed", Json()).is_null() || text_member(operation, "outcome") != "let_through";
}

bool operations_agree(const Json& operations) { return std::ranges::all_of(operations, operation_agrees); }

Result<Json> examine_guard(DoctorGround& ground) {
  Json examined = {{"held_by_this_release", true}};
  const std::string leaf = ground.scratch.next_name();
  HF_CHECK(ground.scratch.put(leaf, kHeldBytes, kForOneself));
  {
    HF_TRY(const auto guard, guard_on(ground, leaf));
    const Json claim = guard->enforcement().to_json();
    examined["mechanism"] = "kernel_lease";  // the rung of this release, whether it holds here or not
    examined["usable"] = claim["enforced"];
    examined["reason"] = claim["reason"];
    examined["preexisting_writers"] = claim["preexisting_writers"];
    examined["claims"] = {{"denies", claim["denies"]}, {"diverts", claim["diverts"]}, {"detects", claim["detects"]}};
  }
  Json operations = Json::array();
  for (const Attack& attack : attack_list()) {
    HF_TRY(Json operation, attack_guarded(ground, attack));
    operations.push_back(std::move(operation));
  }
  examined["agrees"] = operations_agree(operations);
  examined["operations"] = std::move(operations);
  return examined;
}

Result<Json> examine_immutable_flag(DoctorGround& ground) {
  Json examined = {{"mechanism", "immutable_flag"},
                   {"held_by_this_release", false},
                   {"usable", true},
                   {"reason", "tried by hand: no guard of this release sets it"},
                   {"claims", empty_claims()},
                   {"operations", Json::array()},
                   {"agrees", true}};
  const std::string leaf = ground.scratch.next_name();
  HF_CHECK(ground.scratch.put(leaf, kHeldBytes, kForOneself));
  {
    HF_TRY(const ImmutableFile file, ImmutableFile::make(ground.scratch.folder(), leaf));
    if (file.error() != 0) {
      const os::ErrnoFacts facts = os::facts_of_errno(file.error());
      examined["usable"] = false;
      examined["errno"] = facts.name;
      examined["reason"] = "the flag could not be set: " + facts.text;
      return examined;
    }
  }
  for (const Attack& attack : attack_list()) {
    if (attack.of_the_guard_alone) continue;
    HF_TRY(Json operation, attack_immutable(ground, attack));
    examined["operations"].push_back(std::move(operation));
  }
  return examined;
}

}  // namespace holdfast::engine
