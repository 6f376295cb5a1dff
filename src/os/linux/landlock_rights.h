// Landlock's numbers, and what is asked of each version of it.
//
// Written by hand: a distribution's headers know the ABI of its kernel at most (Debian 12: 2), and the running kernel
// may know more. Source: Documentation/userspace-api/landlock.rst. A version that is newer than this file is used as
// the newest that is known here.
#pragma once
#include <cstdint>

#include "holdfast/result.h"

namespace holdfast::os::landlock {

constexpr int kAbiNeeded = 3;  // the first that denies truncation

constexpr std::uint64_t kWriteFile = 1ULL << 1U;
constexpr std::uint64_t kRemoveFolder = 1ULL << 4U;
constexpr std::uint64_t kRemoveFile = 1ULL << 5U;
constexpr std::uint64_t kMakeCharacterDevice = 1ULL << 6U;
constexpr std::uint64_t kMakeFolder = 1ULL << 7U;
constexpr std::uint64_t kMakeRegular = 1ULL << 8U;
constexpr std::uint64_t kMakeSocket = 1ULL << 9U;
constexpr std::uint64_t kMakePipe = 1ULL << 10U;
constexpr std::uint64_t kMakeBlockDevice = 1ULL << 11U;
constexpr std::uint64_t kMakeLink = 1ULL << 12U;
constexpr std::uint64_t kRefer = 1ULL << 13U;        // ABI 2
constexpr std::uint64_t kTruncate = 1ULL << 14U;     // ABI 3
constexpr std::uint64_t kDeviceIoctl = 1ULL << 15U;  // ABI 5

constexpr std::uint64_t kScopeAbstractSocket = 1ULL << 0U;  // ABI 6
constexpr std::uint64_t kScopeSignal = 1ULL << 1U;          // ABI 6

// Denied unless a rule allows it: everything that changes something.
constexpr std::uint64_t denied_by(int abi) {
  constexpr std::uint64_t kSinceThree = kWriteFile | kRemoveFolder | kRemoveFile | kMakeCharacterDevice | kMakeFolder |
                                        kMakeRegular | kMakeSocket | kMakePipe | kMakeBlockDevice | kMakeLink | kRefer |
                                        kTruncate;
  return abi >= 5 ? kSinceThree | kDeviceIoctl : kSinceThree;
}
constexpr std::uint64_t scopes_of(int abi) { return abi >= 6 ? kScopeAbstractSocket | kScopeSignal : 0; }

// No device nodes, and no ioctl of devices: as root, either would reach the disk below the folder.
constexpr std::uint64_t allowed_below_folder(int abi) {
  return denied_by(abi) & ~(kMakeCharacterDevice | kMakeBlockDevice | kDeviceIoctl);
}
constexpr std::uint64_t kAllowedOnFile = kWriteFile | kTruncate;
constexpr std::uint64_t allowed_on_device(int abi) { return denied_by(abi) & (kWriteFile | kDeviceIoctl); }

// The version, of the kernel's answer to the question for it: refused where it is none, or too old.
Result<int> usable_abi(long answer, int error);

}  // namespace holdfast::os::landlock
