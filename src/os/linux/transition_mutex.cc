// An open-file-description lock between processes, and a table of this process between its threads.
//
// The table is needed because re-entrancy is per thread while the lock belongs to an open file: all TransitionMutex
// objects on one file share one entry, and with it one open file.
#include "os/transition_mutex.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "base/json.h"
#include "os/file.h"
#include "os/lock_file.h"
#include "os/process.h"

namespace holdfast::os {
namespace {

constexpr char kName[] = ".lease-transition.mutex";
// Notes are padded to one length, so that writing one changes bytes in place and never the size of the file.
constexpr std::size_t kNoteLength = 256;

using SteadyClock = std::chrono::steady_clock;

struct Entry {
  explicit Entry(LockFile file) : lock(std::move(file)) {}

  LockFile lock;
  std::mutex mutex;  // of what follows
  std::condition_variable freed;
  bool busy = false;  // a thread holds the lock or polls for it
  bool locked = false;
  std::thread::id owner;
  int depth = 0;
};

std::string padded(std::string text) {
  text.resize(std::max(kNoteLength, text.size()), ' ');
  return text;
}

const std::string& note_of_this_process() {
  static const std::string note = padded(dump_ascii(this_process().to_json()));
  return note;
}

// The holder that a note names, where the note is whole and its process lives.
std::optional<ProcessIdentity> holder_of_note(const LockFile& lock) {
  const auto note = lock.read_note();
  const auto document = note ? parse_json(*note) : std::nullopt;
  if (!document || !document->is_object()) return std::nullopt;
  const ProcessIdentity holder = ProcessIdentity::from_json(*document);
  if (liveness_of(holder) != Liveness::alive) return std::nullopt;
  return holder;
}

Refusal busy_refusal(const std::optional<ProcessIdentity>& holder, int limit_ms, bool another_thread) {
  const std::string waited = std::to_string(limit_ms) + " ms";
  if (!holder) {
    return Refusal(Code::lease_transition_busy,
                   "another process has held the transition for " + waited + "; its note does not tell which",
                   Json{{"holder_pid", nullptr}, {"waited_ms", limit_ms}});
  }
  const std::string command = command_of_pid(holder->pid);
  const std::string who = another_thread ? "another thread of process " : "process ";
  return Refusal(Code::lease_transition_busy,
                 who + std::to_string(holder->pid) + " (" + command + ") has held the transition for " + waited +
                     ": continue it (kill -CONT) or end it; it is never stolen",
                 Json{{"holder_pid", holder->pid}, {"holder_command", command}, {"waited_ms", limit_ms}});
}

std::shared_ptr<Entry> entry_of(const Identity& identity, LockFile file) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<Entry>> entries;
  const std::scoped_lock lock(mutex);
  std::erase_if(entries, [](const auto& known) { return known.second.expired(); });
  std::weak_ptr<Entry>& known = entries[identity.text() + "@" + std::to_string(identity.birth_ns)];
  if (std::shared_ptr<Entry> entry = known.lock()) return entry;
  auto entry = std::make_shared<Entry>(std::move(file));
  known = entry;
  return entry;
}

}  // namespace

struct TransitionMutex::Held::Core {
  std::shared_ptr<Entry> entry;
  Handle squad;
  Identity identity;  // of the file that entry->lock has open
  int limit_ms = kLimitMs;

  // true: this thread is the one that may ask the kernel, or holds already (depth > 1). false: too late.
  bool enter(SteadyClock::time_point deadline) {
    std::unique_lock lock(entry->mutex);
    if (entry->busy && entry->owner == std::this_thread::get_id()) {
      ++entry->depth;
      return true;
    }
    if (!entry->freed.wait_until(lock, deadline, [&] { return !entry->busy; })) return false;
    entry->busy = true;
    entry->owner = std::this_thread::get_id();
    entry->depth = 1;
    return true;
  }

  void leave() {
    {
      const std::scoped_lock lock(entry->mutex);
      if (--entry->depth > 0) return;
      if (entry->locked) {
        static_cast<void>(entry->lock.note(padded("")));
        static_cast<void>(entry->lock.unlock());
      }
      entry->locked = false;
      entry->busy = false;
      entry->owner = {};
    }
    entry->freed.notify_one();
  }

  Result<void> lock_file(SteadyClock::time_point deadline) {
    for (;;) {
      HF_TRY(const bool locked, entry->lock.try_lock(LockMode::exclusive));
      if (locked) break;
      const auto now = SteadyClock::now();
      if (now >= deadline) return busy_refusal(holder_of_note(entry->lock), limit_ms, false);
      std::this_thread::sleep_for(std::min<SteadyClock::duration>(std::chrono::milliseconds(kPollMs), deadline - now));
    }
    {
      const std::scoped_lock lock(entry->mutex);
      entry->locked = true;
    }
    HF_CHECK(require_same_file());
    // The note only helps whoever waits; a full disk does not keep the transition from being held.
    static_cast<void>(entry->lock.note(note_of_this_process()));
    return {};
  }

  // A mutex file that somebody deleted or replaced excludes nobody who opens it by name (field report B13).
  Result<void> require_same_file() {
    HF_TRY(const auto named, LockFile::open_existing(squad, kName));
    if (named) {
      HF_TRY(const Facts facts, facts_of_open(named->handle()));
      if (facts.identity == identity) return {};
    }
    return Refusal(Code::workspace_insecure,
                   "the transition mutex was deleted or replaced while it was in use; restart what uses the workspace",
                   Json{{"path", kName}});
  }

  Refusal thread_refusal() {
    bool locked = false;
    {
      const std::scoped_lock lock(entry->mutex);
      locked = entry->locked;
    }
    if (locked) return busy_refusal(this_process(), limit_ms, true);
    return busy_refusal(holder_of_note(entry->lock), limit_ms, false);
  }
};

TransitionMutex::Held::Held(Held&& other) noexcept : core_(std::move(other.core_)) {}

TransitionMutex::Held::~Held() {
  if (core_) core_->leave();
}

Result<std::unique_ptr<TransitionMutex>> TransitionMutex::open(const Handle& squad, int limit_ms) {
  HF_TRY(LockFile file, LockFile::open(squad, kName));
  HF_TRY(const Facts facts, facts_of_open(file.handle()));
  auto core = std::make_shared<Held::Core>();
  core->identity = facts.identity;
  core->entry = entry_of(facts.identity, std::move(file));
  HF_TRY(core->squad, duplicate(squad));
  core->limit_ms = std::clamp(limit_ms, 0, kLimitMs);
  return std::unique_ptr<TransitionMutex>(new TransitionMutex(std::move(core)));
}

Result<TransitionMutex::Held> TransitionMutex::acquire() {
  const auto deadline = SteadyClock::now() + std::chrono::milliseconds(core_->limit_ms);
  if (!core_->enter(deadline)) return core_->thread_refusal();
  Held held(core_);  // leaves again in every case but the last
  bool fresh = false;
  {
    const std::scoped_lock lock(core_->entry->mutex);
    fresh = !core_->entry->locked;
  }
  if (fresh) HF_CHECK(core_->lock_file(deadline));
  return held;
}

}  // namespace holdfast::os
