// Unix stream sockets. The name is reached through /proc/self/fd/<folder>, because a socket address holds 107 bytes of
// path and a workspace may lie deeper.
#include "os/local_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "os/file.h"
#include "os/linux/open_beneath.h"

namespace holdfast::os {
namespace {

constexpr char kFolder[] = "servers";
constexpr char kSocket[] = "server.sock";
constexpr char kNewSocket[] = "server.sock.new";
constexpr int kBacklog = 256;
constexpr std::size_t kHeader = 5;
// A payload is taken in pieces, so that a peer that only announces a megabyte does not make us hold one.
constexpr std::size_t kPiece = 64U * 1024U;
// How long a peer may pause within a frame, or leave an answer untaken. Between frames it may pause for ever.
constexpr int kStallMs = 60'000;

Refusal broken(const char* operation, int error) { return os_refusal(Code::server_answer_lost, operation, error); }

bool is_kind(char kind) { return kind == 'J' || kind == 'C' || kind == 'E' || kind == 'P'; }

sockaddr_un address_through(const Handle& open_object, const char* below) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::string path = "/proc/self/fd/" + std::to_string(open_object.fd());
  if (*below != '\0') path += std::string("/") + below;
  HF_ASSERT(path.size() < sizeof address.sun_path);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

Peer peer_of(const Handle& socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(socket.fd(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return {0, UINT32_MAX, UINT32_MAX};
  return {credentials.pid, credentials.uid, credentials.gid};
}

// Bytes up to `size`, less at the end of the stream. `started`: bytes of this frame were read already.
Result<std::size_t> receive_bytes(const Handle& socket, char* into, std::size_t size, bool started) {
  std::size_t done = 0;
  while (done < size) {
    if (started || done > 0) {
      pollfd ready{socket.fd(), POLLIN, 0};
      const int count = ::poll(&ready, 1, kStallMs);
      if (count < 0 && errno == EINTR) continue;
      if (count == 0) return broken("receive a frame", ETIMEDOUT);
    }
    const ssize_t count = ::recv(socket.fd(), into + done, size - done, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return broken("recv", errno);
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

Refusal socket_refusal(const char* operation, int error) {
  const Code code = error == ELOOP || error == EXDEV    ? Code::workspace_insecure
                    : error == EACCES || error == EPERM ? Code::workspace_permission_denied
                                                        : Code::os_failed;
  return os_refusal(code, operation, error);
}

Result<Handle> open_servers_folder(const Handle& squad) {
  Opened folder = open_beneath(squad, kFolder, O_RDONLY | O_DIRECTORY);
  if (folder.error == ENOENT) {
    if (::mkdirat(squad.fd(), kFolder, 0700) != 0 && errno != EEXIST) return socket_refusal("mkdir servers", errno);
    folder = open_beneath(squad, kFolder, O_RDONLY | O_DIRECTORY);
  }
  if (folder.error != 0) return socket_refusal("open servers", folder.error);
  return std::move(folder.handle);
}

}  // namespace

Result<void> Connection::send(char kind, std::string_view payload) {
  if (payload.size() > kFrameMax || !is_kind(kind)) {
    return Refusal(Code::request_malformed, "a frame of " + std::to_string(payload.size()) + " bytes is not sent",
                   Json{{"frame_max", kFrameMax}});
  }
  char header[kHeader];
  for (unsigned at = 0; at < 4; ++at) header[at] = static_cast<char>((payload.size() >> (8 * at)) & 0xFFU);
  header[4] = kind;
  std::size_t done = 0;
  const std::size_t size = kHeader + payload.size();
  while (done < size) {
    const std::size_t of_payload = done > kHeader ? done - kHeader : 0;
    iovec pieces[2] = {{header + std::min(done, kHeader), kHeader - std::min(done, kHeader)},
                       {const_cast<char*>(payload.data()) + of_payload, payload.size() - of_payload}};
    msghdr message{};
    message.msg_iov = pieces;
    message.msg_iovlen = 2;
    const ssize_t count = ::sendmsg(socket_.fd(), &message, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return broken("send", errno);
    done += static_cast<std::size_t>(count);
  }
  return {};
}

Result<std::optional<Frame>> Connection::receive() {
  char header[kHeader];
  HF_TRY(const std::size_t got, receive_bytes(socket_, header, kHeader, false));
  if (got == 0) return std::optional<Frame>();
  if (got < kHeader) return broken("receive a frame's header", EPIPE);
  std::size_t size = 0;
  for (unsigned at = 0; at < 4; ++at)
    size |= static_cast<std::size_t>(static_cast<unsigned char>(header[at])) << (8 * at);
  if (size > kFrameMax || !is_kind(header[4])) {
    shut_down();
    return Refusal(Code::request_malformed, "no frame of this protocol: the connection ends",
                   Json{{"length", size}, {"frame_max", kFrameMax}, {"kind", static_cast<unsigned char>(header[4])}});
  }
  Frame frame{header[4], {}};
  while (frame.payload.size() < size) {
    const std::size_t before = frame.payload.size();
    const std::size_t piece = std::min(kPiece, size - before);
    frame.payload.resize(before + piece);
    HF_TRY(const std::size_t count, receive_bytes(socket_, frame.payload.data() + before, piece, true));
    if (count < piece) return broken("receive a frame's payload", EPIPE);
  }
  return std::optional<Frame>(std::move(frame));
}

bool Connection::peer_is_gone() const {
  pollfd state{socket_.fd(), POLLRDHUP, 0};
  while (::poll(&state, 1, 0) < 0) {
    if (errno != EINTR) return true;
  }
  return (state.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) != 0;
}

bool Connection::wait_until_gone(int limit_ms) const {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::milliseconds(limit_ms);
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(give_up - std::chrono::steady_clock::now()).count();
    if (left <= 0) return false;
    pollfd state{socket_.fd(), POLLRDHUP, 0};
    if (::poll(&state, 1, static_cast<int>(left)) > 0) return true;
  }
}

bool Connection::wait_for_input(int limit_ms) const {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::milliseconds(limit_ms);
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(give_up - std::chrono::steady_clock::now()).count();
    pollfd state{socket_.fd(), POLLIN, 0};
    if (::poll(&state, 1, left > 0 ? static_cast<int>(left) : 0) > 0) return true;
    if (left <= 0) return false;
  }
}

bool Connection::has_input() const {
  pollfd state{socket_.fd(), POLLIN, 0};
  return ::poll(&state, 1, 0) == 1;
}

bool Connection::wait_for_input_unless(const WakeSignal& call) const {
  for (;;) {
    pollfd sources[2] = {{socket_.fd(), POLLIN, 0}, {call.handle().fd(), POLLIN, 0}};
    if (::poll(sources, 2, -1) < 0) continue;
    return sources[1].revents == 0;
  }
}

Connection Connection::taken_over(Handle socket) {
  const Peer peer = peer_of(socket);
  return Connection(std::move(socket), peer);
}

void Connection::shut_down() { ::shutdown(socket_.fd(), SHUT_RDWR); }

struct Listener::State {
  Handle folder;
  Handle socket;
  struct stat name {};
  std::atomic<bool> closed{false};
};

// Bound and listening under another name first: whoever finds server.sock finds a socket that answers, and the name of
// a dead server's socket is replaced in one step.
Result<std::unique_ptr<Listener>> Listener::open(const Handle& squad) {
  auto state = std::make_unique<State>();
  HF_TRY(state->folder, open_servers_folder(squad));
  state->socket = Handle(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!state->socket) return socket_refusal("socket", errno);
  // The name that bind() makes gets the mode of the socket, less the umask.
  if (::fchmod(state->socket.fd(), 0600) != 0) return socket_refusal("fchmod", errno);
  const int folder = state->folder.fd();
  if (::unlinkat(folder, kNewSocket, 0) != 0 && errno != ENOENT) return socket_refusal("unlink", errno);
  const sockaddr_un address = address_through(state->folder, kNewSocket);
  if (::bind(state->socket.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return socket_refusal("bind", errno);
  }
  const bool ready = ::fstatat(folder, kNewSocket, &state->name, AT_SYMLINK_NOFOLLOW) == 0 &&
                     ::listen(state->socket.fd(), kBacklog) == 0 &&
                     ::renameat(folder, kNewSocket, folder, kSocket) == 0;
  if (!ready) {
    const int error = errno;
    ::unlinkat(folder, kNewSocket, 0);
    return socket_refusal("listen", error);
  }
  std::unique_ptr<Listener> listener(new Listener());
  listener->state_ = std::move(state);
  return listener;
}

Result<std::unique_ptr<Listener>> Listener::taken_over(const Handle& squad, Handle socket) {
  auto state = std::make_unique<State>();
  HF_TRY(state->folder, open_servers_folder(squad));
  int listens = 0;
  socklen_t size = sizeof listens;
  if (::getsockopt(socket.fd(), SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0) {
    return socket_refusal("take over the listening socket", ENOTSOCK);
  }
  if (::fstatat(state->folder.fd(), kSocket, &state->name, AT_SYMLINK_NOFOLLOW) != 0) {
    return socket_refusal("find the server's socket", errno);
  }
  state->socket = std::move(socket);
  std::unique_ptr<Listener> listener(new Listener());
  listener->state_ = std::move(state);
  return listener;
}

Listener::~Listener() = default;

const Handle& Listener::socket() const { return state_->socket; }

// listen(2) on a socket that listens already renews what SO_PEERCRED tells those who connect from now on.
void Listener::answer_as_this_process() { (void)::listen(state_->socket.fd(), kBacklog); }

Result<std::optional<Connection>> Listener::accept(int limit_ms, const WakeSignal* call) {
  for (;;) {
    if (state_->closed) return std::optional<Connection>();
    pollfd ready[2] = {{state_->socket.fd(), POLLIN, 0}, {call == nullptr ? -1 : call->handle().fd(), POLLIN, 0}};
    const int count = ::poll(ready, 2, limit_ms);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return os_refusal(Code::os_failed, "poll", errno);
    if (count == 0 || state_->closed || ready[1].revents != 0) return std::optional<Connection>();
    Handle socket(::accept4(state_->socket.fd(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket) {
      if (errno == EINTR || errno == EAGAIN || errno == ECONNABORTED) continue;
      if (state_->closed) return std::optional<Connection>();
      return os_refusal(Code::os_failed, "accept", errno);
    }
    const Peer peer = peer_of(socket);
    if (peer.user != ::geteuid() && peer.user != 0) continue;  // closed without a word
    const timeval stall{kStallMs / 1000, 0};
    if (::setsockopt(socket.fd(), SOL_SOCKET, SO_SNDTIMEO, &stall, sizeof stall) != 0) continue;
    return std::optional<Connection>(Connection(std::move(socket), peer));
  }
}

void Listener::close() {
  state_->closed = true;
  ::shutdown(state_->socket.fd(), SHUT_RDWR);  // wakes accept(), and whoever connects from now on is refused
}

void Listener::remove() {
  struct stat found {};
  if (::fstatat(state_->folder.fd(), kSocket, &found, AT_SYMLINK_NOFOLLOW) != 0) return;
  if (found.st_ino != state_->name.st_ino || found.st_dev != state_->name.st_dev) return;
  ::unlinkat(state_->folder.fd(), kSocket, 0);
}

Result<Connection> connect_to_server(const Handle& squad) {
  const std::string path = std::string(kFolder) + "/" + kSocket;
  const Opened name = open_beneath(squad, path, O_PATH | O_NOFOLLOW);
  if (name.error == ENOENT || name.error == ENOTDIR) {
    return os_refusal(Code::server_unreachable, "open the server's socket", name.error);
  }
  if (name.error != 0) return socket_refusal("open the server's socket", name.error);
  struct stat found {};
  if (::fstat(name.handle.fd(), &found) != 0 || !S_ISSOCK(found.st_mode)) {
    return Refusal(Code::workspace_insecure, path + " is no socket", Json{{"path", path}});
  }
  Handle socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return os_refusal(Code::os_failed, "socket", errno);
  const sockaddr_un address = address_through(name.handle, "");
  while (::connect(socket.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (errno == EINTR) continue;
    const bool denied = errno == EACCES || errno == EPERM;
    return os_refusal(denied ? Code::workspace_permission_denied : Code::server_unreachable, "connect", errno);
  }
  const Peer peer = peer_of(socket);
  return Connection(std::move(socket), peer);
}

}  // namespace holdfast::os
