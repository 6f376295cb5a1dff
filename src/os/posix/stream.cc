#include "os/stream.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "os/file.h"

namespace holdfast::os {
namespace {

// A descriptor that another program left in non-blocking mode: wait instead of losing the tail.
void wait_until_ready(const Handle& stream, short events) {
  struct pollfd entry {
    stream.fd(), events, 0
  };
  while (::poll(&entry, 1, -1) < 0 && errno == EINTR) {}
}

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

Result<Handle> open_path(const std::string& path, int flags, Code code) {
  int descriptor = -1;
  do {
    descriptor = ::open(path.c_str(), flags | O_CLOEXEC | O_NOCTTY, 0600);
  } while (descriptor < 0 && errno == EINTR);
  if (descriptor < 0) return os_refusal(code, "open", errno).with("path", path);
  return Handle(descriptor);
}

}  // namespace

void prepare_standard_streams() {
  for (int number = 0; number <= 2; ++number) {
    if (::fcntl(number, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number is this one. Output opened for reading makes the loss of output an error, not a success.
    if (::open("/dev/null", number == 0 ? O_WRONLY : O_RDONLY) < 0) return;
  }
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a write past the file size limit is a refusal (EFBIG), not a death
}

Result<Handle> open_to_read(const std::string& path, Code code) { return open_path(path, O_RDONLY, code); }

Result<Handle> create_file(const std::string& path, Code code) {
  return open_path(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, code);
}

Result<std::size_t> read_some(const Handle& stream, char* into, std::size_t size, Code code) {
  for (;;) {
    const ssize_t count = ::read(stream.fd(), into, size);
    if (count >= 0) return static_cast<std::size_t>(count);
    if (would_block(errno)) {
      wait_until_ready(stream, POLLIN);
    } else if (errno != EINTR) {
      return os_refusal(code, "read", errno);
    }
  }
}

Result<void> write_stream(const Handle& stream, std::string_view bytes, Code code) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(stream.fd(), bytes.data(), bytes.size());
    if (count > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
    } else if (count < 0 && would_block(errno)) {
      wait_until_ready(stream, POLLOUT);
    } else if (count == 0 || errno != EINTR) {
      return os_refusal(code, "write", count == 0 ? ENOSPC : errno);
    }
  }
  return {};
}

void wait_until_abandoned(const Handle& input, const Handle& output) {
  // Without events to ask for, poll() reports the hang-up alone; what waits to be read does not wake it.
  struct pollfd ends[2] = {{input.fd(), 0, 0}, {output.fd(), 0, 0}};
  while (::poll(ends, 2, -1) <= 0) {}
}

std::size_t bytes_unread(const Handle& pipe) {
  struct stat found {};
  // Of a socket, FIONREAD would tell what came from the other side.
  const bool is_socket = ::fstat(pipe.fd(), &found) == 0 && S_ISSOCK(found.st_mode);
  int count = 0;
  const int asked = ::ioctl(pipe.fd(), is_socket ? TIOCOUTQ : FIONREAD, &count);
  return asked == 0 && count > 0 ? static_cast<std::size_t>(count) : 0;
}

Result<Handle> take_standard_output() {
  Handle taken(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  if (!taken) return os_refusal(Code::os_failed, "dup of standard output", errno);
  if (::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return os_refusal(Code::os_failed, "dup2", errno);
  return taken;
}

bool is_terminal(const Handle& stream) { return ::isatty(stream.fd()) == 1; }

}  // namespace holdfast::os
