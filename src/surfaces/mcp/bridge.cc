#include "surfaces/mcp/bridge.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "os/stream.h"
#include "os/termination.h"

namespace holdfast::mcp {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kFinish{700};
constexpr milliseconds kReaderRests{2'000};
constexpr milliseconds kLook{50};

// What the threads share. Never taken away: they run until the process ends.
struct Bridge {
  Bridge(os::Handle taken_output, const BridgeOptions& options)
      : out(std::move(taken_output)),
        link(options.find_root, options.current_folder),
        conversation(link, writer, options.doctor, options.extension) {}
  os::Handle in{0};
  os::Handle out;
  ServerLink link;
  LineWriter writer{out};
  Conversation conversation;
  LineReader reader{in, kLineMax};
  std::atomic<std::uint64_t> lines_taken = 0;
  std::atomic<bool> finishes = false;
};

// How long the end may still be waited for: a moment, and longer while somebody goes on taking what is written.
class Patience {
 public:
  explicit Patience(const Bridge& bridge) : bridge_(bridge), give_up_(steady_clock::now() + kFinish) {}

  bool is_left() {
    const std::size_t unread = os::bytes_unread(bridge_.out);
    const std::uint64_t written = bridge_.writer.bytes_written();
    const std::uint64_t lines = bridge_.lines_taken;
    const bool is_read = !bridge_.writer.is_broken() && (unread < unread_ || (unread > 0 && written > written_));
    if (is_read) give_up_ = std::max(give_up_, steady_clock::now() + kReaderRests);
    if (lines > lines_) give_up_ = std::max(give_up_, steady_clock::now() + kFinish);
    unread_ = unread;
    written_ = written;
    lines_ = lines;
    return steady_clock::now() < give_up_;
  }

 private:
  const Bridge& bridge_;
  steady_clock::time_point give_up_;
  std::size_t unread_ = os::bytes_unread(bridge_.out);
  std::uint64_t written_ = bridge_.writer.bytes_written();
  std::uint64_t lines_ = bridge_.lines_taken;
};

// The thread that reads may be kept from seeing the end: it writes an answer that nobody takes, or waits for room while
// the server stands still. Then this one ends the process in its place.
void end_in_place_of_the_reader(Bridge& bridge) {
  os::wait_until_abandoned(bridge.in, bridge.out);
  Patience patience(bridge);
  while (!bridge.finishes && patience.is_left()) {
    bridge.conversation.withdraw_waiting();
    std::this_thread::sleep_for(kLook);
  }
  if (!bridge.finishes) std::_Exit(0);
}

// Requests that run get a moment, also where nobody reads any more: what they were granted is given back.
void finish(Bridge& bridge) {
  bridge.finishes = true;
  bridge.conversation.withdraw_waiting();
  Patience patience(bridge);
  while (!bridge.conversation.wait_until_idle(kLook) && patience.is_left()) {}
  if (!bridge.writer.is_broken() && bridge.conversation.wait_until_idle(milliseconds(0))) {
    bridge.conversation.end_subscriptions();
  }
}

}  // namespace

Result<void> run_bridge(const BridgeOptions& options) {
  HF_TRY(os::Handle out, os::take_standard_output());
  os::keep_footprint_small();
  Bridge& bridge = *new Bridge(std::move(out), options);
  std::thread([&bridge] { end_in_place_of_the_reader(bridge); }).detach();
  std::string line;
  for (;; ++bridge.lines_taken) {
    const LineReader::Kind kind = bridge.reader.next(line);
    if (kind == LineReader::Kind::end || bridge.writer.is_broken()) break;
    if (kind == LineReader::Kind::too_long) {
      bridge.conversation.take_too_long();
    } else {
      bridge.conversation.take_line(line);
    }
  }
  finish(bridge);
  return {};
}

}  // namespace holdfast::mcp
