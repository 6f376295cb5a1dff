// Untrusted input: all that a client says to `holdfast mcp`, line by line; the first byte picks the revision that is
// settled beforehand. There is no workspace behind it.
//
// Invariants: nothing throws, nothing hangs; each line of the answer is strict ASCII JSON under 1 MiB; each request is
// answered once (or not, where something was cancelled or listens), each line that cannot be read is answered once, and
// nothing else is.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"
#include "surfaces/mcp/conversation.h"

namespace {

using namespace holdfast;
using namespace holdfast::mcp;

// One conversation for all inputs: its threads are made once.
struct Talk {
  os::Handle out{::memfd_create("out", MFD_CLOEXEC)};
  ServerLink link{[]() -> Result<std::string> { return Refusal(Code::workspace_not_found, "none"); }, "/"};
  LineWriter writer{out};
  Conversation conversation{link, writer, [](const std::string&) { return Result<Json>(Json::object()); }};

  std::string said() {
    HF_ASSERT(conversation.wait_until_idle(std::chrono::milliseconds(20'000)));
    conversation.end_subscriptions();
    const auto size = ::lseek(out.fd(), 0, SEEK_END);
    std::string text(static_cast<std::size_t>(size), '\0');
    HF_ASSERT(::pread(out.fd(), text.data(), text.size(), 0) == size);
    HF_ASSERT(::ftruncate(out.fd(), 0) == 0 && ::lseek(out.fd(), 0, SEEK_SET) == 0);
    return text;
  }
};

template <class Use>
void for_each_line(std::string_view text, const Use& use) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    use(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

struct Expected {
  std::size_t least = 0;
  std::size_t most = 0;
};

void expect(const Item& item, Expected& answers, bool is_cancelled) {
  const auto* message = std::get_if<Message>(&item);
  if (message != nullptr && message->kind != Message::Kind::request) return;
  ++answers.most;
  const bool may_stay_away = message != nullptr && (is_cancelled || message->method == "subscriptions/listen");
  if (!may_stay_away) ++answers.least;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static constexpr std::array kRevisions = {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"};
  static Talk& talk = *new Talk;
  if (size == 0) return 0;
  talk.conversation.take_line(
      std::string(R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":")") +
      kRevisions[data[0] % kRevisions.size()] + "\"}}");
  static_cast<void>(talk.said());

  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const bool is_cancelled =
      text.find("cancelled") != std::string_view::npos || text.find('\\') != std::string_view::npos;
  Expected answers;
  bool has_batch = false;
  for_each_line(text, [&](std::string_view line) {
    talk.conversation.take_line(line);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) return;
    const ParsedLine parsed = parse_line(line);
    has_batch = has_batch || parsed.is_batch;
    if (parsed.is_batch) ++answers.most;
    for (const Item& item : parsed.items) expect(item, answers, is_cancelled);
  });

  std::size_t count = 0;
  for_each_line(talk.said(), [&](std::string_view line) {
    HF_ASSERT(line.size() < kReplyMax);
    for (const char byte : line) HF_ASSERT(byte >= 0x20 && byte < 0x7F);
    const auto document = parse_json(line);
    HF_ASSERT(document && (document->is_object() || document->is_array()));
    for (const Json& one : document->is_array() ? *document : Json::array({*document})) {
      HF_ASSERT(one["jsonrpc"] == "2.0");
      if (one.contains("method")) {
        HF_ASSERT(!one.contains("id"));
        continue;
      }
      HF_ASSERT(one.contains("result") != one.contains("error"));
      HF_ASSERT(!one.contains("id") || one["id"].is_string() || one["id"].is_number_integer());
      ++count;
    }
  });
  HF_ASSERT(count <= answers.most);
  HF_ASSERT(has_batch || count >= answers.least);
  return 0;
}
