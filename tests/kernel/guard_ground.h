// A folder to guard files in, other processes to attack them, and the guard's observations.
//
// Attackers are always processes of their own: sh for what a shell can do, and this very program, started again in a
// role (guard_roles_test.cc), for the rest.
#pragma once
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <poll.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "guard/guard.h"

extern char** environ;

namespace holdfast::guard {

inline constexpr int kGenerousMs = 20'000;

template <class Condition>
bool eventually(Condition condition, int limit_ms = kGenerousMs) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(limit_ms);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

inline std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline void put_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

inline os::Handle open_path(const std::string& path, int flags) {
  return os::Handle(::open(path.c_str(), flags | O_CLOEXEC, 0644));
}

inline os::Identity identity_of(const std::string& path) {
  const os::Handle object = open_path(path, O_PATH | O_NOFOLLOW);
  return object ? os::facts_of_open(object).value().identity : os::Identity();
}

inline std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

// A process of its own with a pipe to its input and one from its output; killed when it goes.
class Process {
 public:
  explicit Process(const std::vector<std::string>& command, const std::vector<std::string>& more_environment = {}) {
    int to[2], from[2];
    EXPECT_EQ(0, ::pipe2(to, O_CLOEXEC));
    EXPECT_EQ(0, ::pipe2(from, O_CLOEXEC));
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to[0], 0);
    posix_spawn_file_actions_adddup2(&actions, from[1], 1);
    std::vector<char*> arguments;
    for (const auto& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    std::vector<char*> environment;
    for (const auto& word : more_environment) environment.push_back(const_cast<char*>(word.c_str()));
    for (char** word = environ; *word != nullptr; ++word) environment.push_back(*word);
    environment.push_back(nullptr);
    EXPECT_EQ(0, ::posix_spawn(&pid_, arguments[0], &actions, nullptr, arguments.data(), environment.data()));
    posix_spawn_file_actions_destroy(&actions);
    ::close(to[0]);
    ::close(from[1]);
    input_ = os::Handle(to[1]);
    output_ = os::Handle(from[0]);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  static std::vector<std::string> shell(const std::string& command) { return {"/bin/sh", "-c", command}; }

  // The next line of its output; empty at its end or at the time limit.
  std::string line(int limit_ms = kGenerousMs) {
    for (;;) {
      if (const auto end = pending_.find('\n'); end != std::string::npos) {
        const std::string found = pending_.substr(0, end);
        pending_.erase(0, end + 1);
        return found;
      }
      struct pollfd source {
        output_.fd(), POLLIN, 0
      };
      if (::poll(&source, 1, limit_ms) <= 0) return "";
      char piece[4096];
      const ssize_t count = ::read(output_.fd(), piece, sizeof piece);
      if (count <= 0) return "";
      pending_.append(piece, static_cast<std::size_t>(count));
    }
  }
  void say(const std::string& text) {
    EXPECT_EQ(static_cast<ssize_t>(text.size()), ::write(input_.fd(), text.data(), text.size()));
  }
  void close_input() { input_.reset(); }
  void signal(int number) { ::kill(pid_, number); }
  // Its exit status; -1 where it did not end within the limit.
  int wait(int limit_ms = kGenerousMs) {
    int status = -1;
    if (!eventually([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; }, limit_ms)) return -1;
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  os::Handle input_;
  os::Handle output_;
  std::string pending_;
};

inline int run_shell(const std::string& command) { return Process(Process::shell(command)).wait(); }

// This program again, in a role of guard_roles_test.cc.
inline std::vector<std::string> role_environment(const std::string& role) { return {"HOLDFAST_GUARD_ROLE=" + role}; }
inline std::vector<std::string> role_command(const std::string& one, const std::string& other = "") {
  return {"/proc/self/exe", one, other};
}

// A folder of its own on a file system where leases prove something, or on a fresh tmpfs; taken away again.
class Ground {
 public:
  enum class On { disk, memory };

  explicit Ground(On on = On::disk) {
    std::string base = "/dev/shm";
    for (const char* candidate : {"/tmp", "/var/tmp"}) {
      struct statfs found {};
      if (::statfs(candidate, &found) != 0 || found.f_type == OVERLAYFS_SUPER_MAGIC) continue;
      base = candidate;
      break;
    }
    std::string pattern = (on == On::disk ? base : std::string("/dev/shm")) + "/holdfast-guard-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
    EXPECT_EQ(0, ::chmod(path_.c_str(), 0755));
    std::filesystem::create_directory(path_ + "/in");
    root_ = open_path(path_, O_RDONLY | O_DIRECTORY);
  }
  Ground(const Ground&) = delete;
  Ground& operator=(const Ground&) = delete;
  ~Ground() {
    guards_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& root() const { return path_; }
  std::string folder() const { return path_ + "/in"; }
  std::string path(const std::string& leaf) const { return path_ + "/in/" + leaf; }

  Guards& guards() {
    if (!guards_) guards_ = make_guards(root_, limits).value();
    return *guards_;
  }
  std::unique_ptr<Guard> take(const std::string& leaf) { return guards().take(target(leaf)).value(); }
  Target target(const std::string& leaf) const {
    Target target;
    target.scope = "file://project:/in/" + leaf;
    target.parent = open_path(folder(), O_RDONLY | O_DIRECTORY);
    target.leaf = leaf;
    target.relative = "in/" + leaf;
    return target;
  }

  // Waits for an observation of that kind, keeping all others for later questions.
  std::optional<Observation> observed(const std::string& what, int limit_ms = kGenerousMs) {
    std::optional<Observation> found;
    eventually(
        [&] {
          for (auto& seen : guards().wait_for_observations(5)) seen_.push_back(std::move(seen));
          for (auto at = seen_.begin(); at != seen_.end(); ++at) {
            if (at->what != what) continue;
            found = std::move(*at);
            seen_.erase(at);
            return true;
          }
          return false;
        },
        limit_ms);
    return found;
  }
  bool never_observed(const std::string& what) {
    for (auto& seen : guards().wait_for_observations(50)) seen_.push_back(std::move(seen));
    for (const auto& seen : seen_) {
      if (seen.what == what) return false;
    }
    return true;
  }
  // Names in the folder that are no guarded file's: nothing of ours may stay behind.
  std::vector<std::string> leftovers() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder())) {
      const std::string name = entry.path().filename();
      if (name.rfind(".holdfast-", 0) == 0) names.push_back(name);
    }
    return names;
  }

  Guards::Limits limits;

 private:
  std::string path_;
  os::Handle root_;
  std::unique_ptr<Guards> guards_;
  std::vector<Observation> seen_;
};

// A whole replacement, as the engine does it.
inline Result<Exchanged> replace_with(Guard& guard, const std::string& bytes,
                                      const std::function<Result<void>()>& before = {}) {
  HF_TRY(auto staged, guard.stage());
  HF_CHECK(staged->write(bytes));
  HF_TRY(auto preimage, guard.open_preimage());
  std::optional<Metadata> metadata;
  if (preimage) { HF_TRY(metadata, metadata_of_open(*preimage)); }
  HF_TRY(const auto digest, staged->seal(metadata));
  if (digest.sha256 != sha256_hex(bytes)) return Refusal(Code::staging_failed, "the seal's digest is another one");
  HF_CHECK(guard.check());
  HF_TRY(Exchanged exchanged, guard.exchange(*staged, ".holdfast-0123456789abcdef.tmp", before));
  return exchanged;
}

inline std::string text_of(const os::Handle& object) { return os::read_whole(object, 1U << 20U).value(); }

}  // namespace holdfast::guard
