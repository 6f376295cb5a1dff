#include "support/child.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <thread>

namespace holdfast::support {
namespace {

std::map<std::string, Role>& roles() {
  static std::map<std::string, Role> registered;
  return registered;
}

[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  std::abort();
}

struct Pipe {
  os::Handle reading;
  os::Handle writing;
};
Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) give_up("pipe2");
  return {os::Handle(ends[0]), os::Handle(ends[1])};
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> found;
  for (std::string& text : texts) found.push_back(text.data());
  found.push_back(nullptr);
  return found;
}

std::vector<std::string> environment_with(const std::map<std::string, std::string>& added) {
  std::vector<std::string> found;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text(*entry);
    if (!added.contains(text.substr(0, text.find('=')))) found.push_back(text);
  }
  for (const auto& [name, value] : added) found.push_back(name + "=" + value);
  return found;
}

}  // namespace

Child::Child(pid_t pid, os::Handle input, os::Handle output)
    : pid_(pid), input_(std::move(input)), output_(std::move(output)) {}

Child::Child(Child&& other) noexcept
    : pid_(other.pid_),
      input_(std::move(other.input_)),
      output_(std::move(other.output_)),
      unread_(std::move(other.unread_)),
      reaped_(std::exchange(other.reaped_, true)),
      status_(other.status_) {}

Child::~Child() {
  if (reaped_) return;
  kill();
  wait();
}

void Child::write(const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = ::write(input_.fd(), text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return;
    done += static_cast<std::size_t>(count);
  }
}

std::string Child::read_line(int limit_ms) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(limit_ms);
  for (;;) {
    if (const auto newline = unread_.find('\n'); newline != std::string::npos) {
      std::string line = unread_.substr(0, newline);
      unread_.erase(0, newline + 1);
      return line;
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd ready{output_.fd(), POLLIN, 0};
    if (left.count() <= 0) return "";
    if (::poll(&ready, 1, static_cast<int>(left.count())) <= 0) continue;
    char piece[4096];
    const ssize_t count = ::read(output_.fd(), piece, sizeof piece);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return "";
    unread_.append(piece, static_cast<std::size_t>(count));
  }
}

std::string Child::read_all() {
  char piece[4096];
  for (;;) {
    const ssize_t count = ::read(output_.fd(), piece, sizeof piece);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::exchange(unread_, {});
    unread_.append(piece, static_cast<std::size_t>(count));
  }
}

void Child::signal(int number) {
  if (!reaped_) ::kill(pid_, number);
}
void Child::kill() { signal(SIGKILL); }
void Child::terminate() { signal(SIGTERM); }
void Child::cont() { signal(SIGCONT); }
void Child::stop() {
  signal(SIGSTOP);
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WEXITED | WNOWAIT) != 0 && errno == EINTR) {}
}

int Child::wait(int limit_ms) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(limit_ms);
  bool late = false;
  while (!reaped_) {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      reaped_ = true;
      status_ = late ? -1000 : WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    } else if (!late && std::chrono::steady_clock::now() > end) {
      late = true;
      kill();
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  return status_;
}

Child spawn(const std::vector<std::string>& arguments, const SpawnOptions& options) {
  Pipe input = make_pipe();
  Pipe output = make_pipe();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input.reading.fd(), 0);
  posix_spawn_file_actions_adddup2(&actions, output.writing.fd(), 1);
  if (options.stderr_to_stdout) posix_spawn_file_actions_adddup2(&actions, output.writing.fd(), 2);
  if (!options.folder.empty()) posix_spawn_file_actions_addchdir_np(&actions, options.folder.c_str());
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  std::vector<std::string> texts = arguments;
  std::vector<std::string> environment = environment_with(options.environment);
  std::vector<char*> argv = pointers(texts);
  std::vector<char*> envp = pointers(environment);
  pid_t pid = -1;
  const int error = ::posix_spawnp(&pid, argv[0], &actions, &attributes, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    errno = error;
    give_up(arguments.at(0).c_str());
  }
  return Child(pid, std::move(input.writing), std::move(output.reading));
}

Child spawn_as(const std::string& role, const std::vector<std::string>& arguments, const SpawnOptions& options) {
  char self[4096];
  const ssize_t length = ::readlink("/proc/self/exe", self, sizeof self);
  if (length <= 0) give_up("/proc/self/exe");
  std::vector<std::string> argv = {std::string(self, static_cast<std::size_t>(length)), "--as=" + role};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return spawn(argv, options);
}

RegisterRole::RegisterRole(const std::string& name, Role role) { roles()[name] = std::move(role); }

int run_role(int argc, char** argv) {
  // Started as the new image of a server (PROGRAM --workspace ROOT adopt NUMBER): a test plays one that is none.
  if (argc == 5 && std::string(argv[3]) == "adopt") {
    const char* played = std::getenv("HOLDFAST_PLAYED_IMAGE");
    const auto image = roles().find(played == nullptr ? "" : played);
    return image == roles().end() ? 97 : image->second({argv[2], argv[4]});
  }
  const std::string first = argc > 1 ? argv[1] : "";
  if (!first.starts_with("--as=")) return -1;
  const auto role = roles().find(first.substr(5));
  if (role == roles().end()) {
    std::cerr << "no role " << first << "\n";
    return 2;
  }
  return role->second(std::vector<std::string>(argv + 2, argv + argc));
}

void say(const std::string& line) { std::cout << line << std::endl; }

std::string hear() {
  std::string line;
  std::getline(std::cin, line);
  return line;
}

bool eventually(const std::function<bool()>& condition, int limit_ms) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(limit_ms);
  for (;;) {
    if (condition()) return true;
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace holdfast::support
