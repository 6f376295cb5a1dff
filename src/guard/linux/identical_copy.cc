#include "guard/linux/identical_copy.h"

#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "base/piece.h"
#include "guard/guard.h"
#include "guard/linux/place.h"

namespace holdfast::guard {
namespace {

Result<void> copy_by_reading(const os::Handle& source, const os::Handle& into, std::uint64_t from) {
  if (::lseek(into.fd(), static_cast<off_t>(from), SEEK_SET) < 0) {
    return os::os_refusal(Code::staging_failed, "lseek", errno);
  }
  Piece piece;
  for (std::uint64_t at = from;;) {
    HF_TRY(const std::size_t count, os::read_at(source, at, piece.data(), Piece::size()));
    if (count == 0) return {};
    HF_CHECK(os::write_all(into, piece.first(count)));
    at += count;
  }
}

// Sharing the blocks, then copying inside the kernel, then by hand: the first that the file system can do.
Result<void> copy_bytes(const os::Handle& source, const os::Handle& into) {
  if (::ioctl(into.fd(), FICLONE, source.fd()) == 0) return {};
  off_t read_at = 0;
  off_t write_at = 0;
  for (;;) {
    const ssize_t count = ::copy_file_range(source.fd(), &read_at, into.fd(), &write_at, 1U << 30U, 0);
    if (count > 0) continue;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EIO || errno == EFBIG)) {
      return os::os_refusal(Code::staging_failed, "copy_file_range", errno);
    }
    // Some file systems answer 0 though there is more to read.
    return copy_by_reading(source, into, static_cast<std::uint64_t>(write_at));
  }
}

}  // namespace

Refusal fresh_lease_refusal(int error) { return os::os_refusal(Code::staging_failed, "fcntl(F_SETLEASE)", error); }

Result<os::Handle> make_identical_copy(const os::Handle& source, const os::Handle& folder, const BreakSignals& signals,
                                       CopyScope scope) {
  HF_TRY(os::Handle writer, make_nameless(folder, 0600));
  // Opened now: the mode that the copy gets may not let its owner read it.
  HF_TRY(os::Handle copy, reopen_for_reading(writer));
  if (scope == CopyScope::whole) HF_CHECK(copy_bytes(source, writer));
  HF_TRY(const Metadata metadata, metadata_of_open(source));
  HF_CHECK(apply_metadata(writer, metadata, true));
  if (scope == CopyScope::whole) {
    HF_TRY(const os::Facts was, os::facts_of_open(source));
    HF_TRY(const os::Facts now, os::facts_of_open(copy));
    if (was.byte_count != now.byte_count) return os::os_refusal(Code::staging_failed, "copy", EIO);
    // The name must never lead to bytes that a power cut takes away.
    if (auto flushed = os::flush(writer); !flushed.ok()) {
      return os::os_refusal(Code::staging_failed, "fsync", flushed.refusal().details().value("os_error", EIO));
    }
  }
  writer.reset();
  if (const int error = take_read_lease_within(copy, signals, kInheritedWriterMs); error != 0) {
    return fresh_lease_refusal(error);
  }
  return copy;
}

}  // namespace holdfast::guard
