// All guards of one process, and the break thread that answers for them.
//
// The break thread takes break signals from a signalfd and wake-ups from inotify, and attends the guards concerned;
// each second it attends all of them, for what no event told. A guard that somebody else works on is attended again
// a millisecond later: one long exchange never delays the breaks of the other guards.
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <future>
#include <set>

#include "guard/linux/guarded_file.h"
#include "os/thread.h"

namespace holdfast::guard {
namespace {

using std::chrono::steady_clock;

constexpr int kSweepMs = 1000;
constexpr int kAgainMs = 1;

class LeaseGuard : public Guard {
 public:
  explicit LeaseGuard(std::shared_ptr<GuardedFile> file) : file_(std::move(file)) {}
  ~LeaseGuard() override { file_->end("guard_released"); }
  LeaseGuard(const LeaseGuard&) = delete;
  LeaseGuard& operator=(const LeaseGuard&) = delete;

  Enforcement enforcement() const override { return file_->enforcement(); }
  Result<void> check() override { return file_->check(); }
  Result<std::optional<os::Handle>> open_preimage() override { return file_->open_preimage(); }
  os::Identity identity() const override { return file_->identity(); }
  std::uint64_t id() const override { return file_->id(); }
  std::uint64_t content_token() const override { return file_->content_token(); }
  Result<std::unique_ptr<StagedFile>> stage() override { return file_->stage(); }
  Result<Exchanged> exchange(StagedFile& staged, const std::string& temporary_name,
                             const std::function<Result<void>()>& before_exchange) override {
    return file_->exchange(staged, temporary_name, before_exchange);
  }
  Result<void> drop_displaced(const Exchanged& exchanged) override { return file_->drop_displaced(exchanged); }
  Result<Verified> verify(const os::Identity& published) override { return file_->verify(published); }
  Result<void> adopt_current() override { return file_->adopt_current(); }
  Overlap& overlap() override { return overlap_; }

 private:
  class FileOverlap : public Overlap {
   public:
    explicit FileOverlap(std::shared_ptr<GuardedFile> file) : file_(std::move(file)) {}
    Place place() const override { return file_->place(); }
    Json state() const override { return file_->state(); }
    Result<void> share(std::shared_ptr<Follower> follower) override { return file_->share(std::move(follower)); }
    Json stand_by() override { return file_->stand_by(); }
    void answer_again() override { file_->answer_again(); }
    Result<bool> prepare(os::Handle object, const std::string& temporary_name, bool leased) override {
      return file_->prepare(std::move(object), temporary_name, leased);
    }
    void settle(bool taken) override { file_->settle(taken); }
    Result<void> learn(const Json& state) override { return file_->learn(state); }
    void answer() override { file_->answer(); }

   private:
    std::shared_ptr<GuardedFile> file_;
  };

  std::shared_ptr<GuardedFile> file_;
  FileOverlap overlap_{file_};
};

class LeaseGuards : public Guards {
 public:
  explicit LeaseGuards(const Limits& limits) : shared_(std::make_shared<Shared>(limits)) {}
  ~LeaseGuards() override;
  LeaseGuards(const LeaseGuards&) = delete;
  LeaseGuards& operator=(const LeaseGuards&) = delete;

  Result<void> start(const os::Handle& root);

  Result<std::unique_ptr<Guard>> take(Target target) override {
    HF_TRY(std::shared_ptr<GuardedFile> file, GuardedFile::take(shared_, std::move(target)));
    return std::unique_ptr<Guard>(std::make_unique<LeaseGuard>(std::move(file)));
  }
  Result<std::unique_ptr<Guard>> take_beside(Target target, const Json& state) override {
    HF_TRY(auto file, GuardedFile::take_beside(shared_, std::move(target), state));
    return std::unique_ptr<Guard>(std::make_unique<LeaseGuard>(std::move(file)));
  }
  std::vector<Observation> wait_for_observations(int limit_ms) override { return shared_->observations.wait(limit_ms); }
  bool wait_until_observed(int limit_ms) override { return shared_->observations.wait_for_some(limit_ms); }
  void wake() override { shared_->observations.wake(); }
  void settle_orphans() override { shared_->orphans.stop(); }

 private:
  using Files = std::set<std::shared_ptr<GuardedFile>>;

  void run(std::promise<int> thread_known);
  void read_signals(Files& due);
  void read_watches(Files& due);
  void attend_all(Files& due) {
    for (auto& file : shared_->registry.all()) due.insert(std::move(file));
  }

  std::shared_ptr<Shared> shared_;
  os::Handle signals_;
  os::Handle stop_;
  std::thread thread_;
};

Result<void> LeaseGuards::start(const os::Handle& root) {
  HF_TRY(shared_->root, os::duplicate(root));
  if (!shared_->watches.open()) return os::os_refusal(Code::os_failed, "inotify_init1", errno);
  stop_ = os::Handle(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop_) return os::os_refusal(Code::os_failed, "eventfd", errno);
  shared_->signals.number = SIGRTMIN + 7;
  sigset_t set, before;
  sigemptyset(&set);
  sigaddset(&set, shared_->signals.number);
  sigaddset(&set, SIGIO);
  signals_ = os::Handle(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_) return os::os_refusal(Code::os_failed, "signalfd", errno);
  // The break thread is born with both blocked. They are sent to it alone, so the caller's mask goes back to what it
  // was, and its threads and children are not concerned.
  pthread_sigmask(SIG_BLOCK, &set, &before);
  std::promise<int> thread_known;
  auto thread = thread_known.get_future();
  auto started = os::start_thread([this, promise = std::move(thread_known)]() mutable { run(std::move(promise)); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  HF_TRY(thread_, std::move(started));
  shared_->signals.thread = thread.get();
  return shared_->orphans.start(shared_->signals);
}

LeaseGuards::~LeaseGuards() {
  if (thread_.joinable()) {
    const std::uint64_t one = 1;
    // Leases first: while the thread that their signals go to still lives.
    for (const auto& file : shared_->registry.all()) file->end("guards_ended");
    [[maybe_unused]] const ssize_t count = ::write(stop_.fd(), &one, sizeof one);
    shared_->orphans.stop();
    thread_.join();
  }
  shared_->observations.wake();
}

void LeaseGuards::run(std::promise<int> thread_known) {
  thread_known.set_value(static_cast<int>(::syscall(SYS_gettid)));
  Files again;
  auto swept_at = steady_clock::now();
  for (;;) {
    std::array<struct pollfd, 3> sources = {
        {{signals_.fd(), POLLIN, 0}, {shared_->watches.fd(), POLLIN, 0}, {stop_.fd(), POLLIN, 0}}};
    ::poll(sources.data(), sources.size(), again.empty() ? kSweepMs : kAgainMs);
    if ((sources[2].revents & POLLIN) != 0) return;
    Files due;
    due.swap(again);
    if ((sources[0].revents & POLLIN) != 0) read_signals(due);
    if ((sources[1].revents & POLLIN) != 0) read_watches(due);
    if (steady_clock::now() - swept_at >= std::chrono::milliseconds(kSweepMs)) {
      swept_at = steady_clock::now();
      attend_all(due);
    }
    for (const auto& file : due) {
      if (file->attend() == GuardedFile::Attention::again_soon) again.insert(file);
    }
  }
}

void LeaseGuards::read_signals(Files& due) {
  std::array<struct signalfd_siginfo, 64> signals{};
  for (;;) {
    const ssize_t count = ::read(signals_.fd(), signals.data(), sizeof signals);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    for (std::size_t at = 0; at < static_cast<std::size_t>(count) / sizeof signals[0]; ++at) {
      // SIGIO: the queue of real-time signals was full, and which descriptor it was is lost.
      if (signals[at].ssi_signo == static_cast<std::uint32_t>(SIGIO)) {
        attend_all(due);
      } else if (auto file = shared_->registry.by_descriptor(signals[at].ssi_fd)) {
        due.insert(std::move(file));
      }
    }
  }
}

void LeaseGuards::read_watches(Files& due) {
  const Watches::Due told = shared_->watches.read();
  if (told.all) attend_all(due);
  for (const auto guard : told.guards) {
    if (auto file = shared_->registry.by_id(guard)) due.insert(std::move(file));
  }
}

}  // namespace

Result<std::unique_ptr<Guards>> make_guards(const os::Handle& root, Guards::Limits limits) {
  auto guards = std::make_unique<LeaseGuards>(limits);
  HF_CHECK(guards->start(root));
  return std::unique_ptr<Guards>(std::move(guards));
}

}  // namespace holdfast::guard
