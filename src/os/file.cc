#include "os/file.h"

#include "base/json.h"
#include "base/piece.h"

namespace holdfast::os {
std::string Identity::text() const {
  return "volume-" + std::to_string(device) + ":file-index-" + std::to_string(inode);
}

Json Identity::to_json() const {
  if (!known()) return nullptr;
  return Json{{"volume", std::to_string(device)},
              {"file_index", std::to_string(inode)},
              {"birth_ns", std::to_string(birth_ns)}};
}

Identity Identity::from_json(const Json& value) {
  Identity identity;
  if (!value.is_object()) return identity;
  identity.device = exact_u64(value.value("volume", Json())).value_or(0);
  identity.inode = exact_u64(value.value("file_index", Json())).value_or(0);
  const std::string birth = text_member(value, "birth_ns");
  identity.birth_ns = birth.empty() ? 0 : std::strtoll(birth.c_str(), nullptr, 10);
  return identity;
}

namespace {
Result<ContentDigest> pass_over(const Handle& object, Fnv1a* fnv1a, const Progress& progress) {
  Sha256 sha256;
  ContentDigest digest;
  Piece piece;
  for (;;) {
    HF_TRY(const std::size_t count, read_at(object, digest.byte_count, piece.data(), piece.size()));
    if (count == 0) break;
    sha256.add(piece.first(count));
    if (fnv1a != nullptr) fnv1a->add(piece.first(count));
    digest.byte_count += count;
    if (progress) progress(digest.byte_count);
  }
  digest.sha256 = sha256.hex();
  if (fnv1a != nullptr) digest.fnv1a = fnv1a->hex();
  return digest;
}
}  // namespace

Result<ContentDigest> digest_of_open(const Handle& object, const Progress& progress) {
  Fnv1a fnv1a;
  return pass_over(object, &fnv1a, progress);
}

Result<ContentDigest> sha256_of_open(const Handle& object, const Progress& progress) {
  return pass_over(object, nullptr, progress);
}

Result<std::string> read_whole(const Handle& object, std::uint64_t limit) {
  HF_TRY(const Facts facts, facts_of_open(object));
  if (facts.byte_count > limit) {
    return Refusal(Code::file_unreadable, "the file has " + std::to_string(facts.byte_count) + " bytes, more than " +
                                              std::to_string(limit) + " are read at once");
  }
  std::string bytes;
  Piece piece;
  for (;;) {
    HF_TRY(const std::size_t count, read_at(object, bytes.size(), piece.data(), piece.size()));
    if (count == 0) return bytes;
    bytes.append(piece.first(count));
    if (bytes.size() > limit) return Refusal(Code::file_unreadable, "the file grew while it was read");
  }
}

}  // namespace holdfast::os
