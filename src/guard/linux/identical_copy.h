// An identical, nameless, leased twin of a file: what takes its name when a writer comes.
#pragma once
#include "guard/linux/lease.h"
#include "holdfast/result.h"
#include "os/handle.h"

namespace holdfast::guard {

enum class CopyScope {
  whole,
  metadata_only,  // to find out beforehand whether a twin could be made here
};

// Bytes, owner, mode, access list, attributes and times of `source`; flushed, open for reading only, no writer left,
// with a read lease of its own. Nothing stays behind on a refusal. Refuses: atomic_publish_unsupported,
// destination_read_only, staging_failed, metadata_not_preservable.
Result<os::Handle> make_identical_copy(const os::Handle& source, const os::Handle& folder, const BreakSignals& signals,
                                       CopyScope scope);

// `error` of taking the lease on a file that nobody but this process has ever seen.
Refusal fresh_lease_refusal(int error);

// How long our own children, between fork and exec, may keep a copy of a writing descriptor.
constexpr int kInheritedWriterMs = 2000;

}  // namespace holdfast::guard
