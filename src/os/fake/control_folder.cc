#include "os/fake/control_folder.h"

#include <cerrno>
#include <map>
#include <mutex>

#include "os/control_steps.h"

namespace holdfast::os {
namespace {

struct Inode {
  Kind kind = Kind::regular;
  std::string bytes;
  std::string durable;
};
using Names = std::map<std::string, std::shared_ptr<Inode>>;

// Whether a walk to `path` succeeds: every folder above it is one. ELOOP where one is a link.
int walk(const Names& names, const std::string& path) {
  for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    const auto found = names.find(path.substr(0, slash));
    if (found == names.end()) return ENOENT;
    if (found->second->kind == Kind::link) return ELOOP;
    if (found->second->kind != Kind::folder) return ENOTDIR;
  }
  return 0;
}

std::string after_loss(const Inode& inode, FakeControlFolder::Loss loss) {
  using Loss = FakeControlFolder::Loss;
  if (loss == Loss::unflushed_kept) return inode.bytes;
  if (loss != Loss::torn || !inode.bytes.starts_with(inode.durable)) return inode.durable;
  return inode.bytes.substr(0, inode.durable.size() + (inode.bytes.size() - inode.durable.size()) / 2);
}

}  // namespace

struct FakeControlFolder::Steps : ControlSteps {
  mutable std::mutex mutex;
  Names names;
  Names durable_names;
  int done = 0;
  int files_read = 0;
  int crash = 0;
  int failure = 0;
  int failure_error = 0;
  bool crashed = false;

  // The error of the step that begins now, 0 where it is to be done.
  int begin_step() {
    ++done;
    if (crash != 0 && done >= crash) crashed = true;
    if (crashed) return EIO;
    return failure != 0 && done == failure ? failure_error : 0;
  }

  // The entry of a path; its error where there is none.
  int find(const std::string& path, std::shared_ptr<Inode>& inode) const {
    if (crashed) return EIO;
    if (const int error = walk(names, path); error != 0) return error;
    const auto found = names.find(path);
    if (found == names.end()) return ENOENT;
    inode = found->second;
    return 0;
  }
  int find_regular(const std::string& path, std::shared_ptr<Inode>& inode) const {
    if (const int error = find(path, inode); error != 0) return error;
    return inode->kind == Kind::regular ? 0 : inode->kind == Kind::link ? ELOOP : EISDIR;
  }

  struct FakeWriter : Writer {
    FakeWriter(Steps& owner, std::shared_ptr<Inode> file) : steps(owner), inode(std::move(file)) {}
    std::uint64_t size() const override { return inode->bytes.size(); }
    int write(std::string_view bytes) override {
      const std::scoped_lock lock(steps.mutex);
      const bool dead_before = steps.crashed;
      const int error = steps.begin_step();
      if (!dead_before) inode->bytes += error == 0 ? bytes : bytes.substr(0, bytes.size() / 2);
      return error;
    }
    int flush() override {
      const std::scoped_lock lock(steps.mutex);
      const int error = steps.begin_step();
      if (error == 0) inode->durable = inode->bytes;
      return error;
    }
    int truncate(std::uint64_t length) override {
      const std::scoped_lock lock(steps.mutex);
      const int error = steps.begin_step();
      if (error == 0) inode->bytes.resize(static_cast<std::size_t>(length));
      return error;
    }
    Steps& steps;
    std::shared_ptr<Inode> inode;
  };

  int kind_of(const std::string& path, Kind& kind) override {
    const std::scoped_lock lock(mutex);
    std::shared_ptr<Inode> inode;
    const int error = find(path, inode);
    if (error == 0) kind = inode->kind;
    return error;
  }
  int read(const std::string& path, std::uint64_t offset, std::string& bytes) override {
    const std::scoped_lock lock(mutex);
    std::shared_ptr<Inode> inode;
    if (const int error = find_regular(path, inode); error != 0) return error;
    ++files_read;
    bytes = inode->bytes.substr(std::min<std::size_t>(static_cast<std::size_t>(offset), inode->bytes.size()));
    return 0;
  }
  int size(const std::string& path, std::uint64_t& bytes) override {
    const std::scoped_lock lock(mutex);
    std::shared_ptr<Inode> inode;
    const int error = find_regular(path, inode);
    if (error == 0) bytes = inode->bytes.size();
    return error;
  }
  int entries(const std::string& folder, std::vector<Entry>& found) override {
    const std::scoped_lock lock(mutex);
    if (crashed) return EIO;
    if (!folder.empty()) {
      std::shared_ptr<Inode> inode;
      if (const int error = find(folder, inode); error != 0) return error;
      if (inode->kind != Kind::folder) return inode->kind == Kind::link ? ELOOP : ENOTDIR;
    }
    for (const auto& [path, inode] : names) {
      if (parent_of(path) != folder) continue;
      found.push_back({path.substr(folder.empty() ? 0 : folder.size() + 1), inode->kind});
    }
    return 0;
  }

  // A step that adds a name.
  int add(const std::string& path, Kind kind, std::shared_ptr<Inode>& inode) {
    if (const int error = begin_step(); error != 0) return error;
    if (const int error = walk(names, path); error != 0) return error;
    if (names.contains(path)) return EEXIST;
    inode = std::make_shared<Inode>(Inode{kind, {}, {}});
    names[path] = inode;
    return 0;
  }
  Opened create(const std::string& path) override {
    const std::scoped_lock lock(mutex);
    std::shared_ptr<Inode> inode;
    if (const int error = add(path, Kind::regular, inode); error != 0) return {nullptr, error};
    return {std::make_unique<FakeWriter>(*this, std::move(inode)), 0};
  }
  Opened open(const std::string& path) override {
    const std::scoped_lock lock(mutex);
    std::shared_ptr<Inode> inode;
    if (const int error = find_regular(path, inode); error != 0) return {nullptr, error};
    return {std::make_unique<FakeWriter>(*this, std::move(inode)), 0};
  }
  int make_folder(const std::string& path) override {
    const std::scoped_lock lock(mutex);
    std::shared_ptr<Inode> inode;
    return add(path, Kind::folder, inode);
  }
  int rename(const std::string& from, const std::string& to) override {
    const std::scoped_lock lock(mutex);
    if (const int error = begin_step(); error != 0) return error;
    std::shared_ptr<Inode> inode;
    if (const int error = find_regular(from, inode); error != 0) return error;
    if (const int error = walk(names, to); error != 0) return error;
    if (const auto target = names.find(to); target != names.end() && target->second->kind == Kind::folder)
      return EISDIR;
    names.erase(from);
    names[to] = std::move(inode);
    return 0;
  }
  int link(const std::string& from, const std::string& to) override {
    const std::scoped_lock lock(mutex);
    if (const int error = begin_step(); error != 0) return error;
    std::shared_ptr<Inode> inode;
    if (const int error = find_regular(from, inode); error != 0) return error;
    if (const int error = walk(names, to); error != 0) return error;
    return names.emplace(to, std::move(inode)).second ? 0 : EEXIST;
  }
  int unlink(const std::string& path) override {
    const std::scoped_lock lock(mutex);
    if (const int error = begin_step(); error != 0) return error;
    std::shared_ptr<Inode> inode;
    if (const int error = find(path, inode); error != 0) return error;
    if (inode->kind == Kind::folder) return EISDIR;
    names.erase(path);
    return 0;
  }
  int flush_folder(const std::string& folder) override {
    const std::scoped_lock lock(mutex);
    if (const int error = begin_step(); error != 0) return error;
    if (!folder.empty() && !names.contains(folder)) return ENOENT;
    std::erase_if(durable_names, [&](const auto& entry) { return parent_of(entry.first) == folder; });
    for (const auto& [path, inode] : names) {
      if (parent_of(path) == folder) durable_names[path] = inode;
    }
    return 0;
  }
};

FakeControlFolder::FakeControlFolder() : steps_(std::make_shared<Steps>()), folder_(control_folder_over(steps_)) {}
FakeControlFolder::~FakeControlFolder() = default;

int FakeControlFolder::steps() const {
  const std::scoped_lock lock(steps_->mutex);
  return steps_->done;
}
int FakeControlFolder::files_read() const {
  const std::scoped_lock lock(steps_->mutex);
  return steps_->files_read;
}
void FakeControlFolder::crash_at(int step) {
  const std::scoped_lock lock(steps_->mutex);
  steps_->crash = steps_->done + step;
}
void FakeControlFolder::fail_at(int step, int error) {
  const std::scoped_lock lock(steps_->mutex);
  steps_->failure = steps_->done + step;
  steps_->failure_error = error;
}
bool FakeControlFolder::crashed() const {
  const std::scoped_lock lock(steps_->mutex);
  return steps_->crashed;
}

std::unique_ptr<FakeControlFolder> FakeControlFolder::power_cut(Loss loss) const {
  const std::scoped_lock lock(steps_->mutex);
  auto left = std::make_unique<FakeControlFolder>();
  std::map<const Inode*, std::shared_ptr<Inode>> kept;  // two names of one file stay two names of one file
  for (const auto& [path, inode] : loss == Loss::unflushed_lost ? steps_->durable_names : steps_->names) {
    // std::map has a folder before what is in it, so that a folder that was lost takes its content along.
    if (walk(left->steps_->names, path) != 0) continue;
    const std::string bytes = after_loss(*inode, loss);
    auto& same = kept[inode.get()];
    if (!same) same = std::make_shared<Inode>(Inode{inode->kind, bytes, bytes});
    left->steps_->names[path] = same;
  }
  left->steps_->durable_names = left->steps_->names;
  return left;
}

void FakeControlFolder::plant(const std::string& path, std::string_view bytes) {
  const std::scoped_lock lock(steps_->mutex);
  for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    const std::string folder = path.substr(0, slash);
    if (steps_->names.contains(folder)) continue;
    steps_->durable_names[folder] = steps_->names[folder] = std::make_shared<Inode>(Inode{Kind::folder, {}, {}});
  }
  const auto inode = std::make_shared<Inode>(Inode{Kind::regular, std::string(bytes), std::string(bytes)});
  steps_->durable_names[path] = steps_->names[path] = inode;
}

void FakeControlFolder::plant_link(const std::string& path) {
  plant(path, "");
  const std::scoped_lock lock(steps_->mutex);
  steps_->names[path]->kind = Kind::link;
}

Result<std::optional<std::string>> FakeControlFolder::read(const std::string& path) { return folder_->read(path); }
Result<std::string> FakeControlFolder::read_from(const std::string& path, std::uint64_t offset) {
  return folder_->read_from(path, offset);
}
Result<std::optional<std::uint64_t>> FakeControlFolder::size(const std::string& path) { return folder_->size(path); }
Result<std::vector<std::string>> FakeControlFolder::list(const std::string& folder) { return folder_->list(folder); }
Result<void> FakeControlFolder::publish(const std::string& path, std::string_view bytes, NameFlush flush) {
  return folder_->publish(path, bytes, flush);
}
Result<void> FakeControlFolder::publish_under_two_names(const std::string& path, const std::string& second,
                                                        std::string_view bytes) {
  return folder_->publish_under_two_names(path, second, bytes);
}
Result<void> FakeControlFolder::stage(const std::string& path, std::string_view bytes) {
  return folder_->stage(path, bytes);
}
Result<void> FakeControlFolder::stage_together(const std::vector<Staged>& files) {
  return folder_->stage_together(files);
}
Result<void> FakeControlFolder::append_and_stage(const std::string& path, std::string_view bytes,
                                                 const std::vector<Staged>& files) {
  return folder_->append_and_stage(path, bytes, files);
}
Result<void> FakeControlFolder::rename(const std::string& from, const std::string& to, NameFlush flush) {
  return folder_->rename(from, to, flush);
}
Result<void> FakeControlFolder::remove(const std::string& path, NameFlush flush) {
  return folder_->remove(path, flush);
}
Result<void> FakeControlFolder::append(const std::string& path, std::string_view bytes) {
  return folder_->append(path, bytes);
}
Result<void> FakeControlFolder::truncate(const std::string& path, std::uint64_t length) {
  return folder_->truncate(path, length);
}
Result<void> FakeControlFolder::make_folder(const std::string& path) { return folder_->make_folder(path); }

}  // namespace holdfast::os
