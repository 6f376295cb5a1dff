#include "os/successor_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "os/file.h"
#include "os/linux/detached_spawn.h"
#include "os/linux/proc_file.h"

extern char** environ;

namespace holdfast::os {
namespace {

Refusal refused(const std::string& why, std::int64_t pid) {
  return Refusal(Code::handoff_refused, why, Json{{"pid", pid}});
}

bool says(const std::string& status, const std::string& line) {
  return status.starts_with(line + "\n") || status.find("\n" + line + "\n") != std::string::npos;
}

}  // namespace

Result<Handle> image_of(const ProcessIdentity& process, std::uint32_t user) {
  const std::string folder = "/proc/" + std::to_string(process.pid);
  if (user != ::geteuid() && user != 0) return refused("whoever asks runs as another user", process.pid);
  if (process.pid <= 0 || process.started_at.empty()) return refused("whoever asks cannot be looked at", process.pid);
  Handle image(::open((folder + "/exe").c_str(), O_PATH | O_CLOEXEC));
  const int error = errno;
  const std::string status = read_proc(folder + "/status");
  // Only now: what was read and opened belongs to this process as long as it lives.
  if (liveness_of(process) != Liveness::alive) return refused("whoever asked has ended", process.pid);
  if (!image) return os_refusal(Code::handoff_refused, "open the program of whoever asks", error);
  if (!says(status, "NoNewPrivs:\t0")) {
    return refused("whoever asks runs under no_new_privs, as a confined program does", process.pid);
  }
  return image;
}

void name_this_process(const std::string& name) { ::prctl(PR_SET_NAME, name.c_str(), 0, 0, 0); }

Result<std::unique_ptr<SuccessorProcess>> SuccessorProcess::start(const Handle& image,
                                                                  const std::vector<std::string>& arguments,
                                                                  const Handle& inherited) {
  // Above the number that is inherited, so that putting that in place closes neither of the two.
  const Handle program(::fcntl(image.fd(), F_DUPFD_CLOEXEC, static_cast<int>(kInheritedNumber) + 1));
  const Handle end(::fcntl(inherited.fd(), F_DUPFD_CLOEXEC, static_cast<int>(kInheritedNumber) + 1));
  if (!program || !end) return os_refusal(Code::handoff_failed, "fcntl(F_DUPFD_CLOEXEC)", errno);
  const std::string path = "/proc/self/fd/" + std::to_string(program.fd());
  std::vector<char*> words;
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);

  DetachedSpawn spawn;
  ::posix_spawn_file_actions_adddup2(spawn.actions(), end.fd(), static_cast<int>(kInheritedNumber));
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, path.c_str(), spawn.actions(), spawn.attributes(), words.data(), environ);
  if (error != 0) return os_refusal(Code::handoff_failed, "start the new image", error);
  return std::unique_ptr<SuccessorProcess>(new SuccessorProcess(pid));
}

SuccessorProcess::~SuccessorProcess() {
  if (!left_) end();
}

void SuccessorProcess::kill() {
  if (pid_ > 0) ::kill(static_cast<pid_t>(pid_), SIGKILL);
}

void SuccessorProcess::ask_to_end() {
  if (pid_ > 0) ::kill(static_cast<pid_t>(pid_), SIGTERM);
}

void SuccessorProcess::end() {
  if (pid_ <= 0) return;
  kill();
  while (::waitpid(static_cast<pid_t>(pid_), nullptr, 0) < 0 && errno == EINTR) {}
  pid_ = 0;
}

}  // namespace holdfast::os
