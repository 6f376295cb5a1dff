// Handle: one open kernel object, closed when it goes. A file descriptor on POSIX, a HANDLE on Windows;
// both say -1 for "none" (INVALID_HANDLE_VALUE). Move-only; moving onto a held handle closes that one first.
#pragma once
#include <cstdint>
#include <utility>

namespace holdfast::os {

class Handle {
 public:
  using Native = std::intptr_t;
  static constexpr Native kNone = -1;

  Handle() = default;
  explicit Handle(Native native) : native_(native) {}
  Handle(Handle&& other) noexcept : native_(std::exchange(other.native_, kNone)) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) {
      reset();
      native_ = std::exchange(other.native_, kNone);
    }
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { reset(); }

  void reset();  // os/<platform>/handle.cc
  Native release() { return std::exchange(native_, kNone); }
  Native native() const { return native_; }
  int fd() const { return static_cast<int>(native_); }
  explicit operator bool() const { return native_ != kNone; }

 private:
  Native native_ = kNone;
};

}  // namespace holdfast::os
