// Bytes of an event that a crash cut off: kept as evidence/torn-<seq>-<n>, where <seq> is the one that they would have
// had. The event that tells of them takes that very seq; so a file whose seq is the next one has not been told of yet.
#pragma once
#include <cstdint>
#include <string>

#include "holdfast/result.h"
#include "os/control_folder.h"

namespace holdfast::evidence {

// Publishes the bytes of `segment` from `whole` on, then cuts the segment there. Done again after a crash between the
// two, it finds the file that it published.
Result<void> set_torn_bytes_aside(os::ControlFolder& files, const std::string& segment, std::uint64_t whole,
                                  std::uint64_t seq);

// [{"path","byte_count","sha256"}] of the files with this seq.
Result<Json> torn_files_at(os::ControlFolder& files, std::uint64_t seq);

}  // namespace holdfast::evidence
