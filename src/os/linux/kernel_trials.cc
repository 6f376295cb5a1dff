#include "os/kernel_trials.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace holdfast::os {
namespace {

constexpr unsigned kLandlockVersionFlag = 1;  // LANDLOCK_CREATE_RULESET_VERSION

// The first line of a small file of the kernel's, or the errno.
int first_line_of(const char* path, std::string& line) {
  const Handle file(::open(path, O_RDONLY | O_CLOEXEC));
  if (!file) return errno;
  std::array<char, 4096> bytes;
  ssize_t count = 0;
  do { count = ::read(file.fd(), bytes.data(), bytes.size()); } while (count < 0 && errno == EINTR);
  if (count < 0) return errno;
  line.assign(bytes.data(), static_cast<std::size_t>(count));
  line = line.substr(0, line.find('\n'));
  return 0;
}

}  // namespace

KernelFacts kernel_facts() {
  KernelFacts facts;
  struct utsname names {};
  if (::uname(&names) == 0) {
    facts.system = names.sysname;
    facts.release = names.release;
    facts.machine = names.machine;
  }
  facts.user = ::geteuid();
  facts.is_superuser = facts.user == 0;
  std::string seconds;
  if (first_line_of("/proc/sys/fs/lease-break-time", seconds) == 0 && !seconds.empty()) {
    facts.lease_break_seconds = std::atoi(seconds.c_str());
  }
  facts.security_modules_error = first_line_of("/sys/kernel/security/lsm", facts.security_modules);
  const long version = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, kLandlockVersionFlag);
  if (version > 0) {
    facts.landlock_version = static_cast<int>(version);
  } else {
    facts.landlock_error = version < 0 ? errno : ENOSYS;
  }
  return facts;
}

int exchange_two_names(const Handle& folder, const std::string& one, const std::string& other) {
  return ::renameat2(folder.fd(), one.c_str(), folder.fd(), other.c_str(), RENAME_EXCHANGE) == 0 ? 0 : errno;
}

int set_immutable(const Handle& object, bool immutable) {
  int flags = 0;
  if (::ioctl(object.fd(), FS_IOC_GETFLAGS, &flags) != 0) return errno;
  flags = immutable ? flags | FS_IMMUTABLE_FL : flags & ~FS_IMMUTABLE_FL;
  return ::ioctl(object.fd(), FS_IOC_SETFLAGS, &flags) == 0 ? 0 : errno;
}

}  // namespace holdfast::os
