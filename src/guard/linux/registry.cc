#include "guard/linux/shared.h"

namespace holdfast::guard {

Registry::GuardId Registry::next_id() {
  const std::lock_guard lock(mutex_);
  return ++last_id_;
}

void Registry::add(GuardId guard, std::shared_ptr<GuardedFile> file) {
  const std::lock_guard lock(mutex_);
  files_[guard] = std::move(file);
}

void Registry::remove(GuardId guard) {
  const std::lock_guard lock(mutex_);
  files_.erase(guard);
  std::erase_if(descriptors_, [guard](const auto& entry) { return entry.second == guard; });
}

void Registry::set_descriptor(int fd, GuardId guard) {
  const std::lock_guard lock(mutex_);
  descriptors_[fd] = guard;
}

void Registry::clear_descriptor(int fd) {
  const std::lock_guard lock(mutex_);
  descriptors_.erase(fd);
}

std::shared_ptr<GuardedFile> Registry::by_id(GuardId guard) const {
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(guard);
  return found == files_.end() ? nullptr : found->second;
}

std::shared_ptr<GuardedFile> Registry::by_descriptor(int fd) const {
  const std::lock_guard lock(mutex_);
  const auto owner = descriptors_.find(fd);
  if (owner == descriptors_.end()) return nullptr;
  const auto found = files_.find(owner->second);
  return found == files_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<GuardedFile>> Registry::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<GuardedFile>> files;
  for (const auto& [id, file] : files_) files.push_back(file);
  return files;
}

}  // namespace holdfast::guard
