// A stream socket pair. A message is 4 bytes little-endian length with the descriptors beside them, then the text.
#include "os/descriptor_channel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "os/file.h"

namespace holdfast::os {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t kHeader = 4;
constexpr int kSendLimitS = 10;
constexpr int kRestLimitMs = 10'000;  // of a message that has begun

Refusal broken(const char* operation, int error) { return os_refusal(Code::handoff_failed, operation, error); }

Result<void> prepare(const Handle& socket) {
  const timeval stall{kSendLimitS, 0};
  if (::setsockopt(socket.fd(), SOL_SOCKET, SO_SNDTIMEO, &stall, sizeof stall) == 0) return {};
  return broken("setsockopt", errno);
}

Result<bool> wait_for_input(const Handle& socket, int limit_ms) {
  const auto give_up = SteadyClock::now() + std::chrono::milliseconds(limit_ms);
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(give_up - SteadyClock::now()).count();
    pollfd state{socket.fd(), POLLIN, 0};
    const int count = ::poll(&state, 1, limit_ms < 0 ? -1 : static_cast<int>(left > 0 ? left : 0));
    if (count > 0) return true;
    if (count < 0 && errno != EINTR) return broken("poll", errno);
    if (count == 0 && left <= 0 && limit_ms >= 0) return false;
  }
}

void take_objects(const msghdr& message, std::vector<Handle>& into) {
  for (const cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(const_cast<msghdr*>(&message), const_cast<cmsghdr*>(part))) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t at = 0; at < count; ++at) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(part) + at * sizeof(int), sizeof descriptor);
      into.emplace_back(descriptor);
    }
  }
}

// Up to `size` bytes, less at the end of the stream.
Result<std::size_t> receive_bytes(const Handle& socket, char* into, std::size_t size, std::vector<Handle>& objects) {
  std::size_t done = 0;
  while (done < size) {
    HF_TRY(const bool ready, wait_for_input(socket, kRestLimitMs));
    if (!ready) return broken("receive", ETIMEDOUT);
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * DescriptorChannel::kObjectsMax)];
    iovec piece{into + done, size - done};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t count = ::recvmsg(socket.fd(), &message, MSG_CMSG_CLOEXEC);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == ECONNRESET) break;
    if (count < 0) return broken("recvmsg", errno);
    take_objects(message, objects);
    if ((message.msg_flags & MSG_CTRUNC) != 0) return broken("recvmsg", EMFILE);
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

}  // namespace

Result<DescriptorChannel> DescriptorChannel::make_pair(Handle& theirs) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return broken("socketpair", errno);
  Handle ours(ends[0]);
  theirs = Handle(ends[1]);
  HF_CHECK(prepare(ours));
  return DescriptorChannel(std::move(ours));
}

Result<DescriptorChannel> DescriptorChannel::inherited(Handle::Native number) {
  int domain = 0;
  socklen_t size = sizeof domain;
  const int descriptor = static_cast<int>(number);
  if (number < 3 || ::getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 || domain != AF_UNIX) {
    return Refusal(Code::adoption_not_expected, "this process was not started by a server that hands over");
  }
  Handle socket(descriptor);
  if (::fcntl(descriptor, F_SETFD, FD_CLOEXEC) != 0) return broken("fcntl", errno);
  HF_CHECK(prepare(socket));
  return DescriptorChannel(std::move(socket));
}

Result<void> DescriptorChannel::send(const std::string& text, const std::vector<const Handle*>& objects) {
  HF_ASSERT(objects.size() <= kObjectsMax);
  if (text.size() > kMessageMax) return broken("send", EMSGSIZE);
  char header[kHeader];
  for (unsigned at = 0; at < kHeader; ++at) header[at] = static_cast<char>((text.size() >> (8 * at)) & 0xFFU);
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kObjectsMax)] = {};
  std::size_t done = 0;
  while (done < kHeader + text.size()) {
    const std::size_t of_text = done > kHeader ? done - kHeader : 0;
    iovec pieces[2] = {{header + std::min(done, kHeader), kHeader - std::min(done, kHeader)},
                       {const_cast<char*>(text.data()) + of_text, text.size() - of_text}};
    msghdr message{};
    message.msg_iov = pieces;
    message.msg_iovlen = 2;
    if (done == 0 && !objects.empty()) {
      message.msg_control = control;
      message.msg_controllen = CMSG_SPACE(sizeof(int) * objects.size());
      cmsghdr* part = CMSG_FIRSTHDR(&message);
      part->cmsg_level = SOL_SOCKET;
      part->cmsg_type = SCM_RIGHTS;
      part->cmsg_len = CMSG_LEN(sizeof(int) * objects.size());
      for (std::size_t at = 0; at < objects.size(); ++at) {
        const int descriptor = objects[at]->fd();
        std::memcpy(CMSG_DATA(part) + at * sizeof(int), &descriptor, sizeof descriptor);
      }
    }
    const ssize_t count = ::sendmsg(socket_.fd(), &message, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return broken("sendmsg", errno);
    done += static_cast<std::size_t>(count);
  }
  return {};
}

Result<std::optional<DescriptorChannel::Message>> DescriptorChannel::receive(int limit_ms) {
  HF_TRY(const bool ready, wait_for_input(socket_, limit_ms));
  if (!ready) return broken("receive", ETIMEDOUT);
  Message message;
  char header[kHeader];
  HF_TRY(const std::size_t got, receive_bytes(socket_, header, kHeader, message.objects));
  if (got < kHeader) return std::optional<Message>();
  std::size_t size = 0;
  for (unsigned at = 0; at < kHeader; ++at) {
    size |= static_cast<std::size_t>(static_cast<unsigned char>(header[at])) << (8 * at);
  }
  if (size > kMessageMax) return broken("receive", EMSGSIZE);
  message.text.resize(size);
  HF_TRY(const std::size_t rest, receive_bytes(socket_, message.text.data(), size, message.objects));
  if (rest < size) return std::optional<Message>();
  return std::optional<Message>(std::move(message));
}

}  // namespace holdfast::os
