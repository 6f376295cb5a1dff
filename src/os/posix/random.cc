#include <sys/random.h>

#include <cerrno>

#include "base/ids.h"
#include "holdfast/result.h"

namespace holdfast {

std::string random_hex(std::size_t bytes) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string raw(bytes, '\0');
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t count = ::getrandom(raw.data() + done, bytes - done, 0);
    HF_ASSERT(count > 0 || errno == EINTR);
    if (count > 0) done += static_cast<std::size_t>(count);
  }
  std::string out;
  for (const char byte : raw) {
    out += kHex[static_cast<unsigned char>(byte) >> 4U];
    out += kHex[static_cast<unsigned char>(byte) & 15U];
  }
  return out;
}

}  // namespace holdfast
