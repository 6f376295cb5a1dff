#include "os/linux/proc_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "os/handle.h"

namespace holdfast::os {
namespace {

constexpr std::size_t kProcFileMax = 1U << 20U;

}  // namespace

std::string read_proc(const std::string& path) {
  const Handle file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  char piece[4096];
  while (file && text.size() < kProcFileMax) {
    const ssize_t count = ::read(file.fd(), piece, sizeof piece);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    text.append(piece, static_cast<std::size_t>(count));
  }
  return text;
}

}  // namespace holdfast::os
