// A ContentSource over a text, which can break after some bytes.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>

#include "engine/engine.h"

namespace holdfast::support {

class TextContent : public ContentSource {
 public:
  explicit TextContent(std::string bytes, std::size_t fail_after = SIZE_MAX)
      : bytes_(std::move(bytes)), fail_after_(fail_after) {}
  Result<std::size_t> read(char* into, std::size_t size) override {
    if (used_ >= fail_after_) return Refusal(Code::content_unreadable, "the disk went away");
    const std::size_t count = std::min(size, bytes_.size() - used_);
    std::copy_n(bytes_.data() + used_, count, into);
    used_ += count;
    return count;
  }
  std::size_t used() const { return used_; }

 private:
  std::string bytes_;
  std::size_t fail_after_;
  std::size_t used_ = 0;
};

}  // namespace holdfast::support
