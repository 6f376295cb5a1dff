#include "support/temporary_folder.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace holdfast::support {
namespace {

void clear_immutable(const std::filesystem::path& path) {
  if (!std::filesystem::is_regular_file(std::filesystem::symlink_status(path))) return;
  const os::Handle file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  int flags = 0;
  if (!file || ::ioctl(file.fd(), FS_IOC_GETFLAGS, &flags) != 0) return;
  flags &= ~(FS_IMMUTABLE_FL | FS_APPEND_FL);
  ::ioctl(file.fd(), FS_IOC_SETFLAGS, &flags);
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  const char* base = std::getenv("TMPDIR");
  path_ = std::string(base == nullptr ? "/tmp" : base) + "/holdfast-test-XXXXXX";
  if (::mkdtemp(path_.data()) == nullptr) {
    std::perror("mkdtemp");
    std::abort();
  }
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code failed;
  std::filesystem::remove_all(path_, failed);
  if (!failed) return;
  // A server that was killed leaves the immutable flag on what it guarded.
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path_, failed)) clear_immutable(entry.path());
  std::filesystem::remove_all(path_, failed);
}

os::Handle TemporaryFolder::open(const std::string& relative) const {
  return os::Handle(::open(at(relative).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

void TemporaryFolder::make_folder(const std::string& relative) const {
  std::filesystem::create_directories(at(relative));
  std::filesystem::permissions(at(relative), std::filesystem::perms::owner_all);
}

void TemporaryFolder::write(const std::string& relative, const std::string& bytes) const {
  std::ofstream(at(relative), std::ios::binary | std::ios::trunc) << bytes;
}

std::string TemporaryFolder::read(const std::string& relative) const {
  std::ifstream file(at(relative), std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

bool TemporaryFolder::exists(const std::string& relative) const {
  return std::filesystem::exists(std::filesystem::symlink_status(at(relative)));
}

void TemporaryFolder::link(const std::string& target, const std::string& relative) const {
  std::filesystem::create_symlink(target, at(relative));
}

}  // namespace holdfast::support
