// One attacker of the doctor: a process that is asked, a line at a time, and may be lost at any time.
//
// Asked {"way","name","other"}, it answers {"errno":N}; for the ways `take_transition`, `take_lock` and `let_go` also
// {"held":true|false}. The first question may be {"way":"become_user","user":N}.
// A process that was lost, or that took too long and was ended, is started anew by the next question.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/result.h"
#include "os/child_process.h"

namespace holdfast::engine {

struct AttackerReply {
  int error = 0;              // of the attack; 0 where it succeeded
  bool held = false;          // of a lock
  bool kept_waiting = false;  // no answer in time: it was ended
  int ended_by = 0;           // the signal that ended the attacker in the middle; 0: it lives
};

class DoctorAttacker {
 public:
  DoctorAttacker(std::vector<std::string> words, std::string folder, std::optional<std::uint32_t> user,
                 std::function<bool()> asked_to_end)
      : words_(std::move(words)), folder_(std::move(folder)), user_(user), asked_to_end_(std::move(asked_to_end)) {}

  Result<AttackerReply> ask(const std::string& way, const std::string& name = "", const std::string& other = "");
  // Ends it as a crash would, and waits until it is gone.
  void kill();

 private:
  Result<void> start();
  Result<AttackerReply> exchange(const Json& question);

  std::vector<std::string> words_;
  std::string folder_;
  std::optional<std::uint32_t> user_;
  std::function<bool()> asked_to_end_;
  std::unique_ptr<os::ChildProcess> process_;
};

}  // namespace holdfast::engine
