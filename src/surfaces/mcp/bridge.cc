#include "surfaces/mcp/bridge.h"

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

// Requests that run get a moment; an answer that is under way gets as long as its reader goes on taking it.
void finish(Conversation& conversation, const LineWriter& writer, const os::Handle& out) {
  conversation.withdraw_waiting();
  auto give_up = steady_clock::now() + kFinish;
  std::uint64_t written = writer.bytes_written();
  std::size_t unread = os::bytes_unread(out);
  while (!writer.is_broken() && steady_clock::now() < give_up && !conversation.wait_until_idle(kLook)) {
    const std::size_t unread_now = os::bytes_unread(out);
    const bool is_read = unread_now < unread || (unread_now > 0 && writer.bytes_written() > written);
    if (is_read) give_up = steady_clock::now() + kReaderRests;
    written = writer.bytes_written();
    unread = unread_now;
  }
  if (!writer.is_broken() && conversation.wait_until_idle(milliseconds(0))) conversation.end_subscriptions();
}

}  // namespace

Result<void> run_bridge(const BridgeOptions& options) {
  HF_TRY(const os::Handle out, os::take_standard_output());
  const os::Handle in(0);
  os::keep_footprint_small();
  ServerLink link(options.find_root, options.current_folder);
  LineWriter writer(out);
  Conversation conversation(link, writer, options.doctor, options.extension);
  LineReader reader(in, kLineMax);
  std::string line;
  for (;;) {
    const LineReader::Kind kind = reader.next(line);
    if (kind == LineReader::Kind::end || writer.is_broken()) break;
    if (kind == LineReader::Kind::too_long) {
      conversation.take_too_long();
    } else {
      conversation.take_line(line);
    }
  }
  finish(conversation, writer, out);
  return {};
}

}  // namespace holdfast::mcp
