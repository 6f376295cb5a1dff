#include "os/command_process.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

#include "os/file.h"
#include "os/linux/command_child.h"
#include "os/linux/process_tree.h"
#include "os/linux/terminal_loan.h"

namespace holdfast::os {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::array kPassedOn = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT, SIGALRM};

constexpr int kRoundMs = 250;       // a stop is noticed then where its SIGCHLD went to another thread
constexpr int kEndingRoundMs = 10;  // between two looks at what is left
constexpr int kKilledWithinMs = 10'000;
constexpr int kStopsWithinMs = 200;  // a stop of ourselves takes effect at once, or never
constexpr std::chrono::seconds kReapEvery{1};
constexpr int kSignalStatus = 128;

class Deadline {
 public:
  explicit Deadline(int limit_ms) : unlimited_(limit_ms < 0), end_(SteadyClock::now() + ms(std::max(limit_ms, 0))) {}

  bool is_past() const { return !unlimited_ && SteadyClock::now() >= end_; }
  // Rounded up: a wait that ends just before the limit would only be repeated.
  int left_ms(int at_most) const {
    if (unlimited_) return at_most;
    const auto left = std::chrono::ceil<ms>(end_ - SteadyClock::now()).count();
    return static_cast<int>(std::clamp<std::int64_t>(left, 0, at_most));
  }

 private:
  using ms = std::chrono::milliseconds;
  bool unlimited_;
  SteadyClock::time_point end_;
};

}  // namespace

struct CommandProcess::State {
  ~State();
  Result<void> take_signals();
  Result<void> begin(const std::vector<std::string>& arguments, const CommandOptions& options);

  bool has_ended();
  bool watch(const Deadline& limit);
  bool pass_on_signals(bool with_continue);
  void reap_now_and_then();
  void follow_stop();
  bool stop_ourselves();
  bool kill_what_is_left();
  void close_down();

  std::string program;
  std::function<bool()> may_continue;
  bool whole_tree = false;
  pid_t pid = 0;
  ProcessIdentity identity;
  Handle gate;
  Handle ended;    // readable when the program has ended
  Handle signals;  // what arrives at us
  Handle woken;    // interrupt()
  bool signals_taken = false;
  sigset_t mask_before{};
  struct sigaction child_action_before {};
  TerminalLoan terminal;
  CommandTree tree;
  std::optional<int> status;
  bool killed_by_signal = false;
  bool child_changed = false;
  SteadyClock::time_point reaped_at;
  bool held_back = false;  // stopped, and not to go on
  bool closed_down = false;
  std::vector<std::int64_t> survivors;
};

// --- beginning

Result<void> CommandProcess::State::take_signals() {
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int number : kPassedOn) sigaddset(&wanted, number);
  sigaddset(&wanted, SIGCHLD);
  signals = Handle(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals) return os_refusal(Code::os_failed, "signalfd", errno);
  woken = Handle(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!woken) return os_refusal(Code::os_failed, "eventfd", errno);
  if (const int error = ::pthread_sigmask(SIG_BLOCK, &wanted, &mask_before); error != 0) {
    return os_refusal(Code::os_failed, "pthread_sigmask", error);
  }
  // Where our starter had SIGCHLD ignored, the kernel would throw the program's status away.
  struct sigaction by_default {};
  by_default.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &by_default, &child_action_before);
  signals_taken = true;
  return {};
}

Result<void> CommandProcess::State::begin(const std::vector<std::string>& arguments, const CommandOptions& options) {
  program = arguments.front();
  may_continue = options.may_continue;
  whole_tree = options.whole_tree;
  HF_CHECK(take_signals());
  if (whole_tree) HF_CHECK(tree.adopt(options.spares));
  terminal.find();
  CommandImage image(arguments, options);
  HF_TRY(ChildAtGate child, fork_to_gate(image));
  pid = child.pid;
  gate = std::move(child.gate);
  tree.follow(pid);
  const long opened = ::syscall(SYS_pidfd_open, pid, 0);
  if (opened < 0) return os_refusal(Code::os_failed, "pidfd_open", errno);
  ended = Handle(static_cast<Handle::Native>(opened));
  HF_TRY(identity, process_of_pid(pid));
  return {};
}

Result<std::unique_ptr<CommandProcess>> CommandProcess::start(const std::vector<std::string>& arguments,
                                                              const CommandOptions& options) {
  HF_ASSERT(!arguments.empty());
  std::unique_ptr<CommandProcess> command(new CommandProcess(std::make_unique<State>()));
  HF_CHECK(command->state_->begin(arguments, options));
  return command;
}

CommandProcess::CommandProcess(std::unique_ptr<State> state) : state_(std::move(state)) {}
CommandProcess::~CommandProcess() = default;

std::int64_t CommandProcess::pid() const { return state_->pid; }
const ProcessIdentity& CommandProcess::identity() const { return state_->identity; }
const std::vector<std::int64_t>& CommandProcess::survivors() const { return state_->survivors; }

Result<void> CommandProcess::release_gate() {
  HF_ASSERT(state_->gate);
  // In the foreground before it runs: what it does first may be to read what is typed.
  if (state_->terminal.is_standard_input()) state_->terminal.lend(state_->pid);
  const Handle gate = std::move(state_->gate);
  auto opened = open_gate(gate, state_->program, [this] { state_->follow_stop(); });
  if (!opened) state_->terminal.take_back(false);
  return opened;
}

// --- ending

// Looks, and leaves the ended process unreaped: until the destructor its number, and its group's, are nobody else's.
bool CommandProcess::State::has_ended() {
  if (status || pid == 0) return true;
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
    return false;
  killed_by_signal = info.si_code != CLD_EXITED;
  status = killed_by_signal ? kSignalStatus + info.si_status : info.si_status;
  return true;
}

bool CommandProcess::State::kill_what_is_left() {
  const Deadline limit(kKilledWithinMs);
  int quiet = 0;
  for (;;) {
    const std::vector<ProcessEntry> left = tree.running();
    quiet = left.empty() ? quiet + 1 : 0;
    if (quiet == 2) return true;  // one reading alone may miss a process
    survivors.clear();
    for (const ProcessEntry& entry : left) survivors.push_back(entry.pid);
    if (limit.is_past()) return false;
    if (!left.empty()) {
      tree.signal(SIGKILL);
      (void)::poll(nullptr, 0, 1);
    }
    tree.reap();
  }
}

// Once, when the program has ended: by itself or killed.
void CommandProcess::State::close_down() {
  if (std::exchange(closed_down, true)) return;
  if (whole_tree) kill_what_is_left();
  terminal.take_back(killed_by_signal);
}

std::optional<int> CommandProcess::terminate(int grace_ms) {
  State& state = *state_;
  state.tree.signal(SIGTERM);
  state.tree.signal(SIGCONT);  // a stopped one does not hear it otherwise
  const Deadline grace(grace_ms);
  while (!grace.is_past() && !state.tree.running().empty()) {
    pollfd arrived{state.signals.fd(), POLLIN, 0};
    (void)::poll(&arrived, 1, grace.left_ms(kEndingRoundMs));
    state.pass_on_signals(true);
    state.tree.reap();
  }
  state.kill_what_is_left();
  if (!state.has_ended()) return std::nullopt;
  state.close_down();
  return state.status;
}

CommandProcess::State::~State() {
  if (pid != 0) {
    if (!has_ended() || whole_tree) kill_what_is_left();
    terminal.take_back(true);
    tree.reap();
    // Not waited for without end: what hangs in the kernel would take us with it.
    ::waitpid(pid, nullptr, WNOHANG);
  }
  if (!signals_taken) return;
  signalfd_siginfo taken{};
  while (::read(signals.fd(), &taken, sizeof taken) > 0) {}
  ::sigaction(SIGCHLD, &child_action_before, nullptr);
  ::pthread_sigmask(SIG_SETMASK, &mask_before, nullptr);
}

// --- running

std::optional<int> CommandProcess::wait(int limit_ms) {
  const Deadline limit(limit_ms);
  for (bool last = false;; last = !state_->watch(limit)) {
    if (state_->has_ended()) {
      state_->close_down();
      return state_->status;
    }
    if (last) return std::nullopt;
  }
}

// One round; false: it is the last, by the limit or by interrupt().
bool CommandProcess::State::watch(const Deadline& limit) {
  std::array<pollfd, 3> sources = {{{ended.fd(), POLLIN, 0}, {signals.fd(), POLLIN, 0}, {woken.fd(), POLLIN, 0}}};
  (void)::poll(sources.data(), sources.size(), limit.left_ms(kRoundMs));
  pass_on_signals(!held_back);
  follow_stop();
  reap_now_and_then();
  std::uint64_t count = 0;
  const bool interrupted = ::read(woken.fd(), &count, sizeof count) > 0;
  return !interrupted && !limit.is_past();
}

// Ended orphans are nobody's hurry, and reading all of /proc is not free.
void CommandProcess::State::reap_now_and_then() {
  if (!child_changed || SteadyClock::now() < reaped_at + kReapEvery) return;
  child_changed = false;
  tree.reap();
  reaped_at = SteadyClock::now();
}

void CommandProcess::interrupt() {
  const std::uint64_t one = 1;
  while (::write(state_->woken.fd(), &one, sizeof one) < 0 && errno == EINTR) {}
}

// true: SIGCONT was among them.
bool CommandProcess::State::pass_on_signals(bool with_continue) {
  bool continued = false;
  signalfd_siginfo arrived{};
  while (::read(signals.fd(), &arrived, sizeof arrived) == static_cast<ssize_t>(sizeof arrived)) {
    const int number = static_cast<int>(arrived.ssi_signo);
    if (number == SIGCONT) continued = true;
    if (number == SIGCHLD) child_changed = true;
    if (number == SIGCHLD || (number == SIGCONT && !with_continue)) continue;
    ::kill(-pid, number);
  }
  return continued;
}

void CommandProcess::State::follow_stop() {
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid), &info, WSTOPPED | WNOHANG) != 0 || info.si_pid == 0) return;
  if (!terminal.exists()) return;
  // It wanted the terminal while it was in the background; by now, or by `fg`, the terminal is ours to give.
  const bool wants_terminal = info.si_status == SIGTTIN || info.si_status == SIGTTOU;
  if (wants_terminal && terminal.lend(pid)) {
    ::kill(-pid, SIGCONT);
    return;
  }
  terminal.take_back(true);
  // A stop that no shell is there to undo did not happen to us; it is not to happen to the program either.
  if (!stop_ourselves() && info.si_status != SIGTSTP) return;
  if (may_continue && !may_continue()) {
    held_back = true;
    const std::uint64_t one = 1;
    (void)!::write(woken.fd(), &one, sizeof one);
    return;
  }
  terminal.lend(pid);
  ::kill(-pid, SIGCONT);
}

// Our whole group, as the terminal would have done it, so that a pipeline stops as one job. SIGTSTP and not SIGSTOP:
// the kernel passes it over where no shell could continue us. SIGCONT is blocked and stays to be read: whoever finds
// none a moment later has not been stopped.
bool CommandProcess::State::stop_ourselves() {
  ::kill(0, SIGTSTP);
  const Deadline limit(kStopsWithinMs);
  for (;;) {
    const bool last = limit.is_past();
    pollfd arrived{signals.fd(), POLLIN, 0};
    (void)::poll(&arrived, 1, limit.left_ms(kStopsWithinMs));
    if (pass_on_signals(false)) return true;
    if (last) return false;
  }
}

}  // namespace holdfast::os
