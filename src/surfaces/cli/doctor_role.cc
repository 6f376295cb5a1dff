#include "surfaces/cli/doctor_role.h"

#include <optional>

#include "base/fault_point.h"
#include "base/json.h"
#include "os/hostile_neighbour.h"
#include "os/lock_file.h"
#include "os/stream.h"
#include "os/transition_mutex.h"
#include "os/unnamed_file.h"

namespace holdfast::cli {
namespace {

constexpr int kTransitionLimitMs = 50;
constexpr std::size_t kLineMax = 64U * 1024U;
constexpr int kInputMalformed = 2;

// The lines of standard input; nullopt at its end.
class Questions {
 public:
  ~Questions() { input_.release(); }  // the process's, not ours to close
  std::optional<std::string> next() {
    for (;;) {
      if (const auto end = unread_.find('\n'); end != std::string::npos) {
        std::string line = unread_.substr(0, end);
        unread_.erase(0, end + 1);
        return line;
      }
      std::string piece(4096, '\0');
      const auto count = os::read_some(input_, piece.data(), piece.size(), Code::request_malformed);
      if (!count.ok() || *count == 0 || unread_.size() > kLineMax) return std::nullopt;
      unread_.append(piece, 0, *count);
    }
  }

 private:
  os::Handle input_{0};
  std::string unread_;
};

// What it holds until it ends: an attacker that is killed is how a lock comes free.
struct Locks {
  std::unique_ptr<os::TransitionMutex> mutex;
  std::optional<os::TransitionMutex::Held> transition;
  std::optional<os::LockFile> lock;
};

Result<bool> take_transition(Locks& locks) {
  HF_TRY(const os::Handle here, os::open_absolute_folder("."));
  HF_TRY(locks.mutex, os::TransitionMutex::open(here, kTransitionLimitMs));
  auto held = locks.mutex->acquire();
  if (held.ok()) {
    locks.transition.emplace(std::move(*held));
    return true;
  }
  if (held.refusal().code() == Code::lease_transition_busy) return false;
  return std::move(held).refusal();
}

Result<bool> take_lock(Locks& locks, const std::string& name) {
  HF_TRY(const os::Handle here, os::open_absolute_folder("."));
  HF_TRY(os::LockFile lock, os::LockFile::open(here, name));
  HF_TRY(const bool held, lock.try_lock(os::LockMode::exclusive));
  if (held) locks.lock.emplace(std::move(lock));
  return held;
}

Json answer_of(const Result<bool>& held) {
  if (held.ok()) return Json{{"errno", 0}, {"held", *held}};
  const auto error = exact_u64(held.refusal().details().value("os_error", Json()));
  return Json{{"errno", error.value_or(1)}, {"held", false}};
}

Json answer(const Json& question, os::HostileNeighbour& neighbour, Locks& locks) {
  const os::HostileAct act{text_member(question, "way"), text_member(question, "name"), text_member(question, "other")};
  if (act.way == "take_transition") return answer_of(take_transition(locks));
  if (act.way == "take_lock") return answer_of(take_lock(locks, act.name));
  if (act.way == "become_user") {
    const auto user = exact_u64(question.value("user", Json()));
    return Json{{"errno", os::become_user(static_cast<unsigned>(user.value_or(65534)))}};
  }
  // A test's way to a doctor that finds something wrong: the attacker says that it did, and did nothing.
  if (act.way == "open_append" && HF_FAULT_ORDERED("doctor_attacker_idles")) return Json{{"errno", 0}};
  return Json{{"errno", neighbour.commit(act)}};
}

}  // namespace

int run_attack_role(Output& output) {
  Questions questions;
  os::HostileNeighbour neighbour;
  Locks locks;
  while (const auto line = questions.next()) {
    const auto question = parse_json(*line);
    if (!question || !question->is_object()) return kInputMalformed;
    if (const int failed = output.document(answer(*question, neighbour, locks)); failed != 0) return failed;
  }
  return 0;
}

}  // namespace holdfast::cli
