#include "os/hostile_neighbour.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace holdfast::os {
namespace {

constexpr mode_t kOtherMode = 0644;
constexpr uid_t kOtherUser = 65534;

// The descriptor, opened as a stranger would, or the errno.
struct Opened {
  Handle file;
  int error = 0;
};

Opened open_as_asked(const char* name, int flags) {
  for (;;) {
    Handle file(::open(name, flags | O_CLOEXEC, kOtherMode));
    if (file) return {std::move(file), 0};
    if (errno != EINTR) return {{}, errno};
  }
}

int write_foreign(const Handle& file) {
  const ssize_t count = ::write(file.fd(), kForeignBytes.data(), kForeignBytes.size());
  return count == static_cast<ssize_t>(kForeignBytes.size()) ? 0 : (count < 0 ? errno : ENOSPC);
}

int open_and_write(const char* name, int flags) {
  const Opened opened = open_as_asked(name, flags);
  return opened.error != 0 ? opened.error : write_foreign(opened.file);
}

int only_open(const char* name, int flags) { return open_as_asked(name, flags).error; }

int open_and_truncate(const char* name) {
  const Opened opened = open_as_asked(name, O_WRONLY);
  if (opened.error != 0) return opened.error;
  return ::ftruncate(opened.file.fd(), 0) == 0 ? 0 : errno;
}

// A descriptor for reading is no obstacle to a guard, and leads to the same object whatever bears its name.
int open_through_proc(const char* name) {
  const Opened reading = open_as_asked(name, O_RDONLY);
  if (reading.error != 0) return reading.error;
  return open_and_write(("/proc/self/fd/" + std::to_string(reading.file.fd())).c_str(), O_WRONLY);
}

struct Mapped {
  char* bytes = nullptr;
  int error = 0;
};

Mapped map_shared(const Handle& file) {
  void* const bytes = ::mmap(nullptr, kForeignBytes.size(), PROT_READ | PROT_WRITE, MAP_SHARED, file.fd(), 0);
  if (bytes == MAP_FAILED) return {nullptr, errno};
  return {static_cast<char*>(bytes), 0};
}

int store_foreign(char* bytes) {
  std::copy(kForeignBytes.begin(), kForeignBytes.end(), bytes);
  return ::msync(bytes, kForeignBytes.size(), MS_SYNC) == 0 ? 0 : errno;
}

int map_and_store(const char* name) {
  const Opened opened = open_as_asked(name, O_RDWR);
  if (opened.error != 0) return opened.error;
  const Mapped mapped = map_shared(opened.file);
  if (mapped.error != 0) return mapped.error;
  const int error = store_foreign(mapped.bytes);
  ::munmap(mapped.bytes, kForeignBytes.size());
  return error;
}

int change_times(const char* name) {
  const std::array<timespec, 2> long_ago = {{{1, 0}, {1, 0}}};
  return ::utimensat(AT_FDCWD, name, long_ago.data(), AT_SYMLINK_NOFOLLOW) == 0 ? 0 : errno;
}

int exchange(const char* one, const char* other) {
  return ::renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE) == 0 ? 0 : errno;
}

int errno_of(int answer) { return answer == 0 ? 0 : errno; }

struct Way {
  std::string_view name;
  int (*go)(const char* name, const char* other);
};

// N: the attacked name, O: the second one.
constexpr std::array kWays = {
    Way{"open_write_only", [](const char* n, const char*) { return open_and_write(n, O_WRONLY); }},
    Way{"open_read_write", [](const char* n, const char*) { return open_and_write(n, O_RDWR); }},
    Way{"open_append", [](const char* n, const char*) { return open_and_write(n, O_WRONLY | O_APPEND); }},
    Way{"open_other_name", [](const char*, const char* o) { return open_and_write(o, O_WRONLY); }},
    Way{"open_through_proc_fd", [](const char* n, const char*) { return open_through_proc(n); }},
    Way{"open_without_waiting", [](const char* n, const char*) { return open_and_write(n, O_WRONLY | O_NONBLOCK); }},
    Way{"open_truncating", [](const char* n, const char*) { return open_and_write(n, O_WRONLY | O_TRUNC); }},
    Way{"creat", [](const char* n, const char*) { return open_and_write(n, O_WRONLY | O_CREAT | O_TRUNC); }},
    Way{"truncate", [](const char* n, const char*) { return errno_of(::truncate(n, 0)); }},
    Way{"ftruncate", [](const char* n, const char*) { return open_and_truncate(n); }},
    Way{"open_reading_truncating", [](const char* n, const char*) { return only_open(n, O_RDONLY | O_TRUNC); }},
    Way{"rename_over", [](const char* n, const char* o) { return errno_of(::rename(o, n)); }},
    Way{"rename_away", [](const char* n, const char* o) { return errno_of(::rename(n, o)); }},
    Way{"exchange_names", [](const char* n, const char* o) { return exchange(n, o); }},
    Way{"unlink", [](const char* n, const char*) { return errno_of(::unlink(n)); }},
    Way{"link", [](const char* n, const char* o) { return errno_of(::link(n, o)); }},
    Way{"symlink", [](const char* n, const char* o) { return errno_of(::symlink(n, o)); }},
    Way{"create_at_name", [](const char* n, const char*) { return open_and_write(n, O_WRONLY | O_CREAT | O_EXCL); }},
    Way{"create_beside", [](const char*, const char* o) { return open_and_write(o, O_WRONLY | O_CREAT | O_EXCL); }},
    Way{"chmod", [](const char* n, const char*) { return errno_of(::chmod(n, 0640)); }},
    Way{"chown", [](const char* n, const char*) { return errno_of(::chown(n, kOtherUser, static_cast<gid_t>(-1))); }},
    Way{"utimes", [](const char* n, const char*) { return change_times(n); }},
    Way{"setxattr",
        [](const char* n, const char*) { return errno_of(::setxattr(n, "user.holdfast_doctor", "x", 1, 0)); }},
    Way{"mmap_store", [](const char* n, const char*) { return map_and_store(n); }},
};

}  // namespace

HostileNeighbour::~HostileNeighbour() {
  if (mapping_ != nullptr) ::munmap(mapping_, kForeignBytes.size());
}

int HostileNeighbour::commit(const HostileAct& act) {
  if (act.way == "open_and_keep" || act.way == "map_and_keep") {
    Opened opened = open_as_asked(act.name.c_str(), O_RDWR);
    if (opened.error != 0) return opened.error;
    kept_ = std::move(opened.file);
    if (act.way == "open_and_keep") return 0;
    const Mapped mapped = map_shared(kept_);
    kept_.reset();  // the mapping alone is left
    if (mapped.error == 0) mapping_ = mapped.bytes;
    return mapped.error;
  }
  if (act.way == "write_to_kept" && kept_) {
    const int error = write_foreign(kept_);
    kept_.reset();
    return error;
  }
  if (act.way == "store_to_kept" && mapping_ != nullptr) {
    const int error = store_foreign(mapping_);
    ::munmap(mapping_, kForeignBytes.size());
    mapping_ = nullptr;
    return error;
  }
  const auto* way = std::ranges::find(kWays, act.way, &Way::name);
  return way == kWays.end() ? ENOSYS : way->go(act.name.c_str(), act.other.c_str());
}

int become_user(unsigned user) {
  if (::setgroups(0, nullptr) != 0) return errno;
  if (::setresgid(user, user, user) != 0) return errno;
  return ::setresuid(user, user, user) == 0 ? 0 : errno;
}

ErrnoFacts facts_of_errno(int number) {
  const char* const name = ::strerrorname_np(number);
  const char* const text = ::strerrordesc_np(number);
  return {.name = name != nullptr ? name : std::to_string(number),
          .text = text != nullptr ? text : "unknown error",
          .not_offered = number == EOPNOTSUPP || number == ENOSYS || number == ENODEV || number == ENOTTY};
}

}  // namespace holdfast::os
