// Names in a pinned folder: what bears one, and giving, exchanging and taking one away.
//
// Everything is relative to an open folder and to one leaf; no link is ever followed. The functions that change a name
// answer 0 or the errno, because their callers decide what an error means.
#pragma once
#include <optional>
#include <string>

#include "holdfast/result.h"
#include "os/file.h"
#include "os/handle.h"

namespace holdfast::guard {

struct AtName {
  os::Facts facts;
  os::Handle object;  // a regular file or folder: open for reading; anything else: a handle that can only be looked at
};

// nullopt where nothing bears the leaf. Refuses only where the folder does not tell (os_failed).
Result<std::optional<os::Facts>> facts_at(const os::Handle& folder, const std::string& leaf);
// The same, opened. file_unreadable where it cannot be opened for reading. Never waits on a fifo.
Result<std::optional<AtName>> open_at(const os::Handle& folder, const std::string& leaf);

// The same object, opened afresh for reading.
Result<os::Handle> reopen_for_reading(const os::Handle& object);
std::string path_of_open(const os::Handle& object);  // /proc/self/fd/N

// A file without a name, open for reading and writing. atomic_publish_unsupported, destination_read_only,
// staging_failed.
Result<os::Handle> make_nameless(const os::Handle& folder, unsigned mode);
int give_name(const os::Handle& nameless, const os::Handle& folder, const std::string& leaf);
int take_name_away(const os::Handle& folder, const std::string& leaf);
int exchange_names(const os::Handle& folder, const std::string& one, const std::string& other);
int rename_to_free_name(const os::Handle& folder, const std::string& from, const std::string& to);

// A system error of staging or publishing as its refusal, effect none.
Refusal publish_refusal(const std::string& operation, int error);

// The folder that `relative`'s parent leads to from the root, walked without following links.
// destination_parent_redirected where the way is another one now, destination_parent_unverifiable where it cannot be
// walked.
Result<os::Handle> walk_to_parent(const os::Handle& root, const std::string& relative);

// Takes a name away again unless it is kept, and only while it still bears the object that it was given to.
class TemporaryName {
 public:
  TemporaryName(const os::Handle& folder, std::string leaf, const os::Identity& bearer)
      : folder_(folder), leaf_(std::move(leaf)), bearer_(bearer) {}
  TemporaryName(const TemporaryName&) = delete;
  TemporaryName& operator=(const TemporaryName&) = delete;
  ~TemporaryName();
  void keep() { kept_ = true; }

 private:
  const os::Handle& folder_;
  std::string leaf_;
  os::Identity bearer_;
  bool kept_ = false;
};

}  // namespace holdfast::guard
