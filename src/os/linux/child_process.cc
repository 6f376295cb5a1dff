#include "os/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <climits>

#include "os/file.h"
#include "os/linux/child_environment.h"
#include "os/stream.h"

namespace holdfast::os {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int kPauseMs = 2;

struct Pipe {
  Handle read;
  Handle write;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return os_refusal(Code::os_failed, "pipe2", errno);
  return Pipe{Handle(ends[0]), Handle(ends[1])};
}

std::vector<char*> pointers_of(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// What posix_spawn is told: streams, folder, a process group of its own, signals as by default.
class SpawnPlan {
 public:
  SpawnPlan() {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
  }
  ~SpawnPlan() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  int prepare(const Pipe& input, const Pipe& output, const Pipe& errors, const std::string& folder) {
    sigset_t none;
    sigset_t every;
    sigemptyset(&none);
    sigfillset(&every);
    int error = ::posix_spawn_file_actions_adddup2(&actions_, input.read.fd(), 0);
    if (error == 0) error = ::posix_spawn_file_actions_adddup2(&actions_, output.write.fd(), 1);
    if (error == 0) error = ::posix_spawn_file_actions_adddup2(&actions_, errors.write.fd(), 2);
    // What this process was started with may be open for every program; the child is not to hold it.
    if (error == 0) error = ::posix_spawn_file_actions_addclosefrom_np(&actions_, 3);
    if (error == 0 && !folder.empty()) error = ::posix_spawn_file_actions_addchdir_np(&actions_, folder.c_str());
    if (error == 0) error = ::posix_spawnattr_setsigmask(&attributes_, &none);
    if (error == 0) error = ::posix_spawnattr_setsigdefault(&attributes_, &every);
    if (error == 0) error = ::posix_spawnattr_setpgroup(&attributes_, 0);
    constexpr short kFlags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP;
    if (error == 0) error = ::posix_spawnattr_setflags(&attributes_, kFlags);
    return error;
  }
  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

// Takes what is there; the stream is closed at its end.
void take(Handle& stream, std::string& into) {
  std::array<char, 4096> piece;
  while (stream) {
    const ssize_t count = ::read(stream.fd(), piece.data(), piece.size());
    if (count > 0) {
      into.append(piece.data(), static_cast<std::size_t>(count));
    } else if (count == 0 || (errno != EINTR && errno != EAGAIN)) {
      stream.reset();
    } else if (errno == EAGAIN) {
      return;
    }
  }
}

bool is_past(SteadyClock::time_point end) { return SteadyClock::now() >= end; }

}  // namespace

Result<std::unique_ptr<ChildProcess>> ChildProcess::start(const std::vector<std::string>& arguments,
                                                          const ChildOptions& options) {
  HF_ASSERT(!arguments.empty());
  HF_TRY(Pipe input, make_pipe());
  HF_TRY(Pipe output, make_pipe());
  HF_TRY(Pipe errors, make_pipe());
  SpawnPlan plan;
  if (const int error = plan.prepare(input, output, errors, options.folder); error != 0) {
    return os_refusal(Code::os_failed, "posix_spawn_file_actions", error);
  }
  std::vector<std::string> words = arguments;
  std::vector<std::string> variables = environment_of(options);
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, words.front().c_str(), plan.actions(), plan.attributes(),
                                   pointers_of(words).data(), pointers_of(variables).data());
  if (error != 0) return os_refusal(Code::os_failed, "posix_spawn", error).with("program", arguments.front());
  std::unique_ptr<ChildProcess> child(new ChildProcess());
  child->pid_ = pid;
  child->input_ = std::move(input.write);
  child->output_end_ = std::move(output.read);
  child->errors_end_ = std::move(errors.read);
  for (const Handle* end : {&child->output_end_, &child->errors_end_}) {
    if (::fcntl(end->fd(), F_SETFL, O_NONBLOCK) != 0) return os_refusal(Code::os_failed, "fcntl", errno);
  }
  return child;
}

ChildProcess::~ChildProcess() {
  if (reaped_) return;
  kill();
  reap(true);
}

Result<void> ChildProcess::say(std::string_view text) { return write_stream(input_, text, Code::os_failed); }

void ChildProcess::listen(int limit_ms) {
  std::array<pollfd, 2> streams = {{{output_end_.fd(), POLLIN, 0}, {errors_end_.fd(), POLLIN, 0}}};
  (void)::poll(streams.data(), streams.size(), limit_ms);  // a negative descriptor is passed over
  take(output_end_, output_);
  take(errors_end_, errors_);
}

bool ChildProcess::reap(bool block) {
  int status = 0;
  pid_t found = 0;
  do { found = ::waitpid(static_cast<pid_t>(pid_), &status, block ? 0 : WNOHANG); } while (found < 0 && errno == EINTR);
  if (found == 0) return false;
  reaped_ = true;
  if (found > 0) status_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return true;
}

std::optional<std::string> ChildProcess::read_line(int limit_ms, const std::function<void()>& meanwhile) {
  const auto end = SteadyClock::now() + std::chrono::milliseconds(limit_ms);
  for (;;) {
    if (const auto newline = output_.find('\n', lines_read_to_); newline != std::string::npos) {
      std::string line = output_.substr(lines_read_to_, newline - lines_read_to_);
      lines_read_to_ = newline + 1;
      return line;
    }
    if (!output_end_ || is_past(end)) return std::nullopt;
    if (meanwhile) meanwhile();
    listen(kPauseMs);
  }
}

Result<void> ChildProcess::stop() {
  if (reaped_ || ::kill(-static_cast<pid_t>(pid_), SIGSTOP) != 0) {
    return os_refusal(Code::os_failed, "kill", reaped_ ? ESRCH : errno);
  }
  siginfo_t seen{};
  while (::waitid(P_PID, static_cast<id_t>(pid_), &seen, WSTOPPED | WEXITED | WNOWAIT) != 0) {
    if (errno != EINTR) return os_refusal(Code::os_failed, "waitid", errno);
  }
  if (seen.si_code == CLD_STOPPED) return {};
  return Refusal(Code::os_failed, "the process ended before it could be stopped");
}

void ChildProcess::resume() {
  if (!reaped_) ::kill(-static_cast<pid_t>(pid_), SIGCONT);
}

void ChildProcess::kill() {
  if (!reaped_) ::kill(-static_cast<pid_t>(pid_), SIGKILL);
}

int ChildProcess::wait(int limit_ms, const std::function<void()>& meanwhile) {
  const auto end = SteadyClock::now() + std::chrono::milliseconds(limit_ms);
  bool late = false;
  while (!reaped_ && !reap(false)) {
    if (meanwhile) meanwhile();
    if (!late && is_past(end)) {
      late = true;
      kill();
    }
    listen(kPauseMs);
    // Both streams may have ended long before the process does.
    if (!output_end_ && !errors_end_) (void)::poll(nullptr, 0, kPauseMs);
  }
  listen(0);
  return late ? kTookTooLong : status_;
}

Result<std::string> this_program() {
  const std::string own = "/proc/" + std::to_string(::getpid()) + "/exe";
  std::string path(PATH_MAX, '\0');
  const ssize_t count = ::readlink(own.c_str(), path.data(), path.size());
  if (count <= 0) return os_refusal(Code::os_failed, "readlink", errno);
  path.resize(static_cast<std::size_t>(count));
  struct stat running {};
  struct stat named {};
  const bool same = ::stat(own.c_str(), &running) == 0 && ::stat(path.c_str(), &named) == 0 &&
                    running.st_dev == named.st_dev && running.st_ino == named.st_ino;
  return same ? path : own;  // the link leads to the running file even where no name does any more
}

}  // namespace holdfast::os
