// Child processes for tests: real ones, spawned (never a bare fork), killed, stopped and waited for.
//
//   Child cat = spawn({"cat"});  cat.write("x\n");  cat.read_line();  cat.kill();  cat.wait();
//
// A test that needs its own code in another process registers it as a role and spawns this very program:
//
//   const RegisterRole kHolder("holder", [](const std::vector<std::string>& arguments) { …; return 0; });
//   Child holder = spawn_as("holder", {folder.path()});     // runs `PROGRAM --as=holder FOLDER`
//
// Where a server that hands over starts this program as its new image, the role that HOLDFAST_PLAYED_IMAGE names runs.
//
// support/main.cc runs the role instead of the tests. A role speaks by stdout, one line at a time (say()), and a test
// waits for such a line instead of sleeping. The destructor kills and reaps.
#pragma once
#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "os/handle.h"

namespace holdfast::support {

class Child {
 public:
  Child(pid_t pid, os::Handle input, os::Handle output);
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  Child(const Child&) = delete;
  ~Child();

  pid_t pid() const { return pid_; }
  void write(const std::string& text);
  void close_input() { input_.reset(); }
  // The next line of its stdout, without the newline; "" at the end or after the limit.
  std::string read_line(int limit_ms = 20'000);
  std::string read_all();  // to the end of its stdout

  void signal(int number);
  void kill();       // SIGKILL
  void terminate();  // SIGTERM
  void stop();       // SIGSTOP, and waits until it has stopped
  void cont();
  // Its exit status, or minus the signal that ended it. Waits; after limit_ms kills it and says -1000.
  int wait(int limit_ms = 60'000);

 private:
  pid_t pid_;
  os::Handle input_;
  os::Handle output_;
  std::string unread_;
  bool reaped_ = false;
  int status_ = 0;
};

struct SpawnOptions {
  std::string folder;                              // "": this process's
  std::map<std::string, std::string> environment;  // added to this process's
  bool stderr_to_stdout = false;
};
Child spawn(const std::vector<std::string>& arguments, const SpawnOptions& options = {});
Child spawn_as(const std::string& role, const std::vector<std::string>& arguments = {},
               const SpawnOptions& options = {});

using Role = std::function<int(const std::vector<std::string>& arguments)>;
struct RegisterRole {
  RegisterRole(const std::string& name, Role role);
};
// Runs the role that argv names by --as=NAME; -1 where it names none. For support/main.cc.
int run_role(int argc, char** argv);

void say(const std::string& line);  // a line on stdout, flushed
std::string hear();                 // a line from stdin; "" at its end

// Polls until the condition holds; false after the limit.
bool eventually(const std::function<bool()>& condition, int limit_ms = 20'000);

}  // namespace holdfast::support
