// ControlSteps by the kernel: every path is walked by openat2 below the pinned .squad, every name acted on in the open
// folder that holds it.
#include "os/control_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <thread>

#include "os/control_steps.h"
#include "os/linux/open_beneath.h"

namespace holdfast::os {
namespace {

// A control file larger than this was not written by Holdfast; reading it whole would only exhaust memory.
constexpr std::uint64_t kLargest = 1ULL << 30U;

std::string leaf_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

Kind kind_of_mode(mode_t mode) {
  return S_ISREG(mode) ? Kind::regular : S_ISDIR(mode) ? Kind::folder : S_ISLNK(mode) ? Kind::link : Kind::other;
}

template <class Call>
int retried(Call call) {
  for (;;) {
    if (call() == 0) return 0;
    if (errno != EINTR) return errno;
  }
}

class LinuxWriter : public ControlSteps::Writer {
 public:
  LinuxWriter(Handle file, std::uint64_t size) : file_(std::move(file)), size_(size) {}

  std::uint64_t size() const override { return size_; }
  int write(std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t count = ::write(file_.fd(), bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return count < 0 ? errno : ENOSPC;
      bytes.remove_prefix(static_cast<std::size_t>(count));
      size_ += static_cast<std::uint64_t>(count);
    }
    return 0;
  }
  int flush() override {
    return retried([&] { return ::fdatasync(file_.fd()); });
  }
  int truncate(std::uint64_t length) override {
    size_ = length;
    return retried([&] { return ::ftruncate(file_.fd(), static_cast<off_t>(length)); });
  }

 private:
  Handle file_;
  std::uint64_t size_;
};

class LinuxControlSteps : public ControlSteps {
 public:
  explicit LinuxControlSteps(Handle squad) : squad_(std::move(squad)) {}

  int kind_of(const std::string& path, Kind& kind) override {
    os::Opened parent = folder_of(path);
    if (parent.error != 0) return parent.error;
    struct stat found {};
    if (::fstatat(parent.handle.fd(), leaf_of(path).c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) return errno;
    kind = kind_of_mode(found.st_mode);
    return 0;
  }

  int read(const std::string& path, std::uint64_t offset, std::string& bytes) override {
    os::Opened file = open_beneath(squad_, path, O_RDONLY);
    if (file.error != 0) return file.error;
    struct stat found {};
    if (::fstat(file.handle.fd(), &found) != 0) return errno;
    if (!S_ISREG(found.st_mode)) return EISDIR;
    if (static_cast<std::uint64_t>(found.st_size) > kLargest) return EFBIG;
    bytes.clear();
    // One byte more than the size says, so that the end is seen without a second call; a file that grows is read on.
    const auto size = static_cast<std::uint64_t>(found.st_size);
    std::size_t room = static_cast<std::size_t>(size > offset ? size - offset : 0) + 1;
    for (std::size_t done = 0; bytes.size() <= kLargest; room = 4096) {
      bytes.resize(done + room);
      const auto at = static_cast<off_t>(offset + done);
      const ssize_t count = ::pread(file.handle.fd(), bytes.data() + done, room, at);
      if (count < 0 && errno != EINTR) return errno;
      if (count > 0) done += static_cast<std::size_t>(count);
      bytes.resize(done);
      if (count == 0) return 0;
    }
    return EFBIG;
  }

  int size(const std::string& path, std::uint64_t& bytes) override {
    os::Opened file = open_beneath(squad_, path, O_RDONLY);
    if (file.error != 0) return file.error;
    struct stat found {};
    if (::fstat(file.handle.fd(), &found) != 0) return errno;
    if (!S_ISREG(found.st_mode)) return EISDIR;
    bytes = static_cast<std::uint64_t>(found.st_size);
    return 0;
  }

  int entries(const std::string& folder, std::vector<Entry>& found) override {
    os::Opened opened = open_beneath(squad_, folder, O_RDONLY | O_DIRECTORY);
    if (opened.error != 0) return opened.error;
    DIR* stream = ::fdopendir(opened.handle.fd());
    if (stream == nullptr) return errno;
    const int descriptor = static_cast<int>(opened.handle.release());  // the stream's from here on
    int error = 0;
    for (;;) {
      errno = 0;
      const dirent* entry = ::readdir(stream);
      if (entry == nullptr) {
        error = errno;
        break;
      }
      const std::string name(entry->d_name);
      if (name == "." || name == "..") continue;
      struct stat status {};
      if (::fstatat(descriptor, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno == ENOENT) continue;  // gone since the folder was read
        error = errno;
        break;
      }
      found.push_back({name, kind_of_mode(status.st_mode)});
    }
    ::closedir(stream);
    return error;
  }

  Opened create(const std::string& path) override {
    return writer(open_beneath(squad_, path, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  }
  Opened open(const std::string& path) override { return writer(open_beneath(squad_, path, O_WRONLY | O_APPEND)); }

  int make_folder(const std::string& path) override {
    os::Opened parent = folder_of(path);
    if (parent.error != 0) return parent.error;
    return ::mkdirat(parent.handle.fd(), leaf_of(path).c_str(), 0700) == 0 ? 0 : errno;
  }

  int rename(const std::string& from, const std::string& to) override {
    os::Opened source = folder_of(from);
    if (source.error != 0) return source.error;
    os::Opened target = folder_of(to);
    if (target.error != 0) return target.error;
    const int done = ::renameat(source.handle.fd(), leaf_of(from).c_str(), target.handle.fd(), leaf_of(to).c_str());
    return done == 0 ? 0 : errno;
  }

  int link(const std::string& from, const std::string& to) override {
    os::Opened source = folder_of(from);
    if (source.error != 0) return source.error;
    os::Opened target = folder_of(to);
    if (target.error != 0) return target.error;
    const int done = ::linkat(source.handle.fd(), leaf_of(from).c_str(), target.handle.fd(), leaf_of(to).c_str(), 0);
    return done == 0 ? 0 : errno;
  }

  int unlink(const std::string& path) override {
    os::Opened parent = folder_of(path);
    if (parent.error != 0) return parent.error;
    return ::unlinkat(parent.handle.fd(), leaf_of(path).c_str(), 0) == 0 ? 0 : errno;
  }

  int flush_folder(const std::string& folder) override {
    os::Opened opened = open_beneath(squad_, folder, O_RDONLY | O_DIRECTORY);
    if (opened.error != 0) return opened.error;
    return retried([&] { return ::fsync(opened.handle.fd()); });
  }

  // Threads, because fdatasync has no other form that does not wait; where none can be had, one after another.
  int flush_together(const std::vector<Writer*>& writers) override {
    std::vector<int> errors(writers.size(), 0);
    const auto flush = [&](std::size_t at) { errors[at] = writers[at]->flush(); };
    {
      std::vector<std::jthread> threads;
      std::size_t at = 0;
      try {
        threads.reserve(writers.size());
        for (; at + 1 < writers.size(); ++at) threads.emplace_back(flush, at);
      } catch (const std::exception&) {}
      for (; at < writers.size(); ++at) flush(at);
    }
    for (const int error : errors) {
      if (error != 0) return error;
    }
    return 0;
  }

 private:
  os::Opened folder_of(const std::string& path) {
    return open_beneath(squad_, parent_of(path), O_RDONLY | O_DIRECTORY);
  }

  static Opened writer(os::Opened file) {
    if (file.error != 0) return {nullptr, file.error};
    struct stat found {};
    if (::fstat(file.handle.fd(), &found) != 0) return {nullptr, errno};
    if (!S_ISREG(found.st_mode)) return {nullptr, EISDIR};
    return {std::make_unique<LinuxWriter>(std::move(file.handle), static_cast<std::uint64_t>(found.st_size)), 0};
  }

  Handle squad_;
};

}  // namespace

Result<std::unique_ptr<ControlFolder>> open_control_folder(const Handle& squad) {
  HF_TRY(Handle own, duplicate(squad));
  return control_folder_over(std::make_shared<LinuxControlSteps>(std::move(own)));
}

}  // namespace holdfast::os
