// The bytes of a write, from a file or from standard input, in pieces: nothing is ever held whole.
//
// The source is opened here, in the client: the server never opens a path that a client names for reading.
// Errors: content_unreadable (details.os_error), also where what was named is a folder.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "engine/engine.h"
#include "os/handle.h"

namespace holdfast::cli {

class StreamContent : public ContentSource {
 public:
  static constexpr std::size_t kPiece = 256U * 1024U;

  // "-" is standard input.
  static Result<std::unique_ptr<StreamContent>> open(const std::string& from);
  ~StreamContent() override;

  Result<std::size_t> read(char* into, std::size_t size) override;
  bool has_begun() const { return begun_; }
  // Of a regular file that says how long it is; the engine refuses other than this many bytes.
  const std::optional<std::uint64_t>& byte_count() const { return byte_count_; }

 private:
  StreamContent(os::Handle stream, bool borrowed) : stream_(std::move(stream)), borrowed_(borrowed) {}
  os::Handle stream_;
  bool borrowed_;
  bool begun_ = false;
  std::optional<std::uint64_t> byte_count_;
};

}  // namespace holdfast::cli
