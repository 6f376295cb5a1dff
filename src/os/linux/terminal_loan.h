// The terminal, lent to a command and taken back, as a shell does for a job.
//
// A terminal has one foreground group: it alone reads what is typed, and it gets the signals of the keys. Our group is
// in the foreground when we are started; lend() puts the command's there, take_back() ours.
// The terminal is standard input, or else the one that controls us. Where there is none, nothing here does anything.
// Promises: never lent unless our group is in the foreground; never taken from anybody but who got it from us. Its
// modes (echo, lines) are saved and put back, so that a killed editor leaves no mute terminal. Threads: one at a time.
#pragma once
#include <sys/types.h>
#include <termios.h>

#include <optional>

#include "os/handle.h"

namespace holdfast::os {

class TerminalLoan {
 public:
  void find();
  bool exists() const { return static_cast<bool>(terminal_); }
  bool is_standard_input() const { return is_standard_input_; }
  bool is_ours() const;  // our group is in the foreground

  bool lend(pid_t group);
  void take_back(bool restore_modes);

 private:
  Handle terminal_;
  bool is_standard_input_ = false;
  pid_t lent_to_ = 0;
  std::optional<termios> our_modes_;
  std::optional<termios> their_modes_;
};

}  // namespace holdfast::os
