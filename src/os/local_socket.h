// LocalSocket: messages between the verbs and the workspace's server, on this machine only.
//
// A stream of frames: 4 bytes little-endian length, 1 byte kind, payload. Kinds: 'J' one JSON document, 'C' a piece of
// content, 'E' end of content (empty), 'P' progress (JSON). A frame is at most 1 MiB of payload; a longer one, or an
// unknown kind, ends the connection.
// Linux: a Unix stream socket servers/server.sock below .squad, reached through the open folder, so that the length of
// the workspace's path does not matter; the peer's pid, uid and gid come from SO_PEERCRED. Only the same user and root
// are served.
// Threads: one thread a connection. SIGPIPE never reaches the process.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "holdfast/result.h"
#include "os/handle.h"
#include "os/wake_signal.h"

namespace holdfast::os {

struct Frame {
  char kind = 'J';
  std::string payload;
};

struct Peer {
  std::int64_t pid = 0;
  std::uint32_t user = 0;
  std::uint32_t group = 0;
};

class Connection {
 public:
  static constexpr std::size_t kFrameMax = 1U << 20U;

  explicit Connection(Handle socket, Peer peer = {}) : socket_(std::move(socket)), peer_(peer) {}
  Result<void> send(char kind, std::string_view payload);
  // nullopt: the peer closed the connection in an orderly place (before a frame).
  Result<std::optional<Frame>> receive();
  bool peer_is_gone() const;  // hung up, without consuming anything
  // Waits until the peer has closed, or until shut_down(); false at the limit. Nothing is consumed.
  bool wait_until_gone(int limit_ms) const;
  bool wait_for_input(int limit_ms) const;  // until receive() would begin at once; false at the limit
  bool has_input() const;                   // receive() would begin at once (with a frame or with the end)
  // The same without a limit; false where `call` is raised.
  bool wait_for_input_unless(const WakeSignal& call) const;
  // A connection that another process accepted: who is at its other end is what the kernel noted then.
  static Connection taken_over(Handle socket);
  const Peer& peer() const { return peer_; }
  const Handle& socket() const { return socket_; }
  void shut_down();  // wakes a thread that waits in receive()

 private:
  Handle socket_;
  Peer peer_;
};

class Listener {
 public:
  // Replaces a socket that a dead server left; the caller holds servers/server.lock exclusively.
  static Result<std::unique_ptr<Listener>> open(const Handle& squad);
  // The listening socket of a server that hands over, which holds the name; nothing changes by it.
  static Result<std::unique_ptr<Listener>> taken_over(const Handle& squad, Handle socket);
  ~Listener();
  // Waits for a connection; nullopt after close(), while `call` is raised, or at the time limit (ms; -1: none).
  Result<std::optional<Connection>> accept(int limit_ms, const WakeSignal* call = nullptr);
  const Handle& socket() const;
  // From now on whoever connects sees this process at the other end.
  void answer_as_this_process();
  void close();
  void remove();  // takes the socket's name away

 private:
  Listener() = default;
  struct State;
  std::unique_ptr<State> state_;
};

// server_unreachable where nobody listens.
Result<Connection> connect_to_server(const Handle& squad);

}  // namespace holdfast::os
