// What an open file object is and holds.
//
// Identity is device, inode and birth time together: inode numbers come back at once (KERNEL.md: 19 of 20 times;
// field report B91), so a number alone names nothing. Where a file system keeps no birth time, birth_ns is 0.
// All functions act on the object that is open, never on a name.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/digest.h"
#include "holdfast/result.h"
#include "os/handle.h"

namespace holdfast::os {

struct Identity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t birth_ns = 0;

  bool operator==(const Identity&) const = default;
  bool known() const { return inode != 0; }
  std::string text() const;  // volume-64:file-index-128
  Json to_json() const;      // {"volume","file_index","birth_ns"}, decimal strings
  static Identity from_json(const Json& value);
};

enum class Kind { regular, folder, link, other };

struct Facts {
  Identity identity;
  Kind kind = Kind::other;
  std::uint64_t byte_count = 0;
  std::uint64_t link_count = 0;
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;  // ctime: moves with every change of content, metadata or links
  std::uint32_t mode = 0;       // permission bits
  std::uint32_t user = 0;
  std::uint32_t group = 0;
};

// A system error as a refusal: details.os_error, details.operation; the code is the caller's choice, but
// out-of-space, read-only and permission errors keep the exit status 5 through the codes that callers pass.
Refusal os_refusal(Code code, const std::string& operation, int os_error);

Result<Facts> facts_of_open(const Handle& object);
Result<Handle> duplicate(const Handle& object);

// Up to `size` bytes from `offset`; 0 at the end of the file. Short reads and EINTR are dealt with.
Result<std::size_t> read_at(const Handle& object, std::uint64_t offset, char* into, std::size_t size);
// Writes all bytes at the current position, or says why not (short writes are continued; field report B76).
Result<void> write_all(const Handle& object, std::string_view bytes);
Result<void> flush(const Handle& object);

using Progress = std::function<void(std::uint64_t done)>;

// One pass over the object's bytes in constant memory.
Result<ContentDigest> digest_of_open(const Handle& object, const Progress& progress = {});
// The same without the FNV-1a, which only a release compares, and which takes longer than the SHA-256.
Result<ContentDigest> sha256_of_open(const Handle& object, const Progress& progress = {});
// All bytes, refused (file_unreadable) where there are more than `limit`.
Result<std::string> read_whole(const Handle& object, std::uint64_t limit);

}  // namespace holdfast::os
