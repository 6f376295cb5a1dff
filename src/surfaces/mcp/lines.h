// The two streams of a stdio server: lines in, lines out.
//
// LineReader: one thread. Promises: a line over the limit is told once and skipped to its end; a last line without a
// newline is a line; a carriage return before the newline is dropped; the limit bounds its memory.
// LineWriter: any thread. Promises: lines never mix, each is written whole however slowly it is read; after a failed
// write nothing more is written, and is_broken() says so.
// Source: MCP "stdio"; field reports M20, M28.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "os/handle.h"

namespace holdfast::mcp {

class LineReader {
 public:
  enum class Kind { text, too_long, end };

  LineReader(const os::Handle& stream, std::size_t limit) : stream_(stream), limit_(limit) {}
  // The next line, without its end; `line` is empty but for `text`.
  Kind next(std::string& line);

 private:
  bool fill();
  const os::Handle& stream_;
  std::size_t limit_;
  std::string buffer_;
  std::size_t used_ = 0;
  bool ended_ = false;
};

class LineWriter {
 public:
  explicit LineWriter(const os::Handle& stream) : stream_(stream) {}
  // The text and a newline. false where the stream is broken.
  bool write(std::string_view text);
  bool is_broken() const { return broken_; }
  // Grows while a slow reader takes what is written.
  std::uint64_t bytes_written() const { return written_; }

 private:
  const os::Handle& stream_;
  std::mutex mutex_;
  std::atomic<bool> broken_ = false;
  std::atomic<std::uint64_t> written_ = 0;
};

}  // namespace holdfast::mcp
