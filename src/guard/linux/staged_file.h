// T on Linux: an O_TMPFILE inode in the pinned parent, with no name that anybody could open.
#pragma once
#include <memory>
#include <optional>
#include <string_view>

#include "guard/guard.h"
#include "guard/linux/lease.h"

namespace holdfast::guard {

class NamelessStagedFile : public StagedFile {
 public:
  static Result<std::unique_ptr<NamelessStagedFile>> make(const os::Handle& folder, const BreakSignals& signals);

  Result<void> write(std::string_view bytes) override;
  Result<ContentDigest> seal(const std::optional<Metadata>& metadata) override;
  os::Identity identity() const override { return identity_; }

  bool sealed() const { return sealed_; }
  bool leased() const { return lease_error_ == 0; }
  int lease_error() const { return lease_error_; }
  const os::Handle& object() const { return reader_; }
  os::Handle take_object() { return std::move(reader_); }

 private:
  NamelessStagedFile(os::Handle writer, os::Handle reader, const BreakSignals& signals)
      : writer_(std::move(writer)), reader_(std::move(reader)), signals_(signals) {}

  os::Handle writer_;
  os::Handle reader_;
  BreakSignals signals_;
  os::Identity identity_;
  bool sealed_ = false;
  int lease_error_ = 0;  // of taking the lease, when sealed
};

}  // namespace holdfast::guard
