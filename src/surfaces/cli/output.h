// Output: what a verb says. Standard output carries the result alone, standard error everything else.
//
// With --json standard output gets exactly one document, ASCII and a newline, for a refusal too.
// Promises: everything is written however slowly it is read; where standard output cannot take it, the exit status is 5
// and standard error says so. Colour only on a terminal, and never with NO_COLOR.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "engine/engine.h"
#include "holdfast/result.h"
#include "os/handle.h"
#include "surfaces/cli/surroundings.h"

namespace holdfast::cli {

class Output {
 public:
  Output(bool json, const Surroundings& surroundings);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  bool json() const { return json_; }
  // The program's exit status: `status`, or 5 where standard output failed.
  int document(const Json& document, int status = 0);
  int text(std::string_view text, int status = 0);
  int refuse(const Refusal& refusal);
  Result<void> bytes(std::string_view bytes);
  void diagnostic(std::string_view text);

  // Shows how far a large content has come; silent where standard error is no terminal.
  ProgressReport progress(std::string what, std::uint64_t total);
  // Says who is in the way of an acquire that waits, on a line of its own that is written over on a terminal.
  ProgressReport waiting();
  void end_progress();

 private:
  std::string coloured(std::string_view text) const;
  bool json_;
  bool colour_out_;
  bool colour_error_;
  bool progress_shown_ = false;
  int percent_shown_ = -1;
  std::string waiting_shown_;
  os::Handle out_;
  os::Handle error_;
};

// The exit status of an answer that is no refusal: 4 where `recover` leaves something to a person, 1 where a
// verification failed, else 0.
int exit_status_of(const std::string& verb, const Json& answer);

}  // namespace holdfast::cli
