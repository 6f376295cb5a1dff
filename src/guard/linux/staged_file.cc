#include "guard/linux/staged_file.h"

#include <cerrno>

#include "guard/linux/identical_copy.h"
#include "guard/linux/place.h"

namespace holdfast::guard {

// Made with mode 0666, so that the kernel itself takes the umask, or the folder's default access list, off it.
Result<std::unique_ptr<NamelessStagedFile>> NamelessStagedFile::make(const os::Handle& folder,
                                                                     const BreakSignals& signals) {
  HF_TRY(os::Handle writer, make_nameless(folder, 0666));
  HF_TRY(os::Handle reader, reopen_for_reading(writer));
  return std::unique_ptr<NamelessStagedFile>(new NamelessStagedFile(std::move(writer), std::move(reader), signals));
}

Result<void> NamelessStagedFile::write(std::string_view bytes) {
  if (sealed_ || !writer_) return Refusal(Code::staging_failed, "the staged file is sealed");
  return os::write_all(writer_, bytes);
}

Result<ContentDigest> NamelessStagedFile::seal(const std::optional<Metadata>& metadata) {
  if (sealed_ || !writer_) return Refusal(Code::staging_failed, "the staged file is sealed");
  if (metadata.has_value()) HF_CHECK(apply_metadata(writer_, *metadata, false));
  if (auto flushed = os::flush(writer_); !flushed.ok()) {
    return os::os_refusal(Code::staging_failed, "fsync", flushed.refusal().details().value("os_error", EIO));
  }
  writer_.reset();
  // A file system without leases seals all the same; what is published then is not enforced.
  lease_error_ = take_read_lease_within(reader_, signals_, kInheritedWriterMs);
  if (lease_error_ == EAGAIN) return fresh_lease_refusal(lease_error_);
  // Hashed under the lease: what a reader sees from here on, not what was meant to be written.
  HF_TRY(const ContentDigest digest, os::sha256_of_open(reader_));
  HF_TRY(const os::Facts facts, os::facts_of_open(reader_));
  identity_ = facts.identity;
  sealed_ = true;
  return digest;
}

}  // namespace holdfast::guard
