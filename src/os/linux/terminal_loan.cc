#include "os/linux/terminal_loan.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>

namespace holdfast::os {
namespace {

// Who changes a terminal from the background is stopped by it, unless the signal for that is blocked.
class UnstoppedByTerminal {
 public:
  UnstoppedByTerminal() {
    sigset_t output;
    sigemptyset(&output);
    sigaddset(&output, SIGTTOU);
    ::pthread_sigmask(SIG_BLOCK, &output, &before_);
  }
  ~UnstoppedByTerminal() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  UnstoppedByTerminal(const UnstoppedByTerminal&) = delete;
  UnstoppedByTerminal& operator=(const UnstoppedByTerminal&) = delete;

 private:
  sigset_t before_{};
};

std::optional<termios> modes_of(const Handle& terminal) {
  termios modes{};
  return ::tcgetattr(terminal.fd(), &modes) == 0 ? std::optional(modes) : std::nullopt;
}

bool is_gone(pid_t group) { return ::kill(-group, 0) != 0 && errno == ESRCH; }

}  // namespace

void TerminalLoan::find() {
  // tcgetpgrp succeeds for the terminal that controls us alone.
  is_standard_input_ = ::isatty(STDIN_FILENO) == 1 && ::tcgetpgrp(STDIN_FILENO) > 0;
  if (is_standard_input_) {
    terminal_ = Handle(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  } else {
    terminal_ = Handle(::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY));
  }
}

bool TerminalLoan::is_ours() const { return exists() && ::tcgetpgrp(terminal_.fd()) == ::getpgrp(); }

bool TerminalLoan::lend(pid_t group) {
  if (!is_ours()) return false;
  const UnstoppedByTerminal unstopped;
  our_modes_ = modes_of(terminal_);
  if (their_modes_) ::tcsetattr(terminal_.fd(), TCSANOW, &*their_modes_);
  if (::tcsetpgrp(terminal_.fd(), group) != 0) return false;
  lent_to_ = group;
  return true;
}

void TerminalLoan::take_back(bool restore_modes) {
  if (lent_to_ == 0) return;
  const pid_t foreground = ::tcgetpgrp(terminal_.fd());
  const bool still_lent = foreground == lent_to_ || (foreground > 0 && is_gone(foreground));
  lent_to_ = 0;
  if (!still_lent) return;
  const UnstoppedByTerminal unstopped;
  their_modes_ = modes_of(terminal_);
  if (restore_modes && our_modes_) ::tcsetattr(terminal_.fd(), TCSANOW, &*our_modes_);
  ::tcsetpgrp(terminal_.fd(), ::getpgrp());
}

}  // namespace holdfast::os
