#include "surfaces/mcp/lines.h"

#include "base/piece.h"
#include "os/stream.h"

namespace holdfast::mcp {

bool LineReader::fill() {
  if (ended_) return false;
  buffer_.erase(0, used_);
  used_ = 0;
  Piece piece;
  const auto count = os::read_some(stream_, piece.data(), piece.size(), Code::content_unreadable);
  ended_ = !count.ok() || *count == 0;
  if (!ended_) buffer_.append(piece.data(), *count);
  return !ended_;
}

LineReader::Kind LineReader::next(std::string& line) {
  line.clear();
  bool too_long = false;
  std::size_t looked_at = used_;
  for (;;) {
    const std::size_t newline = buffer_.find('\n', looked_at);
    if (newline != std::string::npos || (ended_ && used_ < buffer_.size())) {
      const std::size_t end = newline == std::string::npos ? buffer_.size() : newline;
      too_long = too_long || end - used_ > limit_;
      if (!too_long) line.assign(buffer_, used_, end - used_);
      used_ = newline == std::string::npos ? end : end + 1;
      if (!line.empty() && line.back() == '\r') line.pop_back();
      return too_long ? Kind::too_long : Kind::text;
    }
    if (ended_) return too_long ? Kind::too_long : Kind::end;
    // What is over the limit is not kept.
    if (buffer_.size() - used_ > limit_) {
      too_long = true;
      used_ = buffer_.size();
    }
    const std::size_t kept = buffer_.size() - used_;
    fill();
    looked_at = used_ + kept;
  }
}

bool LineWriter::write(std::string_view text) {
  constexpr std::size_t kPiece = 32U << 10U;
  std::string line(text);
  line += '\n';
  const std::scoped_lock scoped(mutex_);
  for (std::size_t at = 0; at < line.size() && !broken_; at += kPiece) {
    const std::string_view piece = std::string_view(line).substr(at, kPiece);
    if (!os::write_stream(stream_, piece, Code::os_failed).ok()) {
      broken_ = true;
    } else {
      written_ += piece.size();
    }
  }
  return !broken_;
}

}  // namespace holdfast::mcp
