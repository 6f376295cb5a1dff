// The challenge's scratch workspace: a folder of its own, this very program as child processes in it, and its files as
// anybody sees them.
//
// Calling sequence: make(), ask({"init"}), serve(), anything, end_server(). The destructor ends the server and removes
// the folder, unless keep().
// Promises: nothing outside the folder is touched; the children see no HOLDFAST_ variable; the server ends with this
// process, however that ends; every child that was asked is in the transcript with what it printed.
// Errors: os_failed, state_persist_failed. Threads: one.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/result.h"
#include "os/child_process.h"

namespace holdfast::cli::challenge {

// What a child answered with --json.
struct Answer {
  int status = 0;
  Json document = Json::object();

  bool ok() const { return status == 0; }
  std::string code() const;     // of a refusal; "" of a success
  std::string message() const;  // begins with the code
  Json details() const;         // of a refusal
};

// The answer in one line of a child's output. os_failed where it is no JSON object.
Result<Answer> answer_of_line(const std::string& line, int status);

class Scratch {
 public:
  static Result<std::unique_ptr<Scratch>> make(const std::string& parent);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::string& folder() const { return folder_; }
  const std::string& program() const { return program_; }
  std::string workspace() const { return folder_ + "/workspace"; }
  std::string in(const std::string& relative) const { return workspace() + "/" + relative; }
  std::string aside(const std::string& name) const { return folder_ + "/" + name; }  // beside the workspace
  void keep() { keep_ = true; }

  Result<Answer> ask(const std::vector<std::string>& words) { return ask_in(workspace(), words); }
  Result<Answer> ask_in(const std::string& workspace, const std::vector<std::string>& words);
  // Any other child, in the workspace's folder.
  Result<std::unique_ptr<os::ChildProcess>> start(const std::vector<std::string>& arguments) const;
  void note(const std::vector<std::string>& arguments, const os::ChildProcess& child, int status);
  Json take_transcript() { return std::exchange(transcript_, Json::array()); }

  Result<Json> serve();  // what it said when it was ready
  std::int64_t server_pid() const { return server_pid_; }
  void end_server();

  // Files by their path. Written in place: only for what no lease is on.
  static Result<void> put(const std::string& path, const std::string& bytes);
  static std::optional<std::string> bytes_at(const std::string& path);

  // The evidence chain as its files say. A place is what was there at a moment; events_since() gives what came later.
  std::size_t place_in_evidence() const;
  std::vector<Json> events_since(std::size_t place) const;
  // The first later event that fits, within the limit.
  std::optional<Json> await_event(std::size_t place, const std::function<bool(const Json&)>& fits, int limit_ms) const;
  std::map<std::string, std::string> evidence_segments() const { return evidence_segments_in(workspace()); }
  static std::map<std::string, std::string> evidence_segments_in(const std::string& workspace);
  static std::vector<Json> events_in(const std::string& workspace, std::size_t place);

 private:
  Scratch(std::string folder, std::string program) : folder_(std::move(folder)), program_(std::move(program)) {}
  std::string folder_;
  std::string program_;
  Json transcript_ = Json::array();
  std::unique_ptr<os::ChildProcess> server_;
  std::int64_t server_pid_ = 0;
  bool keep_ = false;
};

}  // namespace holdfast::cli::challenge
