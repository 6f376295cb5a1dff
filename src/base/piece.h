// A buffer for carrying bytes piece by piece. Its memory is not cleared: of a small file only the pages that are used
// are ever touched (clearing 256 KiB took a tenth of a small replacement's time).
#pragma once
#include <memory>
#include <string_view>

namespace holdfast {

class Piece {
 public:
  static constexpr std::size_t kSize = 256U * 1024U;
  Piece() : bytes_(std::make_unique_for_overwrite<char[]>(kSize)) {}

  char* data() { return bytes_.get(); }
  static constexpr std::size_t size() { return kSize; }
  std::string_view first(std::size_t count) const { return {bytes_.get(), count}; }

 private:
  std::unique_ptr<char[]> bytes_;
};

}  // namespace holdfast
