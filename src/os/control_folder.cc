// The sequences behind ControlFolder's promises.
//
//   publish   [staging absent] create staging -> write -> flush -> rename over -> flush folder
//   publish_under_two_names
//             the same with [second staging absent] link -> rename over the second name, before the rename of the first
//   append    open (or create) -> write -> flush; on an error truncate to the old length (or unlink)
//
// I1  Until the rename of a publish nothing that a reader can name has changed.
// I2  The rename comes only after the staged bytes are flushed: whatever a power cut keeps of the name, it is whole.
// I3  A refusal with effect `none` leaves the old bytes; where the folder flush after a rename fails, the new bytes are
//     visible but perhaps not durable, and the effect says `unknown`.
#include "os/control_folder.h"

#include <algorithm>
#include <cerrno>

#include "base/fault_point.h"
#include "os/control_steps.h"

namespace holdfast::os {
namespace {

constexpr std::string_view kStaged = ".staged";

bool is_plain_path(const std::string& path) {
  if (path.find('\0') != std::string::npos || path.find('\\') != std::string::npos) return false;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string segment = path.substr(at, end - at);
    if (segment.empty() || segment == "." || segment == "..") return false;
    at = end + 1;
  }
  return true;
}

Refusal refuse(Code otherwise, const std::string& operation, const std::string& path, int error) {
  const bool insecure = error == ELOOP || error == EXDEV;
  const bool denied = error == EACCES || error == EPERM;
  const Code code = insecure ? Code::workspace_insecure : denied ? Code::workspace_permission_denied : otherwise;
  return os_refusal(code, operation + " .squad/" + path, error).with("path", path);
}

class SteppedControlFolder : public ControlFolder {
 public:
  explicit SteppedControlFolder(std::shared_ptr<ControlSteps> steps) : steps_(std::move(steps)) {}

  Result<std::optional<std::string>> read(const std::string& path) override {
    HF_CHECK(check(path, Code::state_unreadable));
    std::string bytes;
    const int error = steps_->read(path, 0, bytes);
    if (error == ENOENT || error == ENOTDIR) return std::optional<std::string>();
    if (error != 0) return refuse(Code::state_unreadable, "read", path, error);
    return std::optional<std::string>(std::move(bytes));
  }

  Result<std::string> read_from(const std::string& path, std::uint64_t offset) override {
    HF_CHECK(check(path, Code::state_unreadable));
    std::string bytes;
    const int error = steps_->read(path, offset, bytes);
    if (error != 0) return refuse(Code::state_unreadable, "read", path, error);
    return bytes;
  }

  Result<std::optional<std::uint64_t>> size(const std::string& path) override {
    HF_CHECK(check(path, Code::state_unreadable));
    std::uint64_t bytes = 0;
    const int error = steps_->size(path, bytes);
    if (error == ENOENT || error == ENOTDIR) return std::optional<std::uint64_t>();
    if (error != 0) return refuse(Code::state_unreadable, "size of", path, error);
    return std::optional<std::uint64_t>(bytes);
  }

  Result<std::vector<std::string>> list(const std::string& folder) override {
    if (!folder.empty()) HF_CHECK(check(folder, Code::state_unreadable));
    std::vector<ControlSteps::Entry> found;
    const int error = steps_->entries(folder, found);
    std::vector<std::string> names;
    if (error == ENOENT) return names;
    if (error != 0) return refuse(Code::state_unreadable, "list", folder, error);
    for (const auto& entry : found) {
      if (entry.kind == Kind::link) return refuse(Code::state_unreadable, "list", below(folder, entry.name), ELOOP);
      if (entry.name.ends_with(kStaged)) continue;
      if (entry.kind == Kind::other && entry.name.ends_with(".json")) {
        return refuse(Code::state_unreadable, "list", below(folder, entry.name), EINVAL);  // a fifo in a record's place
      }
      if (entry.kind == Kind::other) continue;
      names.push_back(entry.name);
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  Result<void> publish(const std::string& path, std::string_view bytes, NameFlush flush) override {
    HF_CHECK(check(path, Code::state_persist_failed));
    HF_CHECK(refuse_link(path));
    const std::string staged = path + std::string(kStaged);
    HF_CHECK(write_new(staged, bytes));
    HF_FAULT_POINT("control_before_rename");
    if (const int error = steps_->rename(staged, path); error != 0) {
      steps_->unlink(staged);
      return refuse(Code::state_persist_failed, "rename to", path, error);
    }
    HF_FAULT_POINT("control_after_rename");
    return flush == NameFlush::now ? flush_folder(parent_of(path)) : Result<void>();
  }

  Result<void> publish_under_two_names(const std::string& path, const std::string& second,
                                       std::string_view bytes) override {
    HF_CHECK(check(path, Code::state_persist_failed));
    HF_CHECK(check(second, Code::state_persist_failed));
    HF_ASSERT(path != second && parent_of(path) == parent_of(second));  // one flush for both names
    HF_CHECK(refuse_link(path));
    HF_CHECK(refuse_link(second));
    const std::string staged = path + std::string(kStaged);
    const std::string second_staged = second + std::string(kStaged);
    HF_CHECK(write_new(staged, bytes));
    int error = steps_->unlink(second_staged);
    if (error == 0 || error == ENOENT) error = steps_->link(staged, second_staged);
    if (error == 0) error = steps_->rename(second_staged, second);
    if (error != 0) {
      steps_->unlink(second_staged);
      steps_->unlink(staged);
      return refuse(Code::state_persist_failed, "give a second name to", second, error);
    }
    HF_FAULT_POINT("control_between_two_names");
    if (error = steps_->rename(staged, path); error != 0) {
      steps_->unlink(staged);
      return refuse(Code::state_persist_failed, "rename to", path, error);
    }
    return flush_folder(parent_of(path));
  }

  Result<void> stage(const std::string& path, std::string_view bytes) override {
    HF_CHECK(check(path, Code::state_persist_failed));
    return write_new(path, bytes);
  }

  Result<void> stage_together(const std::vector<Staged>& files) override {
    std::vector<std::unique_ptr<ControlSteps::Writer>> opened;
    HF_CHECK(write_unflushed(files, opened));
    if (const int error = flush_all(opened, nullptr); error != 0) {
      remove_all(files);
      return refuse(Code::state_persist_failed, "write", files.front().path, error);
    }
    return {};
  }

  Result<void> rename(const std::string& from, const std::string& to, NameFlush flush) override {
    HF_CHECK(check(from, Code::state_persist_failed));
    HF_CHECK(check(to, Code::state_persist_failed));
    HF_CHECK(refuse_link(from));
    HF_CHECK(refuse_link(to));
    if (const int error = steps_->rename(from, to); error != 0) {
      return refuse(Code::state_persist_failed, "rename " + from + " to", to, error);
    }
    if (flush == NameFlush::later) return {};
    // The new name first: between the two flushes a power cut may show both names, never none.
    HF_CHECK(flush_folder(parent_of(to)));
    if (parent_of(from) != parent_of(to)) HF_CHECK(flush_folder(parent_of(from)));
    return {};
  }

  Result<void> remove(const std::string& path, NameFlush flush) override {
    HF_CHECK(check(path, Code::state_persist_failed));
    HF_CHECK(refuse_link(path));
    const int error = steps_->unlink(path);
    if (error == ENOENT || error == ENOTDIR) return {};
    if (error != 0) return refuse(Code::state_persist_failed, "remove", path, error);
    return flush == NameFlush::now ? flush_folder(parent_of(path)) : Result<void>();
  }

  Result<void> append(const std::string& path, std::string_view bytes) override {
    return append_and_stage(path, bytes, {});
  }

  Result<void> append_and_stage(const std::string& path, std::string_view bytes,
                                const std::vector<Staged>& files) override {
    HF_CHECK(check(path, Code::state_persist_failed));
    std::vector<std::unique_ptr<ControlSteps::Writer>> staged;
    HF_CHECK(write_unflushed(files, staged));
    bool created = false;
    ControlSteps::Opened opened = steps_->open(path);
    if (opened.error == ENOENT) {
      created = true;
      if (auto made = make_parents(path); !made.ok()) {
        remove_all(files);
        return made;
      }
      opened = steps_->create(path);
    }
    if (opened.error != 0) {
      remove_all(files);
      return refuse(Code::state_persist_failed, "open", path, opened.error);
    }
    const std::uint64_t before = opened.writer->size();
    int error = opened.writer->write(bytes);
    if (error == 0) error = flush_all(staged, opened.writer.get());
    if (error != 0) {
      remove_all(files);
      const bool undone = created ? steps_->unlink(path) == 0 : undo(*opened.writer, before);
      Refusal refusal = refuse(Code::state_persist_failed, "append to", path, error);
      if (undone) return refusal;
      return std::move(refusal).with_effect(Effect::unknown).with("length_before", std::to_string(before));
    }
    if (created) return flush_folder(parent_of(path));
    return {};
  }

  Result<void> truncate(const std::string& path, std::uint64_t length) override {
    HF_CHECK(check(path, Code::state_persist_failed));
    ControlSteps::Opened opened = steps_->open(path);
    int error = opened.error;
    if (error == 0) error = opened.writer->truncate(length);
    if (error == 0) error = opened.writer->flush();
    if (error != 0) return refuse(Code::state_persist_failed, "truncate", path, error);
    return {};
  }

  Result<void> make_folder(const std::string& path) override {
    HF_CHECK(check(path, Code::state_persist_failed));
    Kind kind = Kind::other;
    const int known = steps_->kind_of(path, kind);
    if (known == 0 && kind == Kind::folder) return {};
    if (known == 0)
      return refuse(Code::state_persist_failed, "make folder", path, kind == Kind::link ? ELOOP : ENOTDIR);
    if (known != ENOENT) return refuse(Code::state_persist_failed, "make folder", path, known);
    if (const std::string parent = parent_of(path); !parent.empty()) HF_CHECK(make_folder(parent));
    const int error = steps_->make_folder(path);
    if (error != 0 && error != EEXIST) return refuse(Code::state_persist_failed, "make folder", path, error);
    return flush_folder(parent_of(path));
  }

 private:
  static std::string below(const std::string& folder, const std::string& name) {
    return folder.empty() ? name : folder + "/" + name;
  }

  static Result<void> check(const std::string& path, Code code) {
    if (is_plain_path(path)) return {};
    return Refusal(code, "no path of a control file", Json{{"path", path}});
  }

  static bool undo(ControlSteps::Writer& writer, std::uint64_t length) {
    return writer.truncate(length) == 0 && writer.flush() == 0;
  }

  // rename(2) and unlink(2) act on a link itself, so nothing would be written through it; but a link where a control
  // file belongs was planted, and is not silently replaced.
  Result<void> refuse_link(const std::string& path) {
    Kind kind = Kind::other;
    int error = steps_->kind_of(path, kind);
    if (error == ENOENT || error == ENOTDIR) return {};
    if (error == 0 && kind == Kind::link) error = ELOOP;
    if (error != 0) return refuse(Code::state_persist_failed, "look at", path, error);
    return {};
  }

  Result<void> make_parents(const std::string& path) {
    const std::string parent = parent_of(path);
    if (parent.empty()) return {};
    return make_folder(parent);
  }

  // A new file with these bytes, flushed; nothing is left where that fails.
  Result<void> write_new(const std::string& path, std::string_view bytes) {
    std::unique_ptr<ControlSteps::Writer> writer;
    HF_CHECK(write_new_unflushed(path, bytes, writer));
    const int error = writer->flush();
    if (error == 0) return {};
    writer.reset();
    steps_->unlink(path);
    return refuse(Code::state_persist_failed, "write", path, error);
  }

  // Only a regular file that an earlier crash left is taken away for it.
  Result<void> write_new_unflushed(const std::string& path, std::string_view bytes,
                                   std::unique_ptr<ControlSteps::Writer>& writer) {
    ControlSteps::Opened opened = steps_->create(path);
    if (opened.error == ENOENT) {
      HF_CHECK(make_parents(path));
      opened = steps_->create(path);
    }
    if (opened.error == EEXIST) {
      Kind kind = Kind::other;
      int error = steps_->kind_of(path, kind);
      if (error == 0 && kind != Kind::regular) error = ELOOP;
      if (error == 0) error = steps_->unlink(path);
      if (error != 0 && error != ENOENT) return refuse(Code::state_persist_failed, "clear", path, error);
      opened = steps_->create(path);
    }
    if (opened.error != 0) return refuse(Code::state_persist_failed, "create", path, opened.error);
    const int error = opened.writer->write(bytes);
    if (error != 0) {
      opened.writer.reset();
      steps_->unlink(path);
      return refuse(Code::state_persist_failed, "write", path, error);
    }
    writer = std::move(opened.writer);
    return {};
  }

  // All of them, or none is left.
  Result<void> write_unflushed(const std::vector<Staged>& files,
                               std::vector<std::unique_ptr<ControlSteps::Writer>>& writers) {
    for (const Staged& file : files) {
      auto written = check(file.path, Code::state_persist_failed);
      if (written.ok()) written = write_new_unflushed(file.path, file.bytes, writers.emplace_back());
      if (written.ok()) continue;
      writers.clear();
      for (const Staged& earlier : files) {
        if (&earlier == &file) break;
        steps_->unlink(earlier.path);
      }
      return written;
    }
    return {};
  }

  int flush_all(const std::vector<std::unique_ptr<ControlSteps::Writer>>& writers, ControlSteps::Writer* another) {
    std::vector<ControlSteps::Writer*> all;
    for (const auto& writer : writers) all.push_back(writer.get());
    if (another != nullptr) all.push_back(another);
    return all.empty() ? 0 : steps_->flush_together(all);
  }

  void remove_all(const std::vector<Staged>& files) {
    for (const Staged& file : files) steps_->unlink(file.path);
  }

  Result<void> flush_folder(const std::string& folder) {
    if (const int error = steps_->flush_folder(folder); error != 0) {
      return refuse(Code::state_persist_failed, "flush folder", folder, error).with_effect(Effect::unknown);
    }
    return {};
  }

  std::shared_ptr<ControlSteps> steps_;
};

}  // namespace

std::string staging_path(const std::string& path) { return path + std::string(kStaged); }

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

std::unique_ptr<ControlFolder> control_folder_over(std::shared_ptr<ControlSteps> steps) {
  return std::make_unique<SteppedControlFolder>(std::move(steps));
}

}  // namespace holdfast::os
