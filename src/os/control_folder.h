// ControlFolder: the files below .squad, as the workspace's own state needs them.
//
// Paths are relative to .squad, forward slashes ("locks/write/0123.json"). No path ever follows a link: a link at
// or below .squad is workspace_insecure. Files are 0600, folders 0700.
//
// Promises:
//   publish   stage beside (<leaf>.staged), write, flush, rename, flush the folder: after it returns, the new bytes
//             survive a power cut; until then a reader sees the old bytes whole.
//   publish_under_two_names
//             the same file under a second name of the same folder, at the cost of one publish. A reader may meet the
//             second name a moment before the first. A later publish of the first leaves the second as it was.
//   append    all bytes at the end and flushed, or the file is as long as before.
//   publish, stage and append make the folders above the path (0700) where they are missing.
//   list      leaf names of regular files and folders; names that end in ".staged" are left out; a link is refused.
//   remove    gone and the folder flushed; absent is success.
//   NameFlush::later
//             of publish, rename and remove: every reader sees the change, but its name is durable only with the next
//             flush of its folder; until then a power cut may bring back what was there, whole.
//   stage     written and flushed in place; its name is durable with the next flush of its folder.
//   stage_together, append_and_stage
//             several of these, each durable as it would be alone; only the waits for the disk overlap. All, or none is
//             left and the appended file is as long as before.
// Does not promise: mutual exclusion. Callers hold the transition mutex where order matters.
// Errors: state_persist_failed (disk full, read-only: exit 5), workspace_insecure, workspace_permission_denied,
// state_unreadable. Threads: each call stands alone; safe from several threads on different paths.
// Implementations: os/linux, os/fake (which can lose what was not flushed and crash at the k-th step).
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/result.h"
#include "os/handle.h"

namespace holdfast::os {

enum class NameFlush : std::uint8_t { now, later };

struct Staged {
  std::string path;  // where it is staged
  std::string bytes;
};
// Where publish() stages the bytes of a path: stage() there and rename() are a publish in two parts.
std::string staging_path(const std::string& path);

class ControlFolder {
 public:
  virtual ~ControlFolder() = default;

  virtual Result<std::optional<std::string>> read(const std::string& path) = 0;  // nullopt: there is none
  virtual Result<std::string> read_from(const std::string& path, std::uint64_t offset) = 0;
  virtual Result<std::optional<std::uint64_t>> size(const std::string& path) = 0;
  virtual Result<std::vector<std::string>> list(const std::string& folder) = 0;  // sorted; empty where absent

  virtual Result<void> publish(const std::string& path, std::string_view bytes, NameFlush flush = NameFlush::now) = 0;
  virtual Result<void> publish_under_two_names(const std::string& path, const std::string& second,
                                               std::string_view bytes) = 0;
  virtual Result<void> stage(const std::string& path, std::string_view bytes) = 0;
  virtual Result<void> stage_together(const std::vector<Staged>& files) = 0;
  virtual Result<void> rename(const std::string& from, const std::string& to, NameFlush flush = NameFlush::now) = 0;
  virtual Result<void> remove(const std::string& path, NameFlush flush = NameFlush::now) = 0;
  virtual Result<void> append(const std::string& path, std::string_view bytes) = 0;
  virtual Result<void> append_and_stage(const std::string& path, std::string_view bytes,
                                        const std::vector<Staged>& files) = 0;
  virtual Result<void> truncate(const std::string& path, std::uint64_t length) = 0;
  virtual Result<void> make_folder(const std::string& path) = 0;  // and its parents
};

// The real one, over an open .squad folder. The handle is duplicated.
Result<std::unique_ptr<ControlFolder>> open_control_folder(const Handle& squad);

}  // namespace holdfast::os
