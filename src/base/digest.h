// Digests: SHA-256 (identity of bytes) and FNV-1a 64 (a routing key and a drift check, never a proof).
//
// Sha256 and Fnv1a take bytes in pieces; hex() may be called once all have been given.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace holdfast {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void add(std::string_view bytes);
  std::string hex();  // 64 lowercase hex digits; ends the computation

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class Fnv1a {
 public:
  void add(std::string_view bytes) {
    for (const char byte : bytes) value_ = (value_ ^ static_cast<unsigned char>(byte)) * 0x100000001B3ULL;
  }
  std::uint64_t value() const { return value_; }
  std::string hex() const;  // 16 lowercase hex digits

 private:
  std::uint64_t value_ = 0xCBF29CE484222325ULL;
};

std::string sha256_hex(std::string_view bytes);
std::string fnv1a_hex(std::string_view bytes);
bool is_sha256_hex(std::string_view text);

// What a pass over some bytes tells.
struct ContentDigest {
  std::string sha256;
  std::string fnv1a;
  std::uint64_t byte_count = 0;
};

}  // namespace holdfast
