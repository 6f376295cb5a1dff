// The receivers of a challenge: each with a resource of its own, its state as an outsider sees it, and commands for it.
//
// Calling sequence: prepare() before anything is acquired; then acquire_all(), issue(), deliver(); look() any time.
// A command is issued by `holdfast issue` and delivered by `holdfast receive`, on the workspace of whoever's view of
// the world that is. Promises: what is judged is the receiver's state before and after, not what the program says of
// it; each decision goes to the report with its inputs, as the evidence chain of that workspace has them.
// Threads: one. Errors: what the program and the databases refuse.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "receivers/scratch_rows.h"
#include "surfaces/cli/challenge_report.h"
#include "surfaces/cli/challenge_scratch.h"

namespace holdfast::cli::challenge {

struct Target {
  std::string kind;                                    // "file", "sqlite", "command", "postgres"; its receiver's name
  std::string scope;                                   // what is leased for it
  std::unique_ptr<receivers::ScratchRows> state = {};  // null: the file
};

struct Sent {
  const Target* target = nullptr;
  std::string operation_id;
  std::string content;  // what the file or the row's state becomes
  std::string line;     // the envelope
};

class Ground {
 public:
  Ground(Scratch& scratch, Report& report, std::string postgres)
      : scratch_(scratch), report_(report), postgres_(std::move(postgres)) {}

  // Makes the receivers' states and registers them; the file is built in.
  Result<void> prepare();
  const std::vector<Target>& targets() const { return targets_; }
  std::string names() const;  // "file, sqlite, command"
  std::vector<std::string> scopes() const;
  bool has_postgres() const { return !postgres_.empty(); }
  void say_what_stays_unknown() const;

  // The answer of one `acquire` of all of them; `lease_file` gets it.
  Result<Json> acquire_all(const std::string& owner, const std::string& lease_file, const std::string& ttl);
  Result<void> release_all(const std::string& lease_file);
  // One command for each, planned on the row's version `planned_on`.
  Result<std::vector<Sent>> issue(const std::string& workspace, const std::string& who, const std::string& lease_file,
                                  const std::string& number, int planned_on);
  Result<Sent> issue_one(const std::string& workspace, const Target& target, const std::string& lease_file,
                         const std::string& operation_id, int planned_on);
  // The words of a worker's `receive`, without its input.
  std::vector<std::string> receive_words(const std::string& workspace) const;
  Result<std::vector<Answer>> deliver(const std::string& workspace, const std::vector<Sent>& sent);

  // {KIND: state}: bytes of the file, rows, marks, operations, runs of the program.
  Result<Json> look() const;
  // Delivers, and judges by what the receivers hold then. `expected` is "accepted", "repeated" or a refusal's code.
  Result<Shown> deliver_and_judge(const std::string& workspace, const std::vector<Sent>& sent,
                                  const std::string& expected);
  Shown judge(const std::string& workspace, const std::vector<Sent>& sent, const std::vector<Answer>& answers,
              const Json& before, const Json& after, const std::string& expected);

 private:
  Result<void> add(const Target& target);

  Scratch& scratch_;
  Report& report_;
  std::string postgres_;
  std::vector<Target> targets_;
  std::map<std::string, Json> first_outcomes_;  // by operation id: what a repetition has to answer
};

// "line 1\nline 2\n" -> answers; os_failed where one is none.
Result<std::vector<Answer>> answers_of(const std::string& printed);

}  // namespace holdfast::cli::challenge
