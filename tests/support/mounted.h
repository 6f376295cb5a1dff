// Something mounted over a folder while a test runs: it is taken off when the test ends, also where processes of the
// test still hold files below it (MNT_DETACH, umount2(2)). The test mounts; this only ends it. Needs root.
#pragma once

#include <sys/mount.h>

#include <string>
#include <utility>

namespace holdfast::support {

class Mounted {
 public:
  explicit Mounted(std::string at) : at_(std::move(at)) {}
  ~Mounted() { ::umount2(at_.c_str(), MNT_DETACH); }
  Mounted(const Mounted&) = delete;
  Mounted& operator=(const Mounted&) = delete;

 private:
  std::string at_;
};

}  // namespace holdfast::support
