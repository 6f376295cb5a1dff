#include "os/linux/command_child.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <optional>

#include "os/confinement.h"
#include "os/file.h"
#include "os/linux/child_environment.h"

namespace holdfast::os {
namespace {

constexpr int kMeanwhileMs = 20;
constexpr int kNotStarted = 127;

enum class Step : int { ready, folder, confinement, descriptors, program };

struct Report {
  Step step = Step::ready;
  int error = 0;
};

std::vector<std::string> places_of(const std::string& program, const std::vector<std::string>& variables) {
  if (program.find('/') != std::string::npos) return {program};
  std::string path = "/bin:/usr/bin";
  for (const std::string& variable : variables) {
    if (variable.starts_with("PATH=")) path = variable.substr(5);
  }
  std::vector<std::string> places;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find(':', at), path.size());
    const std::string folder = path.substr(at, end - at);
    places.push_back(folder.empty() ? "./" + program : folder + "/" + program);
    at = end + 1;
  }
  return places;
}

Refusal refusal_of(const Report& report, const std::string& program) {
  switch (report.step) {
    case Step::folder: return os_refusal(Code::command_not_started, "chdir", report.error).with("program", program);
    case Step::program: return os_refusal(Code::command_not_started, "execve", report.error).with("program", program);
    case Step::confinement: return os_refusal(Code::confinement_unavailable, "landlock_restrict_self", report.error);
    case Step::descriptors: return os_refusal(Code::os_failed, "close_range", report.error);
    case Step::ready: break;
  }
  return Refusal(Code::os_failed, "the command's process ended before the command could be started");
}

// nullopt: the other end is gone, and so no report will come.
std::optional<Report> receive_report(const Handle& gate) {
  Report report;
  ssize_t count = 0;
  do { count = ::recv(gate.fd(), &report, sizeof report, MSG_WAITALL); } while (count < 0 && errno == EINTR);
  return count == static_cast<ssize_t>(sizeof report) ? std::optional(report) : std::nullopt;
}

}  // namespace

CommandImage::CommandImage(const std::vector<std::string>& arguments, const CommandOptions& options)
    : words_(arguments),
      variables_(environment_of(options)),
      candidates_(places_of(arguments.front(), variables_)),
      folder_(options.folder),
      input_(options.input == nullptr ? -1 : options.input->fd()),
      confinement_(options.confinement) {
  static char shell[] = "/bin/sh";
  shell_pointers_ = {shell, nullptr};  // the second is the script, once its place is known
  for (std::string& word : words_) argument_pointers_.push_back(word.data());
  for (std::size_t at = 1; at < words_.size(); ++at) shell_pointers_.push_back(words_[at].data());
  for (std::string& variable : variables_) variable_pointers_.push_back(variable.data());
  for (auto* pointers : {&argument_pointers_, &shell_pointers_, &variable_pointers_}) pointers->push_back(nullptr);
}

// Runs after the fork: system calls alone.
class CommandChild {
 public:
  CommandChild(CommandImage& image, int gate) : image_(image), gate_(gate) {}

  [[noreturn]] void run() {
    ::setpgid(0, 0);
    reset_signals();
    // Confined before the descriptors go, the rules' among them.
    if (image_.confinement_ != nullptr) {
      if (const int error = image_.confinement_->enter(); error != 0) give_up(Step::confinement, error);
    }
    if (image_.input_ >= 0 && ::dup2(image_.input_, 0) < 0) give_up(Step::descriptors, errno);
    if (!close_all_but_gate()) give_up(Step::descriptors, errno);
    if (!image_.folder_.empty() && ::chdir(image_.folder_.c_str()) != 0) give_up(Step::folder, errno);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    report(Step::ready, 0);
    wait_at_gate();
    give_up(Step::program, become_program());
  }

 private:
  // What our own starter had us ignore stays ignored (nohup); what we ignore for ourselves, such as SIGPIPE, does not.
  static void reset_signals() {
    for (int number = 1; number < NSIG; ++number) {
      struct sigaction action {};
      if (::sigaction(number, nullptr, &action) != 0) continue;
      const bool may_be_inherited = number == SIGHUP || number == SIGINT || number == SIGQUIT;
      if (may_be_inherited && action.sa_handler == SIG_IGN) continue;
      action = {};
      action.sa_handler = SIG_DFL;
      ::sigaction(number, &action, nullptr);
    }
  }

  bool close_all_but_gate() const {
    const auto gate = static_cast<unsigned>(gate_);
    if (gate > 3 && ::syscall(SYS_close_range, 3U, gate - 1, 0U) != 0) return false;
    return ::syscall(SYS_close_range, gate + 1, UINT_MAX, 0U) == 0;
  }

  void wait_at_gate() const {
    char opened = 0;
    ssize_t count = 0;
    do { count = ::recv(gate_, &opened, 1, 0); } while (count < 0 && errno == EINTR);
    if (count != 1) end();  // our process has ended, or let go of us
  }

  // As execvp does it: the next place where this one has no such program; what was denied is remembered.
  int become_program() const {
    int remembered = ENOENT;
    for (const std::string& candidate : image_.candidates_) {
      ::execve(candidate.c_str(), image_.argument_pointers_.data(), image_.variable_pointers_.data());
      if (errno == ENOEXEC) {
        image_.shell_pointers_[1] = const_cast<char*>(candidate.c_str());
        ::execve(image_.shell_pointers_[0], image_.shell_pointers_.data(), image_.variable_pointers_.data());
      }
      if (errno == EACCES) {
        remembered = EACCES;
      } else if (errno != ENOENT && errno != ENOTDIR && errno != ESTALE && errno != ENODEV && errno != ETIMEDOUT) {
        return errno;
      }
    }
    return remembered;
  }

  void report(Step step, int error) const {
    const Report sent{step, error};
    ::send(gate_, &sent, sizeof sent, MSG_NOSIGNAL);
  }
  [[noreturn]] void give_up(Step step, int error) const {
    report(step, error);
    end();
  }
  // The forked copy of our process ends here, not the process: nothing that exit() would do is wanted.
  [[noreturn]] static void end() {
    for (;;) ::syscall(SYS_exit_group, kNotStarted);
  }

  CommandImage& image_;
  int gate_;
};

Result<ChildAtGate> fork_to_gate(CommandImage& image) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return os_refusal(Code::os_failed, "socketpair", errno);
  }
  ChildAtGate child{0, Handle(ends[0])};
  Handle their_end(ends[1]);
  // A signal that came between fork and reset_signals() would run our handlers in the child.
  sigset_t every;
  sigset_t before;
  sigfillset(&every);
  ::pthread_sigmask(SIG_SETMASK, &every, &before);
  child.pid = ::fork();
  const int error = errno;
  if (child.pid == 0) CommandChild(image, their_end.fd()).run();
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (child.pid < 0) return os_refusal(Code::os_failed, "fork", error);
  their_end.reset();
  const auto report = receive_report(child.gate);
  if (report && report->step == Step::ready) return child;
  ::kill(child.pid, SIGKILL);
  while (::waitpid(child.pid, nullptr, 0) < 0 && errno == EINTR) {}
  return refusal_of(report.value_or(Report{}), image.program());
}

Result<void> open_gate(const Handle& gate, const std::string& program, const std::function<void()>& meanwhile) {
  const char open = 1;
  // Where the child has ended at the gate there is nobody to hear it, and no report either: its status tells.
  ::send(gate.fd(), &open, 1, MSG_NOSIGNAL);
  pollfd answer{gate.fd(), POLLIN, 0};
  while (::poll(&answer, 1, kMeanwhileMs) <= 0) meanwhile();
  const auto report = receive_report(gate);
  if (report) return refusal_of(*report, program);
  return {};
}

}  // namespace holdfast::os
