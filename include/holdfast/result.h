// Result<T>: a value or a Refusal.
//
// Calling sequence: HF_TRY(auto lease, renew(held, now)); or `if (!result) return result.refusal();`
// Promises: never empty; value() on a refusal is a programming error and aborts.
// Why not std::expected: clang 14 (clang-tidy, libFuzzer) cannot use libstdc++'s; see docs/adr/0003.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <variant>

#include "holdfast/refusal.h"

namespace holdfast {

[[noreturn]] inline void assertion_failed(const char* what, const char* file, int line) {
  std::fprintf(stderr, "holdfast: assertion failed: %s (%s:%d)\n", what, file, line);
  std::abort();
}
#define HF_ASSERT(condition) ((condition) ? void() : ::holdfast::assertion_failed(#condition, __FILE__, __LINE__))

struct Unit {};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}            // NOLINT: implicit by design
  Result(Refusal refusal) : state_(std::in_place_index<1>, std::move(refusal)) {}  // NOLINT

  explicit operator bool() const { return state_.index() == 0; }
  bool ok() const { return state_.index() == 0; }

  T& value() & {
    HF_ASSERT(ok());
    return std::get<0>(state_);
  }
  const T& value() const& {
    HF_ASSERT(ok());
    return std::get<0>(state_);
  }
  T&& value() && {
    HF_ASSERT(ok());
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  Refusal& refusal() & {
    HF_ASSERT(!ok());
    return std::get<1>(state_);
  }
  const Refusal& refusal() const& {
    HF_ASSERT(!ok());
    return std::get<1>(state_);
  }
  Refusal&& refusal() && {
    HF_ASSERT(!ok());
    return std::get<1>(std::move(state_));
  }

 private:
  std::variant<T, Refusal> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() : state_(std::in_place_index<0>) {}
  Result(Unit) : Result() {}                                                       // NOLINT
  Result(Refusal refusal) : state_(std::in_place_index<1>, std::move(refusal)) {}  // NOLINT

  explicit operator bool() const { return state_.index() == 0; }
  bool ok() const { return state_.index() == 0; }
  void value() const { HF_ASSERT(ok()); }

  Refusal& refusal() & {
    HF_ASSERT(!ok());
    return std::get<1>(state_);
  }
  const Refusal& refusal() const& {
    HF_ASSERT(!ok());
    return std::get<1>(state_);
  }
  Refusal&& refusal() && {
    HF_ASSERT(!ok());
    return std::get<1>(std::move(state_));
  }

 private:
  std::variant<Unit, Refusal> state_;
};

#define HF_CONCAT_(a, b) a##b
#define HF_CONCAT(a, b) HF_CONCAT_(a, b)
#define HF_TRY_(target, expression, temporary)                \
  auto temporary = (expression);                              \
  if (!temporary.ok()) return std::move(temporary).refusal(); \
  target = std::move(temporary).value()
// HF_TRY(auto x, f()) binds the value or returns the refusal; HF_CHECK(f()) is the same for Result<void>.
#define HF_TRY(target, expression) HF_TRY_(target, expression, HF_CONCAT(hf_result_, __LINE__))
#define HF_CHECK(expression)                                      \
  do {                                                            \
    auto hf_checked = (expression);                               \
    if (!hf_checked.ok()) return std::move(hf_checked).refusal(); \
  } while (false)

}  // namespace holdfast
