// One workspace and one server for a whole run of benchmarks, a request to it, and what processes take of the memory.
#pragma once
#include <sys/types.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>

#include "os/local_socket.h"
#include "os/workspace_folder.h"
#include "server/client.h"
#include "support/child.h"
#include "support/temporary_folder.h"

namespace holdfast::bench {

// A line of a file of /proc that begins with `name`, in KiB.
inline long kib_of(pid_t pid, const std::string& file, const std::string& name) {
  std::ifstream lines("/proc/" + std::to_string(pid) + "/" + file);
  for (std::string word; lines >> word;) {
    if (word != name) continue;
    long kib = 0;
    lines >> kib;
    return kib;
  }
  return 0;
}
inline long resident_kib(pid_t pid) { return kib_of(pid, "status", "VmRSS:"); }
inline long proportional_kib(pid_t pid) { return kib_of(pid, "smaps_rollup", "Pss:"); }

inline Json ask(os::Connection& connection, const std::string& verb, Json arguments, ContentSource* content = nullptr) {
  arguments["cwd"] = "/";
  auto answer = call_server(connection, Json{{"verb", verb}, {"arguments", std::move(arguments)}}, content, {});
  if (!answer.ok()) {
    std::fprintf(stderr, "%s: %s\n", verb.c_str(), answer.refusal().message().c_str());
    std::abort();
  }
  return std::move(answer).value();
}

class Ground {
 public:
  static Ground& get() {
    static Ground ground;
    return ground;
  }
  std::unique_ptr<os::Connection> connect() {
    auto folder = os::open_workspace(folder_.path());
    auto connection = os::connect_to_server(folder->squad);
    return std::make_unique<os::Connection>(std::move(connection).value());
  }
  const support::TemporaryFolder& folder() const { return folder_; }
  pid_t server() const { return server_->pid(); }
  long server_resident_kib() const { return resident_kib(server()); }

 private:
  Ground() {
    support::spawn({HOLDFAST_PROGRAM, "--workspace", folder_.path(), "init"}).wait();
    server_ =
        std::make_unique<support::Child>(support::spawn({HOLDFAST_PROGRAM, "--workspace", folder_.path(), "serve"}));
    server_->read_line();
  }
  support::TemporaryFolder folder_;
  std::unique_ptr<support::Child> server_;
};

}  // namespace holdfast::bench
