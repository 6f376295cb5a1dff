// A workspace of a test's own and the built program on it: verbs, the server, and what they answered.
//
//   Workbench bench;  bench.put("a.txt", "old");  bench.serve();
//   const Lease lease = bench.acquire("a.txt", "alice");
//   EXPECT_EQ(bench.write(lease, "new").code(), "");          // "" : not refused
//
// Every verb runs as a process of its own with --json. The server is killed and everything removed at the end.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/result.h"
#include "support/child.h"
#include "support/temporary_folder.h"

namespace holdfast::support {

struct Answer {
  int status = -1;
  Json document;
  std::string text;  // stdout as it was

  std::string code() const;  // of the refusal, "" where there is none
  bool ok() const { return status == 0 && code().empty(); }
  const Json& at(const std::string& member) const { return document.at(member); }
};

using Environment = std::map<std::string, std::string>;
using Words = std::vector<std::string>;

struct Lease {
  std::string scope;
  Json record;
  Words keys() const;
  std::uint64_t generation() const { return std::stoull(record.at("generation").get<std::string>()); }
};

class Workbench {
 public:
  explicit Workbench(bool init = true);
  ~Workbench();

  const std::string& root() const { return folder_.path(); }
  std::string at(const std::string& relative) const { return folder_.at(relative); }
  void put(const std::string& relative, const std::string& bytes) const { folder_.write(relative, bytes); }
  std::string get(const std::string& relative) const { return folder_.read(relative); }
  Words listing() const;  // names in the root but .squad

  Answer run(const Words& words, const std::string& input = "", const Environment& environment = {}) const;
  // A verb in the background; answer_of() waits for it.
  std::unique_ptr<Child> start(const Words& words, const Environment& environment = {}) const;
  static Answer answer_of(Child& child);

  void serve(const Environment& environment = {});
  void kill_server();
  int wait_for_server() { return server_->wait(); }  // its death
  Child& server() { return *server_; }
  bool serves() const { return server_ != nullptr; }

  Lease acquire(const std::string& scope, const std::string& owner = "alice", const Words& more = {}) const;
  Answer write(const Lease& lease, const std::string& bytes, const Words& more = {}) const;
  Answer release(const Lease& lease) const;
  Answer heartbeat(const Lease& lease, const Words& more = {}) const;

  bool evidence_verifies() const { return run({"evidence", "verify"}).ok(); }
  bool generations_verify() const { return run({"generations", "verify"}).ok(); }
  std::string log() const { return run({"evidence", "log"}).text; }

 private:
  Words command(const Words& words) const;
  TemporaryFolder folder_;
  std::unique_ptr<Child> server_;
};

Words operator+(Words left, const Words& right);

}  // namespace holdfast::support
